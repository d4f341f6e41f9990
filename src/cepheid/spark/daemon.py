"""Spark's Python daemon, with the engine loaded: `spark.python.daemon.module=cepheid.spark.daemon`.

Spark forks its workers from a daemon. What the daemon has loaded, they have from the start, and
share the memory of it; otherwise each of them loads NumPy, Arrow, pandas, Numba and the engine by
itself, which takes seconds where several start at once.
"""

from __future__ import annotations

import gc

import pyspark.worker  # noqa: F401
from pyspark.daemon import manager

import cepheid.spark.partitions.worker
import cepheid.spark.streaming.stateful.bucket_work  # noqa: F401
from cepheid.kernels import warm_up

if __name__ == "__main__":
    warm_up()
    gc.collect()
    gc.freeze()  # what is loaded stays, and collections in workers needn't copy its pages
    manager()
