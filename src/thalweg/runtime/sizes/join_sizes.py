"""How large the join of a SELECT is: bounded from living rows or from statistics, and beside that
estimated and measured."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from thalweg.errors import ConfigError, JoinTooLarge, NotAvailableYet, UnknownName, did_you_mean
from thalweg.estimate.baselines.containment import containment
from thalweg.estimate.bounds import Bounds, SubJoin
from thalweg.estimate.cached.cached_bound import cached_bound
from thalweg.estimate.cached.named_keys import named_keys
from thalweg.estimate.cached.split_limit import split_limit
from thalweg.estimate.cached.statistics_cache import StatisticsCache
from thalweg.estimate.cached.table_statistics import TableStatistics
from thalweg.estimate.explosion import advice
from thalweg.estimate.figure import UNKNOWN, Figure, Kind
from thalweg.estimate.fresh import BUCKETS, fresh_bound_of_select
from thalweg.estimate.from_select import SelectedJoins, joins_of
from thalweg.estimate.hypergraph import Hypergraph
from thalweg.estimate.join_query import JoinInput, JoinQuery
from thalweg.estimate.join_rows import JoinRows
from thalweg.estimate.keys.keyed_table import KeyedTable
from thalweg.estimate.probe_order import probe_orders
from thalweg.exec.expressions.evaluate import UserFunction
from thalweg.instants import AFTER_TIME
from thalweg.plan.bound_query import BoundQuery
from thalweg.plan.catalog import StreamDef, TableDef
from thalweg.plan.expr import UserCall, walk
from thalweg.plan.joins.join_order import orderable_pipelines, repiped
from thalweg.plan.joins.join_trees import smallest_tree, with_tree
from thalweg.plan.logical import Node, Scan, Window
from thalweg.plan.physical import QueryPlan
from thalweg.runtime.planner import Planner
from thalweg.runtime.sizes.living_rows import NEVER, LivingRows, scan_of
from thalweg.runtime.sizes.measured_joins import MeasuredJoins
from thalweg.runtime.sizes.side_by_side import Compared, SideBySide

BASES = ("fresh", "cached")
STATISTICS_BYTES = 1 << 20
"""What the statistics of all that is analyzed at once take at most, unless said otherwise."""
ALL_STATISTICS_BYTES = 64 << 20
MOST_IN_TREES = 6
"""Of joins of more inputs not every tree is looked at."""
MOST_LOOKED_AT = 2_000_000
"""With more rows at hand a query begins in the order of its text, and learns."""
MOST_MADE = 20_000_000
"""A sub-join of more rows is not made to be measured."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """The joins of a SELECT, and where the rows of each input come from, as of one frontier."""

    selected: SelectedJoins
    frontier: int
    rows: LivingRows

    def of(self, one: JoinInput) -> KeyedTable:
        return self.rows.of(self.selected.sources[one.alias], self.frontier)

    @property
    def is_at_hand(self) -> bool:
        """Whether all rows that live are kept, and few enough to be looked at unasked."""
        if self.frontier == NEVER or self.not_kept():
            return False
        sources = self.selected.sources.values()
        return sum(len(self.rows.of(s, self.frontier)) for s in sources) <= MOST_LOOKED_AT

    @property
    def calls_functions(self) -> bool:
        """Whether a condition calls a Python function, which is not called unasked."""
        exprs = (p.expr for r in self.selected.joins[0].inputs for p in r.predicates)
        return any(isinstance(e, UserCall) for expr in exprs for e in walk(expr))

    def not_kept(self) -> list[str]:
        """The inputs of which rows that live are not kept."""
        sources = self.selected.sources.items()
        return [a for a, s in sources if not self.rows.is_complete(s, self.frontier)]


class JoinSizes:
    """Answers about the names of one catalog."""

    def __init__(
        self,
        planner: Planner,
        rows: LivingRows,
        functions: Mapping[str, UserFunction],
        undisturbed: Callable[[Callable[[], Any]], Any] = lambda run: run(),
    ) -> None:
        """`undisturbed` runs something between epochs, so that no file is dropped meanwhile."""
        self._planner = planner
        self._undisturbed = undisturbed
        self._rows = rows
        self._functions = functions
        self._statistics = StatisticsCache(ALL_STATISTICS_BYTES)
        self._analyzed: dict[str, int] = {}
        self._joined: dict[str, set[str]] = {}

    def bound(
        self, sql: str, basis: str = "fresh", buckets: int = BUCKETS, degrees: str = "exact"
    ) -> Bounds:
        """The size of a SELECT's join, and of every connected part of it. `fresh` reads the rows
        that live now, `cached` only what ANALYZE has kept; without that it is unknown."""
        if basis not in BASES:
            raise ConfigError(f"no basis {basis}", remedy=f"use one of {', '.join(BASES)}")
        root = self._planner.relation(sql).root
        found: Bounds = self._undisturbed(lambda: self.bound_of(root, basis, buckets, degrees))
        return found

    def bound_of(
        self, root: Node, basis: str = "fresh", buckets: int = BUCKETS, degrees: str = "exact"
    ) -> Bounds:
        """The same for a query that is bound."""
        asked = self._asked(root)
        if basis == "cached":
            return self._cached(asked.selected)
        gone = asked.not_kept()
        if gone:
            return _unknown(asked, gone, degrees)
        return fresh_bound_of_select(asked.selected, asked.of, buckets, degrees, self._functions)

    def compare(self, sql: str) -> SideBySide:
        """Bound, estimate and measurement of every connected part of a SELECT's join. The bound is
        from statistics where all inputs have them, else from the rows."""
        root = self._planner.relation(sql).root
        found: SideBySide = self._undisturbed(lambda: self._compare(root))
        return found

    def _compare(self, root: Node) -> SideBySide:
        asked = self._asked(root)
        gone = asked.not_kept()
        if gone:
            return SideBySide((), _unknown(asked, gone, "exact"))
        query = asked.selected.joins[0]
        known = all(self._known(r.relation) is not None for r in query.inputs)
        whole = SelectedJoins((query,), asked.selected.sources)
        bounds = self._cached(whole) if known else fresh_bound_of_select(whole, asked.of)
        scans = {a: scan_of(s) for a, s in asked.selected.sources.items()}
        tables = {r.alias: asked.of(r).table for r in query.inputs}
        measured = MeasuredJoins(query, scans, tables, self._functions)
        rows = JoinRows.of(query, asked.of, self._functions)
        return SideBySide(tuple(self._compared(s, rows, measured) for s in bounds.subjoins), bounds)

    def _compared(self, one: SubJoin, rows: JoinRows, measured: MeasuredJoins) -> Compared:
        inputs = sum(1 << rows.graph.names.index(name) for name in one.sources)
        estimate = containment(rows, inputs)
        seen = UNKNOWN
        if one.figure.rows is not None and one.figure.rows <= MOST_MADE:
            seen = Figure.of(measured.count(one.sources), Kind.MEASUREMENT)
        return Compared(one.sources, one.figure, estimate, seen)

    def refuse_larger(self, bound: BoundQuery) -> None:
        """Refuse a query whose join has more rows than its `max_rows`, over what lives now; where a
        stream has had no rows yet, by the limits that windows declare."""
        most = bound.options.max_rows
        if most is None:
            return
        asked = self._asked(bound.root)
        found, basis = self._declared(asked), "by the windows' own limits"
        if asked.frontier != NEVER:
            found, basis = self.bound_of(bound.root).whole.figure, "over the rows that live now"
        if found.rows is not None and found.rows > most:
            advice = self.bound_of(bound.root).advice
            raise JoinTooLarge(
                f"the join has {found}, {basis}: more than max_rows = {most:,}",
                remedy=f"{advice}; or raise max_rows",
            )

    def _declared(self, asked: _Asked) -> Figure:
        """The product of what tables have and windows hold at most."""
        rows = 1
        for source in asked.selected.sources.values():
            most = source.window.most_rows if isinstance(source, Window) else None
            if scan_of(source).is_table:
                most = len(self._rows.of(source, asked.frontier))
            if most is None:
                return UNKNOWN
            rows *= most
        return Figure.of(rows, Kind.DECLARED)

    def ordered(self, bound: BoundQuery, plan: QueryPlan) -> QueryPlan:
        """The plan with what the rows at hand advise, for a query that has seen none yet: in which
        order rows are looked up, or the tree whose kept subresults are smallest. As it is where
        nothing is at hand."""
        pipelines = orderable_pipelines(plan)
        if not pipelines:
            return plan
        try:
            asked = self._asked(bound.root)
        except NotAvailableYet:  # of another shape than a join of sources
            return plan
        if asked.calls_functions or not asked.is_at_hand:
            return plan
        if bound.options.joins == "xjoin":
            return self._with_tree(plan, asked)
        orders = probe_orders(JoinRows.of(asked.selected.joins[0], asked.of, self._functions))
        for one in pipelines:
            names = [leaf.alias for leaf in plan.block(one.relation).leaves]
            if set(names) == set(orders):
                chosen = [names.index(n) for n in orders[names[one.leaf]]]
                plan = repiped(plan, one, chosen)
        return plan

    def _with_tree(self, plan: QueryPlan, asked: _Asked) -> QueryPlan:
        number = orderable_pipelines(plan)[0].relation
        block = plan.block(number)
        names = [leaf.alias for leaf in block.leaves]
        if set(names) != set(asked.selected.sources) or len(names) > MOST_IN_TREES:
            return plan
        bounds = fresh_bound_of_select(asked.selected, asked.of)
        known = {frozenset(names.index(a) for a in s.sources): s.figure for s in bounds.subjoins}

        def rows(leaves: frozenset[int]) -> float:
            found = known.get(leaves, UNKNOWN).rows
            return math.inf if found is None else found

        tree = smallest_tree(block, rows)
        return plan if tree is None else with_tree(plan, number, tree)

    # -- statistics --------------------------------------------------------------------------

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
        self._undisturbed(lambda: self._analyze(names, limit_bytes, joined_by or {}))

    def _analyze(
        self, names: Sequence[str], limit_bytes: int, joined_by: Mapping[str, Sequence[str]]
    ) -> None:
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
        catalog = self._planner.catalog
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
        catalog = self._planner.catalog
        known = [(n, rows) for n, rows in self._analyzed.items() if catalog.relation(n)]
        return [(n, rows, self._rows.count(self._scan(n))) for n, rows in known]

    def _scan(self, name: str) -> Scan:
        found = self._planner.catalog.relation(name)
        if not isinstance(found, (TableDef, StreamDef)):
            known = [*self._planner.catalog.tables, *self._planner.catalog.streams]
            raise UnknownName(f"unknown table {name}", remedy=did_you_mean(name, known))
        fields = tuple(replace(f, name=f"{found.name}.{f.name}") for f in found.fields)
        return Scan(found.name, found.name, fields, isinstance(found, TableDef))

    def _known(self, relation: str) -> TableStatistics | None:
        return self._statistics.get(relation, self._rows.version(self._scan(relation)))

    def _cached(self, selected: SelectedJoins) -> Bounds:
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

    def _asked(self, root: Node) -> _Asked:
        selected = joins_of(root)
        for one in selected.joins[0].inputs:
            self._joined.setdefault(one.relation, set()).update(c for _, c in one.columns)
        return _Asked(selected, self._rows.frontier(selected.sources.values()), self._rows)


def _unknown(asked: _Asked, gone: Sequence[str], degrees: str) -> Bounds:
    """What is said where rows that live are not at hand."""
    streams = dict.fromkeys(scan_of(asked.selected.sources[a]).relation for a in gone)
    told = f"rows that live in {', '.join(gone)} are not kept: give {', '.join(streams)} a RETAIN"
    whole = SubJoin(tuple(asked.selected.sources), UNKNOWN, degrees, "")
    return Bounds((whole,), "fresh", told)
