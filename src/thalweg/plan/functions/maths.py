"""Functions on numbers."""

from __future__ import annotations

from collections.abc import Sequence

from thalweg.plan.expr import Call, Expr, Literal
from thalweg.plan.functions.casting import cast, implicit
from thalweg.plan.functions.operators import numbers
from thalweg.plan.functions.signature import always, define, make, mismatch, simple
from thalweg.plan.types import BIGINT, BOOLEAN, DOUBLE, FLOAT, INT, STRING

_UNARY = ("sqrt", "cbrt", "exp", "sin", "cos", "tan", "atan", "degrees", "radians", "sign")
for _name in _UNARY:
    simple(_name, [DOUBLE], DOUBLE)
for _name in ("ln", "log2", "log10"):
    simple(_name, [DOUBLE], DOUBLE, nullable=True)  # NULL at and below zero
for _name in ("power", "atan2"):
    simple(_name, [DOUBLE, DOUBLE], DOUBLE)
simple("isnan", [DOUBLE], BOOLEAN, nullable=False)


@define("nanvl", usage="nanvl(number, instead_of_nan)")
def _nanvl(name: str, args: Sequence[Expr]) -> Expr:
    wanted = FLOAT if all(a.type == FLOAT for a in args) else DOUBLE
    fitted = [implicit(a, wanted) for a in args]
    known = [a for a in fitted if a is not None]
    if len(args) != 2 or len(known) != 2:
        raise mismatch(name, args)
    return make(name, wanted, known)


@define("log", usage="log(number) or log(base, number)")
def _log(name: str, args: Sequence[Expr]) -> Expr:
    fitted = [implicit(a, DOUBLE) for a in args]
    known = [a for a in fitted if a is not None]
    if len(known) < len(args) or len(known) not in (1, 2):
        raise mismatch(name, args)
    return make("ln" if len(known) == 1 else "log", DOUBLE, known, nullable=True)


@define("ceil", "floor", usage="one number", raises=always)
def _to_whole(name: str, args: Sequence[Expr]) -> Expr:
    if len(args) != 1:
        raise mismatch(name, args)
    if args[0].type.is_integer:
        return cast(args[0], BIGINT)
    number = implicit(args[0], DOUBLE)
    if number is None:
        raise mismatch(name, args)
    return make(name, BIGINT, [number])


def _round_raises(call: Call) -> bool:
    places = call.args[1]
    return call.type.is_integer and isinstance(places, Literal) and places.value < 0


@define("round", usage="round(number [, constant number of places])", raises=_round_raises)
def _round(name: str, args: Sequence[Expr]) -> Expr:
    places = args[1] if len(args) == 2 else Literal(INT, False, 0)
    known = isinstance(places, Literal) and places.type.is_integer and places.value is not None
    if len(args) not in (1, 2) or not known:
        raise mismatch(name, args)
    number = cast(args[0], DOUBLE) if args[0].type == STRING else args[0]
    fitted, wanted = numbers(name, [number])
    return make(name, wanted, [*fitted, cast(places, INT)])
