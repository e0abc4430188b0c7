"""Sizes of a join from its rows, which are read now.

Acyclic sub-joins without further conditions across inputs are counted exactly. All others are
bounded: by the exact count without those conditions where equalities alone are acyclic, else by the
lowest of derivations over several allocations of buckets and the AGM bound.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from thalweg.errors import ConfigError
from thalweg.estimate.bounds import Bounds, SubJoin
from thalweg.estimate.cyclic import CyclicBounds
from thalweg.estimate.degrees import METHODS
from thalweg.estimate.exact_count import ExactCounts
from thalweg.estimate.explosion import advice
from thalweg.estimate.figure import Figure, Kind
from thalweg.estimate.hypergraph import connected_sets, in_words
from thalweg.estimate.join_query import JoinQuery
from thalweg.estimate.join_rows import JoinRows, RowsOf, from_tables
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
) -> Bounds:
    """The size of a join and of every connected sub-join, from the rows at hand.

    `rows` gives the rows of an input, not yet filtered; of a window those that live. A mapping has
    tables by the name of their relation. `buckets` is the most cells of any tensor. Exact counts
    need exact `degrees`: another method bounds (`mg_raw`: estimates) acyclic joins, too.
    """
    if degrees not in METHODS:
        raise ConfigError(
            f"degrees are not counted by {degrees}", remedy=f"use one of {', '.join(METHODS)}"
        )
    if buckets < 1:
        raise ConfigError("a bound needs at least one bucket", remedy="say buckets = 1 or more")
    rows_of = from_tables(rows) if isinstance(rows, Mapping) else rows
    return _Fresh(JoinRows.of(query, rows_of, functions), buckets, degrees).bounds()


@dataclass(slots=True)
class _Fresh:
    rows: JoinRows
    buckets: int
    degrees: str

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
                found.append(self._counted(inputs, counted))
            elif derived is not None:
                figure, formula = derived.figure(inputs)
                found.append(SubJoin(graph.named(inputs), figure, self.degrees, formula))
        sizes = {n: self.rows.size(i) for i, n in enumerate(graph.names)}
        keys = {a: graph.named(h) for a, h in graph.holders.items()}
        return Bounds(tuple(found), "fresh", advice(found, sizes, keys))

    def _counted(self, inputs: int, figure: Figure) -> SubJoin:
        names = self.rows.graph.named(inputs)
        formula = f"sum-product over {in_words(names)}" if len(names) > 1 else f"c_{names[0]}"
        if figure.kind is Kind.EXACT and self._is_restricted(names):
            figure = Figure(figure.rows, Kind.BOUND)
            formula += ", conditions across inputs left out"
        return SubJoin(names, figure, "exact", formula)

    def _is_restricted(self, names: tuple[str, ...]) -> bool:
        """Whether a condition across inputs restricts a sub-join."""
        return any(
            {c.split(".", 1)[0] for c in columns_of(p.expr)} <= set(names)
            for p in self.rows.query.residual
        )
