"""A fit on Spark, by joblib: spark-submit on_spark.py table.csv target model.softlearning

Needs pyspark and joblibspark on the driver; on the executors: Python, softlearning, the same versions.
"""

import sys

import pandas as pd
from joblibspark import register_spark

from softlearning import SoftClassifier


def main(table, target, out):
    register_spark()
    frame = pd.read_csv(table)
    model = SoftClassifier(engine="spark", n_jobs=16, checkpoint=f"{out}.checkpoint")
    model.fit(frame.drop(columns=target), frame[target])
    model.set_params(engine=None).save(out)
    print(model.leaderboard_[["specialist", "weight", "cv_risk", "status"]])


if __name__ == "__main__":
    main(*sys.argv[1:])
