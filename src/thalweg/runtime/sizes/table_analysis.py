"""ANALYZE: statistics of tables and streams, and bounds of joins from these alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from thalweg.errors import ConfigError, UnknownName, did_you_mean
from thalweg.estimate.bounds import Bounds, SubJoin
from thalweg.estimate.cached.cached_bound import cached_bound
from thalweg.estimate.cached.named_keys import named_keys
from thalweg.estimate.cached.split_limit import split_limit
from thalweg.estimate.cached.statistics_cache import StatisticsCache
from thalweg.estimate.cached.table_statistics import TableStatistics
from thalweg.estimate.explosion import advice
from thalweg.estimate.figure import UNKNOWN, Figure, Kind
from thalweg.estimate.from_select import SelectedJoins
from thalweg.estimate.hypergraph import Hypergraph
from thalweg.estimate.join_query import JoinQuery
from thalweg.instants import AFTER_TIME
from thalweg.plan.catalog import Catalog, StreamDef, TableDef
from thalweg.plan.logical import Scan
from thalweg.runtime.sizes.living_rows import LivingRows

STATISTICS_BYTES = 1 << 20
"""What the statistics of all that is analyzed at once take at most, unless said otherwise."""
ALL_STATISTICS_BYTES = 64 << 20


class TableAnalysis:
    """Makes and keeps statistics, each of one version of the rows of a table or stream."""

    def __init__(self, catalog: Catalog, rows: LivingRows) -> None:
        self._catalog = catalog
        self._rows = rows
        self._statistics = StatisticsCache(ALL_STATISTICS_BYTES)
        self._analyzed: dict[str, int] = {}
        self._joined: dict[str, set[str]] = {}

    def joined(self, query: JoinQuery) -> None:
        """Remember by which columns relations are joined."""
        for one in query.inputs:
            self._joined.setdefault(one.relation, set()).update(c for _, c in one.columns)

    def analyze(
        self,
        *names: str,
        limit_bytes: int = STATISTICS_BYTES,
        joined_by: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        """Make statistics of tables, and of what is kept of streams. `joined_by` has the columns by
        which they are joined; else those by which they were, and those that look like keys by
        their names or by how many values they have."""
        if not names:
            raise ConfigError("nothing to analyze", remedy="name a table or a stream, or several")
        joined_by = joined_by or {}
        scans = {scan.relation: scan for scan in map(self._scan, names)}
        tables = {n: self._rows.of(s, AFTER_TIME).table for n, s in scans.items()}  # held back, too
        keys = {n: joined_by.get(n) or self._keys(n, t) for n, t in tables.items()}
        limits = split_limit({n: (t, keys[n], None) for n, t in tables.items()}, limit_bytes)
        for name, table in tables.items():
            version = self._rows.version(scans[name])
            found = TableStatistics.build(table, keys[name], None, limits[name], version)
            self._analyzed[name] = table.num_rows
            if not self._statistics.put(name, found):
                raise ConfigError(
                    f"statistics of {name} would take {found.nbytes:,} bytes",
                    remedy=f"allow at most {ALL_STATISTICS_BYTES:,}",
                )

    def _keys(self, relation: str, table: pa.Table) -> list[str] | None:
        """The columns by which a relation is likely to be joined; None where nothing tells."""
        catalog = self._catalog
        columns = {
            name: [f.name for f in one.fields if f.type.is_integer or f.type.name == "STRING"]
            for group in (catalog.tables, catalog.streams)
            for name, one in group.items()
        }
        known = self._joined.get(relation, set()) | set(named_keys(columns)[relation])
        return [c for c in table.column_names if c in known] or None

    @property
    def statistics_bytes(self) -> int:
        """What all statistics take."""
        return self._statistics.nbytes

    def drift(self) -> list[tuple[str, int, int]]:
        """What was analyzed: how many rows it had then, and how many are there now. With more of
        them, the statistics bound nothing any more."""
        catalog = self._catalog
        known = [(n, rows) for n, rows in self._analyzed.items() if catalog.relation(n)]
        return [(n, rows, self._rows.count(self._scan(n))) for n, rows in known]

    def _scan(self, name: str) -> Scan:
        found = self._catalog.relation(name)
        if not isinstance(found, (TableDef, StreamDef)):
            known = [*self._catalog.tables, *self._catalog.streams]
            raise UnknownName(f"unknown table {name}", remedy=did_you_mean(name, known))
        fields = tuple(replace(f, name=f"{found.name}.{f.name}") for f in found.fields)
        return Scan(found.name, found.name, fields, isinstance(found, TableDef))

    def knows(self, query: JoinQuery) -> bool:
        """Whether all inputs have statistics of their rows as they are."""
        return all(self._known(r.relation) is not None for r in query.inputs)

    def _known(self, relation: str) -> TableStatistics | None:
        return self._statistics.get(relation, self._rows.version(self._scan(relation)))

    def bounds(self, selected: SelectedJoins) -> Bounds:
        """Of a SELECT and its connected parts; unknown without statistics of rows as they are."""
        found = [self._cached_join(one) for one in selected.joins]
        if len(found) == 1:
            return found[0]
        counts = [one.rows for one in found]
        total = UNKNOWN
        if None not in counts:
            total = Figure.of(sum(c for c in counts if c is not None), Kind.BOUND)
        formula = " + ".join(one.whole.formula for one in found)
        whole = replace(found[0].whole, figure=total, formula=formula)
        return replace(found[0], subjoins=(*found[0].subjoins[:-1], whole))

    def _cached_join(self, query: JoinQuery) -> Bounds:
        names = dict.fromkeys(r.relation for r in query.inputs)
        known = {name: self._known(name) for name in names}
        statistics = {name: s for name, s in known.items() if s is not None}
        subjoins = [
            SubJoin(s.sources, s.figure, "sketched", s.formula)
            for s in cached_bound(query, statistics).sub_joins
        ]
        missing = [name for name, s in known.items() if s is None]
        if missing:
            told = f"{', '.join(missing)}: no statistics of the rows as they are; run ANALYZE TABLE"
            return Bounds(tuple(subjoins), "cached", told)
        sizes = {r.alias: statistics[r.relation].rows for r in query.inputs}
        graph = Hypergraph.of(query)
        keys = {a: graph.named(h) for a, h in graph.holders.items()}
        return Bounds(tuple(subjoins), "cached", advice(subjoins, sizes, keys))
