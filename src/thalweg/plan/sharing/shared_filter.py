"""Queries that only filter one stream: a conjunction tested on each row, and some of its columns.

However many there are of them, they run as one (see `exec/shared_filters`): their differences are
data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from thalweg.plan.expr import Call, Column, Expr, Literal, Predicate, UserCall, transform, walk
from thalweg.plan.functions import can_raise
from thalweg.plan.leaf import Leaf
from thalweg.plan.logical import EmitKind
from thalweg.plan.physical import QueryPlan
from thalweg.plan.relations.block import Block
from thalweg.plan.types import DataType
from thalweg.windows.range import UNBOUNDED

_TURNED = {"<": ">", "<=": ">=", "=": "=", ">=": "<=", ">": "<"}
_COMPARED = (
    "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "STRING", "DATE", "TIMESTAMP",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Comparison:
    """A column of the stream and a constant of its type; the operator is one of <, <=, =, >=, >."""

    column: str
    type: DataType
    operator: str
    constant: Any


@dataclass(frozen=True, slots=True)
class StandingFilter:
    """All comparisons and all the `rest` must hold (in the stream's own names). `columns` are the
    output's names and the columns they stand for."""

    stream: str
    comparisons: tuple[Comparison, ...]
    rest: tuple[Expr, ...]
    columns: tuple[tuple[str, str], ...]


def standing_filter(plan: QueryPlan) -> StandingFilter | None:
    """The filter of a query, if it is nothing more, and no row can make it fail."""
    block = plan.only_block
    if block is None or plan.kind is not EmitKind.ISTREAM or plan.order:
        return None
    if len(block.leaves) != 1 or not _is_plain(block):
        return None
    leaf = block.leaves[0]
    if not _is_bare(leaf) or not all(isinstance(c.expr, Column) for c in block.columns):
        return None
    columns = [(c.name, c.expr) for c in block.columns]
    return _asked(leaf, tuple((n, leaf.bare(e.name)) for n, e in columns if isinstance(e, Column)))


def where_filter(plan: QueryPlan) -> StandingFilter | None:
    """The condition of a query over windows of one stream on each row, whatever its time."""
    leaves = plan.leaves
    if len(leaves) != 1 or plan.relations[0].sees_rows_once:
        return None
    leaf = leaves[0]
    if leaf.is_table or leaf.members or leaf.keeps_rows:
        return None
    return _asked(leaf, ())


def _asked(leaf: Leaf, columns: tuple[tuple[str, str], ...]) -> StandingFilter | None:
    predicates = leaf.filters + leaf.hints
    if any(map(is_opaque, predicates)):
        return None
    comparisons, rest = split_up([_own(leaf, p.expr) for p in predicates])
    return StandingFilter(leaf.relation, comparisons, rest, columns)


def split_up(asked: Sequence[Expr]) -> tuple[tuple[Comparison, ...], tuple[Expr, ...]]:
    """Conjuncts that an index supports, and the rest."""
    compared = [(_comparison(e), e) for e in asked]
    found = tuple(c for c, _ in compared if c is not None)
    return found, tuple(e for c, e in compared if c is None)


def _is_plain(block: Block) -> bool:
    return block.grouping is None and not block.having and not block.top and block.outer is None


def _is_bare(leaf: Leaf) -> bool:
    """Whether a scan reads the whole stream, each row once, as it arrives."""
    whole = leaf.is_stored and leaf.window == UNBOUNDED
    return whole and not leaf.members and not leaf.post_filters


def is_opaque(predicate: Predicate) -> bool:
    """Whether it may fail on a row, or calls a user function."""
    return can_raise(predicate.expr) or any(isinstance(e, UserCall) for e in walk(predicate.expr))


def _own(leaf: Leaf, expr: Expr) -> Expr:
    """An expression in the stream's own names."""

    def bare(node: Expr) -> Expr:
        if isinstance(node, Column):
            return Column(node.type, node.nullable, leaf.bare(node.name))
        return node

    return transform(expr, bare)


def _comparison(expr: Expr) -> Comparison | None:
    if not isinstance(expr, Call) or expr.function not in _TURNED:
        return None
    left, right = expr.args
    operator = expr.function
    if isinstance(left, Literal):
        left, right, operator = right, left, _TURNED[operator]
    if not isinstance(left, Column) or not isinstance(right, Literal) or right.value is None:
        return None
    if left.type != right.type or left.type.name not in _COMPARED:
        return None
    return Comparison(left.name, left.type, operator, right.value)
