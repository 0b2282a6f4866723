"""Write what AutoGluon's presets set, for the statement that it relies on tuning: run by path in its environment.

ENVIRONMENT/bin/python presets.py benchmarks/results/autogluon_presets.json
"""

import inspect
import json
import re
import sys
from importlib.metadata import version
from pathlib import Path


def main(path: str) -> None:
    """Names of presets with the keys that they set, and the default of the search as documented."""
    from autogluon.tabular import TabularPredictor
    from autogluon.tabular.configs.presets_configs import tabular_presets_dict as presets

    default = re.search(r"hyperparameter_tune_kwargs : .*default = (\w+)", inspect.getdoc(TabularPredictor.fit) or "")
    found = {
        "version": version("autogluon.tabular"),
        "default": default.group(1) if default else "not documented",
        "presets": {name: sorted(keys) for name, keys in sorted(presets.items()) if isinstance(keys, dict)},
    }
    Path(path).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
