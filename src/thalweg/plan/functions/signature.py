"""Declarations of functions: parameters, result, and whether they may raise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from thalweg.errors import TypeMismatch
from thalweg.plan.expr import Call, Expr, Literal
from thalweg.plan.functions.casting import implicit
from thalweg.plan.types import DataType

Resolver = Callable[[str, Sequence[Expr]], Expr]
Raises = Callable[[Call], bool]


@dataclass(frozen=True, slots=True)
class Definition:
    """A function of the language: `usage` is shown in error messages."""

    name: str
    usage: str
    resolver: Resolver
    raises: Raises


DEFINITIONS: dict[str, Definition] = {}


def never(call: Call) -> bool:
    return False


def always(call: Call) -> bool:
    return True


def define(*names: str, usage: str = "", raises: Raises = never) -> Callable[[Resolver], Resolver]:
    """Register a resolver written by hand under these names."""

    def register(resolver: Resolver) -> Resolver:
        for name in names:
            DEFINITIONS[name] = Definition(name, usage or name, resolver, raises)
        return resolver

    return register


def simple(
    name: str,
    parameters: Sequence[DataType],
    returns: DataType,
    *,
    optional: int = 0,
    raises: Raises = never,
    nullable: bool | None = None,
) -> None:
    """Register a function of fixed parameter types, the last `optional` of which may be left out.

    `nullable` None means: NULL when an argument is.
    """
    types = tuple(parameters)

    def resolver(called: str, args: Sequence[Expr]) -> Expr:
        if not len(types) - optional <= len(args) <= len(types):
            raise mismatch(name, args)
        fitted = []
        for arg, wanted in zip(args, types, strict=False):
            fitting = implicit(arg, wanted)
            if fitting is None:
                raise mismatch(name, args)
            fitted.append(fitting)
        return make(name, returns, fitted, nullable=nullable)

    DEFINITIONS[name] = Definition(name, _usage(name, types, optional), resolver, raises)


def _usage(name: str, types: Sequence[DataType], optional: int) -> str:
    required = ", ".join(map(str, types[: len(types) - optional]))
    extra = "".join(f" [, {t}]" for t in types[len(types) - optional :])
    return f"{name}({required}{extra})"


def make(
    name: str, returns: DataType, args: Sequence[Expr], *, nullable: bool | None = None
) -> Call:
    """A call; unless told otherwise it is NULL when an argument is."""
    if nullable is None:
        nullable = any(a.nullable for a in args)
    return Call(returns, nullable, name, tuple(args))


def mismatch(name: str, args: Sequence[Expr], written: str | None = None) -> TypeMismatch:
    """The error for these arguments, naming what would be accepted, by the name as `written`."""
    given = ", ".join(str(a.type) for a in args)
    usage = DEFINITIONS[name].usage if name in DEFINITIONS else name
    shown = written or name
    if usage.startswith(f"{name}("):
        usage = shown + usage.removeprefix(name)
    return TypeMismatch(f"{shown} does not take ({given})", remedy=f"it takes {usage}")


def divisor_raises(call: Call) -> bool:
    """Division is safe only by a known number that is neither 0 nor (for integers) -1."""
    divisor = call.args[-1]
    return not isinstance(divisor, Literal) or divisor.value in (0, -1)
