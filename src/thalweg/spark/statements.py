"""Statements that need Spark: streams and tables from files, Spark's sinks, following results."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame

from thalweg.errors import UnknownName, did_you_mean
from thalweg.lang import ast
from thalweg.lang.definitions import fields_of, source_spec
from thalweg.plan.catalog import StreamDef, TableDef
from thalweg.plan.query import SinkSpec
from thalweg.runtime.session.session import Query, Session
from thalweg.runtime.sinks.sinks import Sink
from thalweg.runtime.state.clock import wall_clock
from thalweg.spark import datasource
from thalweg.spark.files import inferred_table, list_files, read_file
from thalweg.spark.sinks import SparkSink

if TYPE_CHECKING:
    from thalweg.spark.engine import Engine

T = TypeVar("T")
PATIENCE = 0.01


class EngineSession(Session):
    """A session that has an engine."""

    engine: Engine

    def create_stream(self, definition: StreamDef) -> StreamDef:
        return self.engine.declared_stream(definition)

    def between_epochs(self, action: Callable[[], T]) -> T:
        return self.engine.at_epoch(action)

    def for_good(self, action: Callable[[], T]) -> T:
        result = self.engine.at_epoch(action)
        if not self.engine.is_running:
            self.coordinator.save(wall_clock())
        return result

    def catch_up(self, name: str) -> None:
        if not self.engine.is_running:
            super().catch_up(name)
            return
        if self.standing.is_uncommitted(name):
            self.between_epochs(lambda: None)
        while self.engine.is_running and self.is_behind(name):
            time.sleep(PATIENCE)

    def refresh_table(self, name: str) -> None:
        """Read a table's files again: what differs is its next version."""
        known = self.catalog.tables.get(name)
        if known is None or known.source.kind != "files":
            raise UnknownName(
                f"there is no table {name} from files",
                remedy=did_you_mean(name, self.catalog.tables),
            )
        spec = known.source
        tables = [read_file(name, known.fields, spec, p) for p in list_files(spec)]
        rows = pa.concat_tables(tables)
        self.check_table(name, rows, spec)
        self.engine.at_epoch(lambda: self.define_table(name, rows, spec))

    def create_table(self, statement: ast.CreateTable, text: str) -> TableDef:
        spec = source_spec(statement.source, text, statement.at)
        paths = list_files(spec)
        if statement.columns:
            fields = fields_of(statement.columns, text)
            tables = [read_file(statement.name, fields, spec, p) for p in paths]
            return self.define_table(statement.name, pa.concat_tables(tables), spec)
        return self.define_table(statement.name, inferred_table(spec, paths), spec)

    def make_sink(self, query: Query, spec: SinkSpec) -> Sink:
        if spec.kind == "spark":
            identity = self.coordinator.state.identity
            return SparkSink(query.name, spec, identity, self.engine.spark)
        return super().make_sink(query, spec)

    def stream_of(self, name: str) -> DataFrame:
        query = self.known_query(name)
        if self.folding.folds(query.name):  # a follower needs output of its own, from now on
            self.between_epochs(lambda: self.set_options(query, {"share": "off"}))
        if not self.engine.is_running:
            self.coordinator.save(wall_clock())  # the reader looks for the query on the path
        reader = self.engine.spark.readStream.format(datasource.NAME).option("query", query.name)
        return reader.load(self.engine.path)
