"""`format("thalweg")`: a query's results as a Spark data source, batch or streaming.

Offsets are epochs, so any Spark job follows a query exactly once, or reads what is kept of its
history. The engine need not run in the same process, nor at the same time:

    thalweg.spark.datasource.register(spark)
    spark.readStream.format("thalweg").option("query", "spikes").load("/path/of/the/engine")

Options: `path`, `query`, `starting_epoch` (default: everything kept), `ending_epoch` (batch), and
`follower`, a name under which a streaming reader's lease is kept.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.types import StructType

from thalweg.errors import ConfigError
from thalweg.runtime.results.followers import Results
from thalweg.store.leases import Lease, renew
from thalweg.store.storage import open_storage

NAME = "thalweg"


def register(spark: SparkSession) -> None:
    """Make `format("thalweg")` known to a session."""
    try:
        spark.dataSource.register(ResultSource)
    except AnalysisException as error:
        if "ALREADY_EXISTS" not in str(error):  # sessions of one context share their sources
            raise


class ResultSource(DataSource):  # type: ignore[misc]
    """The data source itself; Spark creates it with the reader's options."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> StructType:
        from pyspark.sql.pandas.types import from_arrow_schema

        return from_arrow_schema(self._results().schema())

    def reader(self, schema: StructType) -> DataSourceReader:
        return _Reader(self._settings())

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        return _Follower(self._settings())

    def _results(self) -> Results:
        return self._settings().results()

    def _settings(self) -> _Settings:
        options = self.options
        for needed in ("path", "query"):
            if not options.get(needed):
                raise ConfigError(
                    f'format("{NAME}") needs the option {needed}',
                    remedy='.option("query", name).load(path of the engine)',
                )
        return _Settings(
            str(options["path"]),
            str(options["query"]),
            _number(options.get("starting_epoch")),
            _number(options.get("ending_epoch")),
            str(options.get("follower") or uuid.uuid4().hex[:12]),
        )


def _number(given: Any) -> int | None:
    if given is None:
        return None
    try:
        return int(given)
    except ValueError:
        raise ConfigError(f"{given!r} is not an epoch", remedy="epochs are whole numbers") from None


@dataclass(frozen=True, slots=True)
class _Settings:
    path: str
    query: str
    first: int | None
    last: int | None
    follower: str

    def results(self) -> Results:
        return Results(open_storage(self.path), self.query)

    def begin(self) -> int:
        """The epoch after which reading starts."""
        return self.results().forgotten() if self.first is None else self.first - 1


def _read(settings: _Settings, partition: InputPartition) -> Iterator[pa.RecordBatch]:
    if partition is None or partition.value is None:
        return  # where there is no partition Spark asks for one of nothing
    first, last = partition.value
    yield from settings.results().rows(first, last).to_batches()


class _Reader(DataSourceReader):  # type: ignore[misc]
    def __init__(self, settings: _Settings) -> None:
        self.settings = settings

    def partitions(self) -> Sequence[InputPartition]:
        results = self.settings.results()
        last = results.last_epoch() if self.settings.last is None else self.settings.last
        return [InputPartition(span) for span in results.spans(self.settings.begin(), last)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _read(self.settings, partition)


class _Follower(DataSourceStreamReader):  # type: ignore[misc]
    def __init__(self, settings: _Settings) -> None:
        self.settings = settings

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {"epoch": self.settings.begin()}

    def latestOffset(self, start: Any = None, limit: Any = None) -> dict[str, int]:  # noqa: N802
        return {"epoch": self.settings.results().last_epoch()}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        found = self.settings.results().spans(start["epoch"], end["epoch"])
        return [InputPartition(span) for span in found]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _read(self.settings, partition)

    def commit(self, end: dict[str, int]) -> None:
        lease = Lease(self.settings.follower, self.settings.query, end["epoch"], time.time())
        renew(self.settings.results().storage, lease)
