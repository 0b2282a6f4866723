"""What the package never does: unpickle files, evaluate text, hand a line to a shell, take a trust list from a file."""

import ast
from pathlib import Path

import pytest

import softlearning

ROOT = Path(softlearning.__file__).parent
FORBIDDEN = {
    *("eval", "exec", "__import__"),
    *("pickle.load", "pickle.Unpickler", "_pickle.loads", "marshal.load", "marshal.loads", "shelve.open"),
    *("joblib.load", "torch.load", "yaml.load", "yaml.unsafe_load", "pandas.read_pickle", "pd.read_pickle"),
    *("time.time", "time.ctime", "datetime.datetime.utcnow"),  # a clock that may jump: deadlines count from `monotonic`
    *("os.system", "os.popen", "subprocess.getoutput", "subprocess.getstatusoutput"),
}
UNPICKLING = {"pickle.loads", "cloudpickle.loads", "multiprocessing.reduction.ForkingPickler.loads"}
BETWEEN_OUR_PROCESSES = {"shared"}  # bytes that one process of a program hands to another by a pipe


def modules():
    return [path.relative_to(ROOT) for path in sorted(ROOT.rglob("*.py"))]


def dotted(node) -> str:
    """`a.b.c` of a call's function; empty where it is no plain name."""
    if isinstance(node, ast.Name):
        return node.id
    return f"{dotted(node.value)}.{node.attr}" if isinstance(node, ast.Attribute) else ""


def full_names(tree) -> dict[str, str]:
    """What each imported name stands for: `from pickle import load as get` makes get pickle.load."""
    names = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.asname or alias.name: alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return names


def uses(source: str):
    """(full name, node) of every name, attribute and call."""
    tree = ast.parse(source)
    names = full_names(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute | ast.Call):
            first, _, rest = dotted(node.func if isinstance(node, ast.Call) else node).partition(".")
            yield names.get(first, first) + (f".{rest}" if rest else ""), node


def offences(source: str, module: str = "") -> set[str]:
    found = set()
    for name, node in uses(source):
        if name in FORBIDDEN or (name in UNPICKLING and module not in BETWEEN_OUR_PROCESSES):
            found.add(name)
        for keyword in node.keywords if isinstance(node, ast.Call) else ():
            is_true = isinstance(keyword.value, ast.Constant) and keyword.value.value is True
            if keyword.arg in ("shell", "allow_pickle") and is_true:
                found.add(f"{name}({keyword.arg}=True)")
            trusts = keyword.arg == "trusted" and "get_untrusted_types" in ast.unparse(keyword.value)
            if trusts:
                found.add(f"{name} trusts what the file says")
    return found


@pytest.mark.parametrize("path", modules(), ids=str)
def test_no_module_unpickles_files_evaluates_text_or_calls_a_shell(path):
    assert not offences((ROOT / path).read_text(), module=path.stem)


@pytest.mark.parametrize(
    "source",
    [
        "import pickle\npickle.load(open('x'))",
        "from pickle import load as get\nget(open('x'))",
        "import joblib as j\nj.load('x')",
        "import torch\ntorch.load('x', weights_only=True)",
        "eval('1')",
        "from time import time\nend = time() + 5",
        "import subprocess\nsubprocess.run('ls', shell=True)",
        "import numpy as np\nnp.load('x', allow_pickle=True)",
        "import skops.io\nskops.io.loads(b, trusted=skops.io.get_untrusted_types(data=b))",
        "from skops import io\nio.loads(b, trusted=io.get_untrusted_types(data=b))",
        "import cloudpickle\ncloudpickle.loads(b)",
        "from pickle import loads\nunpack = loads",
    ],
)
def test_the_check_would_notice(source):
    assert offences(source)
