"""How large the join of a SELECT is: bounded from living rows or from statistics, and beside that
estimated and measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from thalweg.errors import ConfigError
from thalweg.estimate.baselines.containment import containment
from thalweg.estimate.bounds import Bounds, SubJoin
from thalweg.estimate.figure import UNKNOWN, Figure, Kind
from thalweg.estimate.fresh import BUCKETS, fresh_bound, fresh_bound_of_select
from thalweg.estimate.from_select import SelectedJoins
from thalweg.estimate.join_rows import JoinRows
from thalweg.exec.expressions.evaluate import UserFunction
from thalweg.plan.logical import Node
from thalweg.runtime.planner import Planner
from thalweg.runtime.sizes.asked_join import AskedJoin
from thalweg.runtime.sizes.living_rows import LivingRows, scan_of
from thalweg.runtime.sizes.measured_joins import MeasuredJoins
from thalweg.runtime.sizes.side_by_side import Compared, SideBySide
from thalweg.runtime.sizes.table_analysis import TableAnalysis

BASES = ("fresh", "cached")
MOST_MADE = 20_000_000
"""A sub-join of more rows is not made to be measured."""


class JoinSizes:
    """Answers about the names of one catalog. `undisturbed` runs something between epochs, so that
    no file is dropped meanwhile."""

    def __init__(
        self,
        planner: Planner,
        rows: LivingRows,
        analysis: TableAnalysis,
        functions: Mapping[str, UserFunction],
        undisturbed: Callable[[Callable[[], Any]], Any] = lambda run: run(),
    ) -> None:
        self._planner = planner
        self._rows = rows
        self._analysis = analysis
        self._functions = functions
        self._undisturbed = undisturbed

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
        asked = self.asked(root)
        gone = asked.not_kept()
        if gone:
            return asked.unknown(gone, basis, degrees)
        if basis == "cached":
            return self._analysis.bounds(asked.selected)
        return fresh_bound_of_select(asked.selected, asked.of, buckets, degrees, self._functions)

    def compare(self, sql: str) -> SideBySide:
        """Bound, estimate and measurement of every connected part of a SELECT's join. The bound is
        from statistics where all inputs have them, else from the rows."""
        root = self._planner.relation(sql).root
        found: SideBySide = self._undisturbed(lambda: self._compare(root))
        return found

    def _compare(self, root: Node) -> SideBySide:
        asked = self.asked(root)
        gone = asked.not_kept()
        if gone:
            return SideBySide((), asked.unknown(gone, "fresh", "exact"))
        query = asked.selected.joins[0]
        if self._analysis.knows(query):
            bounds = self._analysis.bounds(SelectedJoins((query,), asked.selected.sources))
        else:
            bounds = fresh_bound(query, asked.of, functions=self._functions)
        scans = {a: scan_of(s) for a, s in asked.selected.sources.items()}
        tables = {r.alias: asked.of(r).table for r in query.inputs}
        measured = MeasuredJoins(query, scans, tables, self._functions)
        rows = self.joined_rows(asked)
        return SideBySide(tuple(self._compared(s, rows, measured) for s in bounds.subjoins), bounds)

    def _compared(self, one: SubJoin, rows: JoinRows, measured: MeasuredJoins) -> Compared:
        inputs = sum(1 << rows.graph.names.index(name) for name in one.sources)
        estimate = containment(rows, inputs)
        seen = UNKNOWN
        if one.figure.rows is not None and one.figure.rows <= MOST_MADE:
            seen = Figure.of(measured.count(one.sources), Kind.MEASUREMENT)
        return Compared(one.sources, one.figure, estimate, seen)

    # -- for those who plan ------------------------------------------------------------------

    def asked(self, root: Node) -> AskedJoin:
        """The joins of a bound query, over what lives now."""
        found = AskedJoin.by(root, self._rows)
        self._analysis.joined(found.selected.joins[0])
        return found

    def joined_rows(self, asked: AskedJoin) -> JoinRows:
        """The rows of the join of all inputs that pass its filters, with their keys."""
        return JoinRows.of(asked.selected.joins[0], asked.of, self._functions)
