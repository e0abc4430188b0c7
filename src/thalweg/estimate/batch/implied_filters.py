"""Filters of one input that hold of others, too: through the attribute that they share.

    SELECT ... FROM a, b WHERE a.x = b.x AND a.x % 64 = 3

Rows of b take part only if `b.x % 64 = 3`. Spark infers the same, so that sizes without it would be
those of other joins than the ones it runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from thalweg.estimate.equalities import IMPLIED
from thalweg.estimate.join_query import JoinInput, JoinQuery
from thalweg.plan.expr import Column, Expr, Predicate, columns_of, transform


def with_implied_filters(query: JoinQuery, columns: Mapping[str, Column]) -> JoinQuery:
    """The join where each filter over one column of an attribute restricts all inputs that have the
    attribute in a column of the same type. `columns` are those of the inputs by name."""
    found = {r.alias: list(r.predicates) for r in query.inputs}
    for one in query.inputs:
        for predicate in one.predicates:
            names = columns_of(predicate.expr)
            attribute = next((a for a, c in one.columns if names == {f"{one.alias}.{c}"}), None)
            for other in query.inputs:
                if other is not one and attribute in other.attributes:
                    assert attribute is not None
                    moved = _moved(predicate, one, other, attribute, columns)
                    if moved is not None and moved not in found[other.alias]:
                        found[other.alias].append(moved)
    inputs = tuple(replace(r, predicates=tuple(found[r.alias])) for r in query.inputs)
    return replace(query, inputs=inputs)


def _moved(
    predicate: Predicate,
    one: JoinInput,
    other: JoinInput,
    attribute: str,
    columns: Mapping[str, Column],
) -> Predicate | None:
    here = columns[f"{one.alias}.{one.column(attribute)}"]
    there = columns[f"{other.alias}.{other.column(attribute)}"]
    if here.type != there.type:
        return None

    def change(expr: Expr) -> Expr:
        return there if isinstance(expr, Column) else expr

    return Predicate(transform(predicate.expr, change), IMPLIED)
