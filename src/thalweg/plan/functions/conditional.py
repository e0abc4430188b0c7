"""Choices between values: the branch not taken is never evaluated for that row."""

from __future__ import annotations

from collections.abc import Sequence

from thalweg.plan.expr import Expr, Literal
from thalweg.plan.functions.operators import condition, ordered, unified
from thalweg.plan.functions.signature import DEFINITIONS, define, make, mismatch
from thalweg.plan.types import NULL, STRING


@define("case", usage="condition, value, ... [, default]")
def _case(name: str, args: Sequence[Expr]) -> Expr:
    if len(args) < 2:
        raise mismatch(name, args)
    if len(args) % 2 == 0:
        args = [*args, Literal(NULL, True, None)]
    conditions = [condition(name, a, args) for a in args[:-1:2]]
    values, wanted = unified(name, [*args[1:-1:2], args[-1]])
    flat = [e for pair in zip(conditions, values[:-1], strict=True) for e in pair]
    nullable = any(v.nullable for v in values)
    return make(name, wanted, [*flat, values[-1]], nullable=nullable)


@define("if", usage="if(condition, value [, otherwise])")
def _if(name: str, args: Sequence[Expr]) -> Expr:
    if len(args) not in (2, 3):
        raise mismatch(name, args)
    return _case("case", args)


@define("coalesce", usage="coalesce(value, ...)")
def _coalesce(name: str, args: Sequence[Expr]) -> Expr:
    if not args:
        raise mismatch(name, args)
    fitted, wanted = unified(name, args)
    if len(fitted) == 1:
        return fitted[0]
    return make(name, wanted, fitted, nullable=all(a.nullable for a in fitted))


@define("nvl", usage="nvl(value, otherwise)")
def _nvl(name: str, args: Sequence[Expr]) -> Expr:
    if len(args) != 2:
        raise mismatch(name, args)
    return _coalesce("coalesce", args)


@define("nvl2", usage="nvl2(value, if_not_null, if_null)")
def _nvl2(name: str, args: Sequence[Expr]) -> Expr:
    if len(args) != 3:
        raise mismatch(name, args)
    present = DEFINITIONS["is_not_null"].resolver("is_not_null", args[:1])
    return _case("case", [present, args[1], args[2]])


@define("nullif", usage="nullif(value, unwanted)")
def _nullif(name: str, args: Sequence[Expr]) -> Expr:
    if len(args) != 2:
        raise mismatch(name, args)
    equal = DEFINITIONS["="].resolver("=", args)
    return _case("case", [equal, Literal(NULL, True, None), args[0]])


@define("greatest", "least", usage="two or more values of one type that has an order")
def _extreme(name: str, args: Sequence[Expr]) -> Expr:
    texts = {a.type == STRING for a in args if a.type != NULL}
    if len(args) < 2 or len(texts) == 2:  # text is not promoted here
        raise mismatch(name, args)
    fitted, wanted = ordered(name, args)
    return make(name, wanted, fitted, nullable=all(a.nullable for a in fitted))
