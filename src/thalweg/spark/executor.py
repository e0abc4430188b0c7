"""Jobs on Spark: one task per batch of jobs, metadata in, metadata out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark import cloudpickle
from pyspark.sql import SparkSession

from thalweg.exec.expressions import UserFunction
from thalweg.exec.jobs import Job, Result
from thalweg.spark import worker
from thalweg.store.storage import Storage


class SparkExecutor:
    """Runs every batch of jobs as one Spark task; rows never travel, packs do the carrying."""

    def __init__(self, spark: SparkSession, storage: Storage) -> None:
        self.spark = spark
        self.storage = storage

    def run(
        self, batches: Sequence[Sequence[Job]], functions: Mapping[str, UserFunction]
    ) -> list[list[Result]]:
        if not batches:
            return []
        storage, pickled = self.storage, cloudpickle.dumps(dict(functions))

        def task(part: Any) -> Any:
            return worker.run_batches(storage, pickled, part)

        rdd = self.spark.sparkContext.parallelize(batches, len(batches))
        return rdd.mapPartitions(task).collect()  # type: ignore[no-any-return]
