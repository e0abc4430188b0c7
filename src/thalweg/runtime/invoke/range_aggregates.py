"""Aggregates without groups, over any window of the rows that one condition accepts.

There is a tree (`synopses/ranked_tree.py`) for each condition and each column that is aggregated,
for all queries and windows. Trees are soft: rows that have arrived since are added at an
invocation, rows that have left the stream are removed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from thalweg.aggregates.kind import kind_of
from thalweg.aggregates.sums import SUM
from thalweg.columns.vector import OVERFLOW, Vector, from_arrow, numpy_type
from thalweg.exec.expressions.evaluate import evaluate
from thalweg.instants import BEFORE_TIME, Ints
from thalweg.plan.expr import Column, Expr
from thalweg.plan.logical import NamedAggregate
from thalweg.plan.physical import QueryPlan
from thalweg.plan.relations.block import Block
from thalweg.plan.types import DataType
from thalweg.store.packs import TIME
from thalweg.synopses.ranked_tree import RankedTree, Summary

_TREED = ("TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE")
Fetch = Callable[[list[str], int], pa.Table | None]
"""Rows that a condition has accepted, with some columns, from an instant on."""


def is_ranked(plan: QueryPlan) -> bool:
    """Whether a plan over one table only aggregates columns, all rows together."""
    block = plan.only_block
    if block is None or len(block.leaves) != 1:
        return False
    leaf, grouping = block.leaves[0], block.grouping
    if grouping is None or grouping.keys or leaf.filters or leaf.hints or block.top:
        return False
    return all(_is_simple(a) for a in grouping.aggregates)


def _is_simple(aggregate: NamedAggregate) -> bool:
    call = aggregate.call
    if call.distinct or kind_of(call).summary is None or len(call.arguments) > 1:
        return False
    if not call.arguments:
        return True
    argument = call.arguments[0]
    return isinstance(argument, Column) and argument.type.name in _TREED


@dataclass(slots=True)
class _Ranks:
    """The accepted rows of one condition, in the order of time: their times, and a tree over one
    column of them, up to an instant. The first `gone` rows have left the stream."""

    tree: RankedTree = field(default_factory=RankedTree)
    times: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    gone: int = 0
    until: int = BEFORE_TIME


class RangeAggregates:
    """All trees by condition and column; row counts are under a column without a name."""

    def __init__(self) -> None:
        self._ranks: dict[tuple[str, str], _Ranks] = {}

    @property
    def trees(self) -> int:
        return sum(column != "" for _, column in self._ranks)

    def forget(self, condition: str) -> None:
        for key in [k for k in self._ranks if k[0] == condition]:
            del self._ranks[key]

    def answer(
        self,
        plan: QueryPlan,
        condition: str,
        fetch: Fetch,
        known: tuple[int, int],
        low: int,
        high: int,
    ) -> pa.Table:
        """The answer over rows with low ≤ event time < high. The condition's rows are `known` from
        one instant up to another."""
        block = plan.only_block
        assert block is not None
        assert block.grouping is not None
        leaf = block.leaves[0]
        found = {}
        for aggregate in block.grouping.aggregates:
            argument = next(iter(aggregate.call.arguments), None)
            column = leaf.bare(argument.name) if isinstance(argument, Column) else ""
            ranks = self._grown(condition, column, argument, fetch, known)
            begin, end = (int(i) + ranks.gone for i in np.searchsorted(ranks.times, (low, high)))
            if argument is None:
                found[aggregate.name] = _one(aggregate.call.type, max(end - begin, 0))
            else:
                found[aggregate.name] = _vector(aggregate, ranks.tree.query(begin, end))
        return _projected(block, found)

    def _grown(
        self,
        condition: str,
        column: str,
        argument: Expr | None,
        fetch: Fetch,
        known: tuple[int, int],
    ) -> _Ranks:
        """The tree with all rows that have arrived since the last time."""
        ranks = self._ranks.setdefault((condition, column), _Ranks())
        since, until = known
        if until > ranks.until:
            table = fetch([TIME] if argument is None else [column, TIME], ranks.until)
            ranks.until = until
            if table is not None:
                table = table.sort_by([(TIME, "ascending")])
                ranks.times = np.append(ranks.times, table.column(TIME).to_numpy())
                if argument is not None:
                    vector = from_arrow(table.column(column), argument.type)
                    ranks.tree.append(np.asarray(vector.data), vector.valid)
        out = int(np.searchsorted(ranks.times, since))
        ranks.times, ranks.gone = ranks.times[out:], ranks.gone + out
        ranks.tree.evict(ranks.gone)
        return ranks


def _vector(aggregate: NamedAggregate, summary: Summary) -> Vector:
    kind = kind_of(aggregate.call)
    assert kind.summary is not None
    found = _one(aggregate.call.type, kind.summary(summary))
    if kind is SUM and summary.overflown:
        found.errors = np.array([OVERFLOW], np.uint8)
    return found


def _one(dtype: DataType, value: float | None) -> Vector:
    kind = numpy_type(dtype)
    assert kind is not None
    if value is None:
        return Vector(dtype, np.zeros(1, kind), np.zeros(1, np.bool_))
    return Vector(dtype, np.array([value], kind))


def _projected(block: Block, found: dict[str, Vector]) -> pa.Table:
    """HAVING and the columns, of the one row that there is."""
    for predicate in block.having:
        passed = evaluate(predicate.expr, found, 1, {})
        if not (passed.usable & passed.data).all():
            return pa.table({c.name: pa.nulls(0) for c in block.columns})
    vectors = {c.name: evaluate(c.expr, found, 1, {}).stretch(1) for c in block.columns}
    rows = {name: vector.to_arrow() for name, vector in vectors.items()}
    if any(v.errors is not None and v.errors.any() for v in vectors.values()):
        return pa.table({name: array.slice(0, 0) for name, array in rows.items()})
    return pa.table(rows)
