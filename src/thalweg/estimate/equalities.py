"""Conditions of an inner join sorted into equalities of columns, filters of one input, and others.

Columns that equalities link are one attribute. Two columns of one input that become one attribute
are equal in each of its rows that can join: that is one more filter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from thalweg.estimate.conditions import conditions_of
from thalweg.estimate.join_query import Attribute, JoinInput, JoinQuery
from thalweg.estimate.keys.key_type import key_type
from thalweg.plan import functions
from thalweg.plan.expr import Call, Column, Expr, Predicate, columns_of
from thalweg.plan.functions import is_deterministic
from thalweg.plan.functions.casting import common_type
from thalweg.plan.types import STRING, DataType

IMPLIED = -1
"""The position of a predicate that is not written, but follows from others."""


@dataclass(slots=True)
class _Class:
    """Columns that are equal, in the order of the text; `null_safe` if all equalities are."""

    columns: list[Column]
    null_safe: bool = True


def join_query(
    relations: Mapping[str, str],
    predicates: Sequence[Predicate],
    left_out: Sequence[Predicate] = (),
) -> JoinQuery:
    """The join of inputs (relation by alias). `predicates` hold of its rows, over columns
    `alias.column`; of `left_out` some may not be known here: they are residual."""
    classes, filters, residual = _sorted_out(relations, predicates)
    attributes, columns = [], {alias: [] for alias in relations}  # type: ignore[var-annotated]
    for one in classes:
        name = one.columns[0].name
        attributes.append(Attribute(name, one.null_safe))
        chosen: dict[str, Column] = {}
        compared = key_type([c.type for c in one.columns])
        for column in sorted(one.columns, key=lambda c: c.name):  # whatever the text's order is
            alias, short = column.name.split(".", 1)
            if alias in chosen:
                filters[alias].append(_equal(chosen[alias], column, compared, one.null_safe))
            else:
                chosen[alias] = column
                columns[alias].append((name, short))
    inputs = tuple(
        JoinInput(
            alias, relation, tuple(columns[alias]), tuple(filters[alias]),
            conditions_of(filters[alias]),
        )
        for alias, relation in relations.items()
    )  # fmt: skip
    return JoinQuery(inputs, tuple(attributes), (*residual, *left_out))


def _sorted_out(
    relations: Mapping[str, str], predicates: Sequence[Predicate]
) -> tuple[list[_Class], dict[str, list[Predicate]], list[Predicate]]:
    classes: list[_Class] = []
    filters: dict[str, list[Predicate]] = {alias: [] for alias in relations}
    residual = []
    for predicate in (part for p in predicates for part in _conjuncts(p)):
        aliases = {c.split(".", 1)[0] for c in columns_of(predicate.expr)}
        pair = equated(predicate.expr)
        if len(aliases) == 1 and is_deterministic(predicate.expr):
            filters[aliases.pop()].append(predicate)
        elif len(aliases) == 2 and pair is not None:
            assert isinstance(predicate.expr, Call)
            _merge(classes, pair, predicate.expr.function == "<=>")
        else:
            residual.append(predicate)
    return classes, filters, residual


def _merge(classes: list[_Class], pair: tuple[Column, Column], null_safe: bool) -> None:
    touched = [c for c in classes if any(p.name == o.name for p in pair for o in c.columns)]
    columns = {o.name: o for c in touched for o in c.columns} | {p.name: p for p in pair}
    merged = _Class(list(columns.values()), null_safe and all(c.null_safe for c in touched))
    classes[:] = [c for c in classes if c not in touched] + [merged]


def equated(expr: Expr) -> tuple[Column, Column] | None:
    """The columns of an equality that compares them as Spark's coercion does, whatever casts are
    written. Text beside another type is no key."""
    if not isinstance(expr, Call) or expr.function not in ("=", "<=>"):
        return None
    left, right = (_column(a) for a in expr.args)
    if left is None or right is None:
        return None
    types = [left.type, right.type]
    texts = STRING in types and left.type != right.type
    if texts or common_type(types) != expr.args[0].type:
        return None
    return left, right


def _column(expr: Expr) -> Column | None:
    if isinstance(expr, Call) and expr.function == "cast":
        (expr,) = expr.args
    return expr if isinstance(expr, Column) else None


def _equal(one: Column, other: Column, compared: DataType, null_safe: bool) -> Predicate:
    """Two columns of one input as the join compares them."""
    both = [functions.cast(column, compared) for column in (one, other)]
    return Predicate(functions.resolve("<=>" if null_safe else "=", both), IMPLIED)


def _conjuncts(predicate: Predicate) -> list[Predicate]:
    expr = predicate.expr
    if isinstance(expr, Call) and expr.function == "and":
        parts = (Predicate(a, predicate.position, str(a)) for a in expr.args)
        return [p for part in parts for p in _conjuncts(part)]
    return [predicate]
