"""Spark's Python worker daemon, with our code loaded before it forks.

Workers fork from here, so they start with compiled kernels instead of importing them, and they do
not sweep the whole heap after every task, which costs tens of milliseconds once NumPy and Arrow
are loaded. Selected by `spark.python.daemon.module`.
"""

from __future__ import annotations

import gc
from types import SimpleNamespace

import pyspark.daemon

from thalweg.spark import worker

pyspark.daemon.gc = SimpleNamespace(collect=lambda *_: 0)

if __name__ == "__main__":
    worker.keep_memory()
    worker.warm_up()
    gc.freeze()
    pyspark.daemon.manager()
