"""Tables and kept rows of streams as DataFrames, under names that Spark's catalog knows."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from thalweg.exec.leaves.versioned_table import SINCE, UNTIL
from thalweg.instants import AFTER_TIME
from thalweg.lang.parsing import ast
from thalweg.lang.parsing.named_sources import named_sources
from thalweg.lang.parsing.parser import parse_query
from thalweg.plan.catalog import Catalog, Names, Relation, StreamDef, TableDef, ViewDef
from thalweg.plan.types import to_arrow
from thalweg.runtime.results.stream_history import history
from thalweg.runtime.session.core import EngineCore


class TableFrames:
    """The DataFrames that were given as tables."""

    def __init__(self) -> None:
        self._given: dict[str, tuple[DataFrame, str]] = {}

    def put(self, name: str, frame: DataFrame) -> None:
        self._given[name] = frame, uuid.uuid4().hex

    def forget(self, name: str) -> None:
        self._given.pop(name, None)

    def of(self, name: str) -> tuple[DataFrame, str] | None:
        """The DataFrame of a table, and what its version is called."""
        return self._given.get(name)


@dataclass(frozen=True, slots=True)
class Named:
    """A relation under a name that stands for one version of it for ever."""

    view: str
    version: str


@dataclass(slots=True)
class BatchFrames:
    """Gives the relations of an engine to Spark, each version once; the newest version only.
    `forget` is told of names that stand for nothing any more."""

    spark: SparkSession
    core: EngineCore
    given: TableFrames
    forget: Callable[[str], None]
    _known: dict[str, Named] = field(default_factory=dict)
    _prefix: str = field(default_factory=lambda: f"thalweg_{uuid.uuid4().hex[:8]}")

    def mentioned(self, text: str) -> dict[str, Relation]:
        """The relations whose names are words of a text, those that views read before them."""
        found: dict[str, Relation] = {}
        words = {w.lower() for w in re.findall(r"\w+", text)}
        for name in self.core.catalog.relation_names():
            relation = self.core.catalog.relation(name)
            if relation is None or not set(re.findall(r"\w+", name.lower())) <= words:
                continue
            if isinstance(relation, ViewDef):
                found.update(self.mentioned(relation.text))
            found[name] = relation
        return found

    def named(self, name: str) -> Named:
        """The newest version of a table or of the kept rows of a stream."""
        version = self._version(name)
        known = self._known.get(name)
        if known is not None and known.version == version:
            return known
        view = f"{self._prefix}_{re.sub(r'[^0-9A-Za-z]', '_', name)}_{len(self._known)}"
        view = f"{view}_{uuid.uuid4().hex[:6]}"
        self._frame(name).createOrReplaceTempView(view)
        if known is not None:
            self.spark.catalog.dropTempView(known.view)
            self.forget(known.view)
        self._known[name] = Named(view, version)
        return self._known[name]

    def inlined(self, query: ast.Query, text: str) -> str:
        """The text of a query with what Spark knows instead of each name of the engine; sources
        keep their aliases."""
        places = []
        for source in named_sources(query):
            relation = self.core.catalog.relation(source.name or "")
            if relation is not None and "." not in (source.name or ""):
                alias = "" if source.alias else f" AS `{source.name}`"
                until = source.window_at[0]
                places.append((source.at, until, self._inline(relation) + alias))
        for at, until, inline in sorted(places, reverse=True):
            text = text[:at] + inline + text[until:]
        return text

    def _inline(self, relation: Relation) -> str:
        if isinstance(relation, ViewDef):
            return f"({self.inlined(parse_query(relation.text), relation.text)})"
        return self.named(relation.name).view

    def catalog(self) -> Catalog:
        """The names of the engine, and those that `inlined` has put in their places."""
        known = self.core.catalog
        tables = Names(known.tables)
        for name, named in self._known.items():
            relation = known.relation(name)
            if isinstance(relation, (TableDef, StreamDef)):
                tables[named.view] = TableDef(named.view, relation.fields)
        return Catalog(known.streams, tables, known.views, known.functions)

    def view(self, name: str | None) -> str | None:
        """A name that stands for one version of rows, None for others."""
        return name if any(n.view == name for n in self._known.values()) else None

    def with_names(self, text: str) -> str:
        """A text that we cannot read, preceded by what the names of the engine in it stand for."""
        parts = list(self._definitions(self.mentioned(text)))
        if not parts:
            return text
        own = re.match(r"\s*WITH\s+", text, re.IGNORECASE)
        rest = f", {text[own.end() :]}" if own else f" {text}"
        return f"WITH {', '.join(parts)}{rest}"

    def _definitions(self, relations: Mapping[str, Relation]) -> Iterator[str]:
        for name, relation in relations.items():
            if isinstance(relation, ViewDef):
                yield f"`{name}` AS ({relation.text.strip().removesuffix(';')})"
            else:
                yield f"`{name}` AS (SELECT * FROM {self.named(name).view})"

    def close(self) -> None:
        """Take all names back."""
        for known in self._known.values():
            self.spark.catalog.dropTempView(known.view)
        self._known.clear()

    def _version(self, name: str) -> str:
        relation = self.core.catalog.relation(name)
        given = self.given.of(name)
        if isinstance(relation, TableDef) and given is not None:
            return given[1]
        state = self.core.state
        if isinstance(relation, TableDef):
            return " ".join(p.name for p in state.tables[name])
        known = state.streams.get(name)
        return "" if known is None else " ".join([*(p.name for p in known.packs), "kept"])

    def _frame(self, name: str) -> DataFrame:
        relation = self.core.catalog.relation(name)
        given = self.given.of(name)
        if isinstance(relation, TableDef) and given is not None:
            return given[0]
        assert isinstance(relation, (TableDef, StreamDef))
        # packs that an epoch replaces are deleted: none begins meanwhile
        rows = self.core.changes.between_epochs(partial(self._rows, relation))
        own = pa.schema([(f.name, to_arrow(f.type)) for f in relation.fields])
        return self.spark.createDataFrame(rows.select(own.names).cast(own))

    def _rows(self, relation: TableDef | StreamDef) -> pa.Table:
        if isinstance(relation, TableDef):
            return self._table(relation.name)
        return self._stream(relation)

    def _table(self, name: str) -> pa.Table:
        packs = self.core.state.tables[name]
        rows = pa.concat_tables([self.core.storage.read_table(p.name) for p in packs])
        if SINCE in rows.column_names:
            rows = rows.filter(pa.array(rows.column(UNTIL).to_numpy() == AFTER_TIME))
        return rows

    def _stream(self, stream: StreamDef) -> pa.Table:
        own = pa.schema([(f.name, to_arrow(f.type)) for f in stream.fields])
        known = self.core.state.streams.get(stream.name)
        if known is None or not known.packs:
            return own.empty_table()
        return history(self.core.storage, self.core.state, stream.name).select(own.names)
