"""A fit on Dask: python on_dask.py WHERE table.csv target model.softlearning

WHERE is local, slurm (needs dask-jobqueue), kubernetes (needs dask-kubernetes) or the address of a scheduler; on the
workers: Python, softlearning[dask], the same versions.
"""

import sys

import pandas as pd
from distributed import Client, LocalCluster

from softlearning import SoftClassifier


def cluster(where):
    if where == "local":
        return LocalCluster(n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None)
    if where == "slurm":
        from dask_jobqueue import SLURMCluster

        made = SLURMCluster(cores=16, processes=16, memory="64GB", walltime="04:00:00")  # one job of the queue
        made.adapt(minimum_jobs=1, maximum_jobs=8)  # workers may come and go in the middle of a fit
        return made
    from dask_kubernetes.operator import KubeCluster

    made = KubeCluster(name="softlearning", image="registry.example/softlearning-dask", n_workers=8)
    made.adapt(minimum=2, maximum=64)
    return made


def main(where, table, target, out):
    frame = pd.read_csv(table)
    with Client(where if "://" in where else cluster(where)) as client:
        model = SoftClassifier(engine=client, checkpoint=f"{out}.checkpoint")  # a killed driver goes on from there
        model.fit(frame.drop(columns=target), frame[target])
    model.set_params(engine=None).save(out)
    print(model.leaderboard_[["specialist", "weight", "cv_risk", "status"]])


if __name__ == "__main__":
    main(*sys.argv[1:])
