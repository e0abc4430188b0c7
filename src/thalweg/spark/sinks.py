"""INTO SPARK: each epoch's output through one of Spark's writers.

How often a row arrives depends on the format: file formats get a folder per epoch, which a second
attempt replaces; Delta is told which epoch a write is of and ignores a repeated one; for all other
formats a crash between writing and marking repeats an epoch.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from thalweg.plan.bound_query import SinkSpec
from thalweg.runtime.sinks.factory import ProcessSinks
from thalweg.runtime.sinks.guarantees import FILE_FORMATS, guarantee_of
from thalweg.runtime.sinks.sinks import Sink
from thalweg.runtime.state.engine_state import EngineState
from thalweg.secrets import with_values
from thalweg.store.storage import Storage


@dataclass(slots=True)
class SparkSink:
    query: str
    spec: SinkSpec
    identity: str
    spark: SparkSession
    guarantee: str = field(init=False)

    def __post_init__(self) -> None:
        self.guarantee = guarantee_of(self.spec)
        self._options()  # a secret that is not there is refused before the query starts

    def _options(self) -> dict[str, Any]:
        options = with_values(self.spec.options)
        return {k: str(v).lower() if isinstance(v, bool) else v for k, v in options}

    def write(self, epoch: int, output: pa.Table) -> None:
        options = self._options()
        writer = self.spark.createDataFrame(output).write.format(self.spec.target)
        if self.spec.target in FILE_FORMATS:
            folder = f"{options.pop('path')}/epoch={epoch:012d}"
            writer.options(**options).mode("overwrite").save(folder)
            return
        if self.spec.target == "delta":
            options |= {"txnAppId": f"{self.identity}-{self.query}", "txnVersion": str(epoch)}
        writer.options(**options).mode("append").save()


class SparkSinks:
    """All sinks, those that write through Spark among them."""

    def __init__(self, spark: SparkSession, storage: Storage, state: EngineState) -> None:
        self._spark = spark
        self._identity = state.identity
        self._others = ProcessSinks(storage, state)

    def make(self, query: str, spec: SinkSpec, schema: pa.Schema) -> Sink:
        if spec.kind == "spark":
            return SparkSink(query, spec, self._identity, self._spark)
        return self._others.make(query, spec, schema)
