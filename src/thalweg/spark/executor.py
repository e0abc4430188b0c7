"""Where jobs run: as Spark tasks, or, on a local master, in threads of the driver.

Starting an empty Spark job with two Python tasks takes 45 to 60 ms on a two-core machine, as much
as the work of a small epoch. On a local master the driver has the same cores and sees the same
packs, so steps run here; kernels and column operations release the interpreter lock. Jobs that
call user functions always go to Spark's workers: foreign code must not take the driver down.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from pyspark.sql import SparkSession

from thalweg.exec.expressions.evaluate import UserFunction
from thalweg.exec.jobs import Job, Result, execute_all
from thalweg.spark import worker
from thalweg.spark.settings import is_local
from thalweg.store.pack_cache import MOST_BYTES, ColdReads, PackCache
from thalweg.store.storage import Storage


class SparkExecutor:
    """Runs every batch of jobs as one Spark task; rows never travel, packs do the carrying."""

    def __init__(self, spark: SparkSession, storage: Storage) -> None:
        self.spark = spark
        self.storage = storage
        self._aside = ThreadPoolExecutor(1, thread_name_prefix="thalweg-aside")

    def run(
        self, batches: Sequence[Sequence[Job]], functions: Mapping[str, UserFunction]
    ) -> list[list[Result]]:
        if not batches:
            return []
        storage, pickled = self.storage, worker.packed(functions)

        def task(part: Any) -> Any:
            return worker.run_batches(storage, pickled, part)

        rdd = self.spark.sparkContext.parallelize(batches, len(batches))
        return rdd.mapPartitions(task).collect()  # type: ignore[no-any-return]

    def aside(self, job: Job) -> Future[Result]:
        return self._aside.submit(lambda: self.run([[job]], {})[0][0])

    def close(self) -> None:
        """Wait for what is under way: nothing may be written into a path that was given up."""
        self._aside.shutdown()


class DriverExecutor:
    """Runs batches of jobs in threads here; each place has a pack cache of its own, and all of them
    one limit in bytes."""

    def __init__(self, storage: Storage, places: int, spark: SparkExecutor) -> None:
        cold = ColdReads(storage)
        self._caches = [PackCache(storage, MOST_BYTES // places, cold=cold) for _ in range(places)]
        self._pool = ThreadPoolExecutor(places, thread_name_prefix="thalweg-step")
        self._aside = ThreadPoolExecutor(1, thread_name_prefix="thalweg-aside")
        self._storage = storage
        self._spark = spark

    def run(
        self, batches: Sequence[Sequence[Job]], functions: Mapping[str, UserFunction]
    ) -> list[list[Result]]:
        if functions:
            return self._spark.run(batches, functions)
        if len(batches) == 1:
            return [execute_all(batches[0], self._caches[0], functions)]
        waiting = [
            self._pool.submit(execute_all, batch, self._caches[i % len(self._caches)], functions)
            for i, batch in enumerate(batches)
        ]
        return [w.result() for w in waiting]

    def aside(self, job: Job) -> Future[Result]:
        """With a cache of its own: packs that are merged away are not asked for again."""
        return self._aside.submit(lambda: execute_all([job], PackCache(self._storage), {})[0])

    def close(self) -> None:
        """Wait for what is under way: nothing may be written into a path that was given up."""
        self._aside.shutdown()
        self._pool.shutdown()
        self._spark.close()


def executor_for(
    spark: SparkSession, storage: Storage, places: int
) -> SparkExecutor | DriverExecutor:
    """The executor that suits the session's master."""
    on_spark = SparkExecutor(spark, storage)
    if is_local(spark):
        worker.keep_memory()
        return DriverExecutor(storage, places, on_spark)
    return on_spark
