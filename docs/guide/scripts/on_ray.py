"""A fit on Ray: python on_ray.py [local | auto | ray address] table.csv target model.softlearning

Start the cluster with `ray start --head` and `ray start --address=HEAD:6379` on the other machines, or by Ray's own
launcher; on all of them: Python, softlearning[ray], the same versions. Run this on a machine of the cluster.
"""

import sys

import pandas as pd
import ray

from softlearning import SoftClassifier


def main(where, table, target, out):
    frame = pd.read_csv(table)
    if where == "local":
        ray.init(num_cpus=2, include_dashboard=False)
    else:
        ray.init(address=where)
    model = SoftClassifier(engine="ray", checkpoint=f"{out}.checkpoint")  # a killed driver goes on from there
    model.fit(frame.drop(columns=target), frame[target])
    ray.shutdown()
    model.set_params(engine=None).save(out)
    print(model.leaderboard_[["specialist", "weight", "cv_risk", "status"]])


if __name__ == "__main__":
    main(*sys.argv[1:])
