"""Sizes of a join from its rows, which are read now.

Acyclic sub-joins without further conditions across inputs are counted exactly. All others are
bounded: by the exact count without those conditions where equalities alone are acyclic, else by the
lowest of derivations over several allocations of buckets and the AGM bound.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from thalweg.errors import ConfigError
from thalweg.estimate.bounds import Bounds, SubJoin
from thalweg.estimate.cyclic import CyclicBounds
from thalweg.estimate.degrees import METHODS
from thalweg.estimate.exact_count import ExactCounts
from thalweg.estimate.explosion import advice
from thalweg.estimate.figure import UNKNOWN, Figure, Kind
from thalweg.estimate.from_select import SelectedJoins
from thalweg.estimate.hypergraph import connected_sets, in_words
from thalweg.estimate.join_query import JoinQuery
from thalweg.estimate.join_rows import JoinRows, RowsOf, from_tables
from thalweg.estimate.reduction import PROPAGATE_MAX_KEYS, reduced
from thalweg.exec.expressions.evaluate import UserFunction
from thalweg.plan.expr import columns_of

BUCKETS = 4096
_MOST_SUBJOINS = 4096


def fresh_bound(
    query: JoinQuery,
    rows: RowsOf | Mapping[str, pa.Table],
    buckets: int = BUCKETS,
    degrees: str = "exact",
    functions: Mapping[str, UserFunction] | None = None,
    propagate_max_keys: int = PROPAGATE_MAX_KEYS,
) -> Bounds:
    """The size of a join and of every connected sub-join, from the rows at hand.

    `rows` gives the rows of an input, not yet filtered; of a window those that live. A mapping has
    tables by the name of their relation. `buckets` is the most cells of any tensor. Exact counts
    need exact `degrees`: another method bounds (`mg_raw`: estimates) acyclic joins, too. Filters
    with at most `propagate_max_keys` keys restrict what joins them before the whole is bounded.
    """
    if degrees not in METHODS:
        raise ConfigError(
            f"degrees are not counted by {degrees}", remedy=f"use one of {', '.join(METHODS)}"
        )
    if buckets < 1:
        raise ConfigError("a bound needs at least one bucket", remedy="say buckets = 1 or more")
    rows_of = from_tables(rows) if isinstance(rows, Mapping) else rows
    joined = JoinRows.of(query, rows_of, functions)
    return _Fresh(joined, buckets, degrees, propagate_max_keys).bounds()


def fresh_bound_of_select(
    selected: SelectedJoins,
    rows: RowsOf | Mapping[str, pa.Table],
    buckets: int = BUCKETS,
    degrees: str = "exact",
    functions: Mapping[str, UserFunction] | None = None,
) -> Bounds:
    """The same for a SELECT: with outer joins, the sum over the joins of which its rows are a part;
    its sub-joins are those of all inputs, joined without regard to rows that have no partner."""
    rows_of = from_tables(rows) if isinstance(rows, Mapping) else rows
    found = [fresh_bound(one, rows_of, buckets, degrees, functions) for one in selected.joins]
    first = found[0]
    if len(found) == 1:
        return first
    parts = [one.whole for one in found]
    kinds = {part.figure.kind for part in parts}
    counts = [part.figure.rows for part in parts]
    total = UNKNOWN
    if None not in counts:
        kind = Kind.ESTIMATE if Kind.ESTIMATE in kinds else Kind.BOUND
        total = Figure.of(sum(c for c in counts if c is not None), kind)
    formula = " + ".join(part.formula for part in parts)
    whole = SubJoin(parts[0].sources, total, parts[0].degrees, formula)
    return replace(first, subjoins=(*first.subjoins[:-1], whole))


@dataclass(slots=True)
class _Fresh:
    rows: JoinRows
    buckets: int
    degrees: str
    most_keys: int

    def bounds(self) -> Bounds:
        graph = self.rows.graph
        sets = [s for s in connected_sets(graph, _MOST_SUBJOINS) if s & (s - 1)]
        if not sets or sets[-1] != graph.whole:
            sets.append(graph.whole)
        counts = ExactCounts(self.rows)
        exact = {s: counts.count(s) for s in sets} if self.degrees == "exact" else {}
        derived = None
        if any(exact.get(s) is None for s in sets):
            derived = CyclicBounds(self.rows, self.buckets, self.degrees)
        found = []
        for inputs in sets:
            counted = exact.get(inputs)
            if counted is not None:
                formula = _summed(graph.named(inputs))
                found.append(self._counted(inputs, counted, formula, "exact"))
            elif derived is not None:
                figure, formula = derived.figure(inputs)
                if inputs == graph.whole:
                    figure, formula = self._reduced(figure, formula)
                found.append(self._counted(inputs, figure, formula, self.degrees))
        sizes = {n: self.rows.size(i) for i, n in enumerate(graph.names)}
        keys = {a: graph.named(h) for a, h in graph.holders.items()}
        return Bounds(tuple(found), "fresh", advice(found, sizes, keys))

    def _reduced(self, figure: Figure, formula: str) -> tuple[Figure, str]:
        """The size of the whole after filters went through keys, if that is lower."""
        smaller = reduced(self.rows, self.most_keys)
        if not smaller.notes:
            return figure, formula
        whole = smaller.rows.graph.whole
        counted = ExactCounts(smaller.rows).count(whole) if self.degrees == "exact" else None
        if counted is None:
            counted, words = CyclicBounds(smaller.rows, self.buckets, self.degrees).figure(whole)
        else:
            words = _summed(smaller.rows.graph.names)
        if not smaller.is_exact and counted.kind is Kind.EXACT:
            counted = Figure(counted.rows, Kind.BOUND)
        lower = figure.rows is None or (counted.rows is not None and counted.rows <= figure.rows)
        return (counted, "; ".join((words, *smaller.notes))) if lower else (figure, formula)

    def _counted(self, inputs: int, figure: Figure, formula: str, degrees: str) -> SubJoin:
        names = self.rows.graph.named(inputs)
        if figure.kind is Kind.EXACT and self._is_restricted(names):
            figure = Figure(figure.rows, Kind.BOUND)
            formula += "; conditions across inputs left out"
        return SubJoin(names, figure, degrees, formula)

    def _is_restricted(self, names: tuple[str, ...]) -> bool:
        """Whether a condition that is left out may restrict a sub-join."""
        known = set(self.rows.graph.names)
        return any(
            {c.split(".", 1)[0] for c in columns_of(p.expr)} & known <= set(names)
            for p in self.rows.query.residual
        )


def _summed(names: tuple[str, ...]) -> str:
    return f"sum-product over {in_words(names)}" if len(names) > 1 else f"c_{names[0]}"
