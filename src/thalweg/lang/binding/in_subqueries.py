"""WHERE with subqueries: IN becomes a join with the subquery's values, NOT IN an anti join."""

from __future__ import annotations

from thalweg.errors import BindError, ThalwegError
from thalweg.lang.binding.bound_parts import Bind, Items, refuse_curves, refuse_whole, written_kind
from thalweg.lang.binding.conditions import bound_predicates, conjuncts_of
from thalweg.lang.binding.scope import Scope
from thalweg.lang.parsing import ast
from thalweg.lang.syntax import exp
from thalweg.plan import functions
from thalweg.plan.expr import Expr, Literal, Predicate
from thalweg.plan.logical import (
    Count,
    CountRule,
    Filter,
    Join,
    Named,
    Node,
    OuterJoin,
    OuterKind,
    Project,
    has_streams,
)
from thalweg.plan.types import BOOLEAN


def filtered(items: Items, scope: Scope, bind: Bind, conditions: tuple[exp.Expr, ...] = ()) -> Node:
    """The items joined, with the rows on which all conditions hold."""
    conjuncts = [c for node in (*items.conditions, *conditions) for c in conjuncts_of(node)]
    asked = [c for c in conjuncts if _membership(c) is not None]
    others = tuple(c for c in conjuncts if _membership(c) is None)
    predicates = bound_predicates(scope, others)
    members = list(items.members)
    absent = []
    for i, node in enumerate(asked):
        member, test, is_there = _member(scope, bind, node, i)
        position = Predicate(test, len(conjuncts) + i, _text(node, is_there))
        if is_there:
            members.append(Count(CountRule.DISTINCT, (member,)))
            predicates += (position,)
        else:
            absent.append((member, position))
    body = members[0] if len(members) == 1 else Join(tuple(members))
    body = Filter(body, predicates) if predicates else body
    for member, position in absent:
        body = OuterJoin(OuterKind.ANTI, body, member, (position,))
    return body


def asks_streams(body: Node) -> bool:
    """Whether rows that are `filtered` may come and go, because a subquery of the conditions reads
    a stream."""
    if isinstance(body, OuterJoin):
        return has_streams(body.right) or asks_streams(body.left)
    if isinstance(body, Filter):
        return asks_streams(body.input)
    return isinstance(body, Join) and any(map(has_streams, body.members[1:]))


def _member(scope: Scope, bind: Bind, node: exp.Expr, number: int) -> tuple[Node, Expr, bool]:
    """The values of the subquery of `x [NOT] IN (SELECT ...)`, the test of a row against one of
    them, and whether one must, or none may, pass it."""
    found = _membership(node)
    assert found is not None
    asked, is_there = found
    query: ast.Query = asked.meta["query"]
    if written_kind(query) is not None:
        error = BindError("a subquery in a condition is a relation", remedy="drop ISTREAM")
        scope.fail(error, query.at)
    found_inner = bind(query, scope.catalog, scope.text)
    refuse_whole(query, found_inner, scope.text)
    refuse_curves(found_inner.curves, "IN", query.at, scope.text)
    inner = found_inner.node
    if len(inner.schema) != 1:
        scope.fail(
            BindError(
                "IN takes a subquery of one column", remedy="select the one column to compare with"
            ),
            query.at,
        )
    column = Named(f"in {number + 1}.{inner.schema[0].name}", inner.schema[0].column())
    value = column.field().column()
    operand = scope.bind(asked.this)
    try:
        test = functions.resolve("=", [operand, value])
        if not is_there and test.nullable:  # NOT IN is not true where the result is unknown
            test = functions.resolve("coalesce", [test, Literal(BOOLEAN, False, True)])
    except ThalwegError as refusal:
        raise scope.place(refusal, node) from None
    return Project(inner, (column,)), test, is_there


def _text(node: exp.Expr, is_there: bool) -> str:
    found = _membership(node)
    assert found is not None
    asked = found[0]
    operand = asked.this.sql(dialect="spark", normalize_functions=False)
    return f"{operand} {'IN' if is_there else 'NOT IN'} ({asked.meta['text']})"


def _membership(node: exp.Expr) -> tuple[exp.In, bool] | None:
    """`x IN (SELECT ...)`, and whether it is required (or negated)."""
    is_there = True
    while isinstance(node, (exp.Paren, exp.Not)):
        is_there ^= isinstance(node, exp.Not)
        node = node.this
    if not isinstance(node, exp.In) or "query" not in node.meta:
        return None
    return node, is_there ^ bool(node.args.get("negate"))
