"""Bound expressions: names resolved, types known, casts explicit.

Values of these classes are frozen, comparable, hashable, printable and picklable; `str()` gives
SQL text back. Evaluation lives in `thalweg.exec`, one slow and obvious twin in
`thalweg.testing.reference`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from thalweg.plan.types import DataType


@dataclass(frozen=True, slots=True)
class Expr:
    """Anything with a value per row."""

    type: DataType
    nullable: bool


@dataclass(frozen=True, slots=True)
class Column(Expr):
    """A column of the input, by its unique name (`alias.column` below the projection)."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Literal(Expr):
    """A constant: None, bool, int, float, str, bytes, Decimal; TIMESTAMP and INTERVAL as int µs,
    DATE as int days since 1970."""

    value: Any

    def __str__(self) -> str:
        if self.value is None:
            return "NULL"
        if self.type.name in ("TIMESTAMP", "INTERVAL", "DATE"):
            return f"{self.type.name} {self.value}"
        if isinstance(self.value, str):
            return "'" + self.value.replace("'", "''") + "'"
        return str(self.value)


@dataclass(frozen=True, slots=True)
class Call(Expr):
    """A built-in function or operator, named by its key in `thalweg.plan.functions`.

    `cast` and `try_cast` convert to `self.type`. `case` takes cond1, value1, cond2, value2, ...,
    default (always an odd number of arguments).
    """

    function: str
    args: tuple[Expr, ...]

    def __str__(self) -> str:
        return _call_text(self)


@dataclass(frozen=True, slots=True)
class UserCall(Expr):
    """A registered Python function, looked up by name when it runs.

    `movable` functions may be called earlier or later than the text says; `raises` says whether
    they are declared to raise, or never to (None: unknown).
    """

    name: str
    args: tuple[Expr, ...]
    deterministic: bool = True
    movable: bool = True
    raises: bool | None = None

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.args))})"


class AggregateFunction(Protocol):
    """The properties of an aggregate that plans use: its name, whether it keeps less where rows'
    ends are known, and whether it stores values, always or for the sake of DISTINCT."""

    @property
    def name(self) -> str: ...
    @property
    def wants_ends(self) -> bool: ...
    @property
    def keeps_values(self) -> bool: ...
    @property
    def keeps_distinct(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class AggregateCall(Expr):
    """An aggregate of one of the kinds in `thalweg.aggregates`.

    `arguments` is empty for count(*), and a value and its order for min_by and max_by. `parameter`
    is a quantile's fraction or a list's separator.
    """

    kind: AggregateFunction
    arguments: tuple[Expr, ...] = ()
    distinct: bool = False
    parameter: Any = None

    @property
    def holds_values(self) -> bool:
        """Whether it stores values beyond its result."""
        return self.kind.keeps_values or (self.distinct and self.kind.keeps_distinct)

    def __str__(self) -> str:
        shown = [str(a) for a in self.arguments] or ["*"]
        if self.parameter is not None:
            shown.append(repr(self.parameter))
        return f"{self.kind.name}({'DISTINCT ' if self.distinct else ''}{', '.join(shown)})"


@dataclass(frozen=True, slots=True)
class Member(Expr):
    """Whether the operands are among the rows of another leaf of the block at the row's instant.

    `target`, `exact` and `verify` are as in a probe of that leaf.
    """

    leaf: int
    operands: tuple[Column, ...]
    target: tuple[str, ...]
    exact: bool
    verify: tuple[Predicate, ...]

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.operands))}) IN relation of leaf {self.leaf}"


@dataclass(frozen=True, slots=True)
class Predicate:
    """One conjunct of a WHERE or HAVING; `position` is its rank in the text, `text` its source.
    Conjuncts that were one (`x BETWEEN a AND b`) share both, and are told apart by `part`."""

    expr: Expr
    position: int
    text: str = field(compare=False, default="")
    part: int = 0

    @property
    def rank(self) -> tuple[int, int]:
        """Its place in the text."""
        return self.position, self.part

    @property
    def label(self) -> str:
        """Its text, distinct from those of other parts of the same conjunct: the key of its
        counters."""
        return f"{self} (part {self.part + 1})" if self.part else str(self)

    def __str__(self) -> str:
        return self.text or str(self.expr)


_INFIX = {
    "+", "-", "*", "/", "%", "=", "<>", "<", "<=", ">", ">=", "<=>", "and", "or", "||", "div",
    "like", "&", "|", "^",
}  # fmt: skip


def _call_text(call: Call) -> str:
    args = [str(a) for a in call.args]
    name = call.function
    if name in _INFIX and len(args) == 2:
        return f"({args[0]} {name.upper()} {args[1]})"
    if name in ("cast", "try_cast"):
        return f"{name.upper()}({args[0]} AS {call.type})"
    if name == "not":
        return f"(NOT {args[0]})"
    if name == "is_null":
        return f"({args[0]} IS NULL)"
    if name == "is_not_null":
        return f"({args[0]} IS NOT NULL)"
    if name == "in":
        return f"({args[0]} IN ({', '.join(args[1:])}))"
    if name == "case":
        pairs = zip(args[:-1:2], args[1:-1:2], strict=True)
        whens = " ".join(f"WHEN {c} THEN {v}" for c, v in pairs)
        return f"CASE {whens} ELSE {args[-1]} END"
    return f"{name}({', '.join(args)})"


_NOT_SQL = re.compile(r"'(?:[^']|'')*'|\b(True|False|None)\b")


def as_told(expr: Expr) -> str:
    """The expression for messages: constants that are no text as SQL writes them, too."""
    return _NOT_SQL.sub(_in_sql, str(expr))


def _in_sql(found: re.Match[str]) -> str:
    """TRUE, FALSE and NULL; texts as they are."""
    word: str | None = found[1]
    if word is None:
        return found[0]
    return "NULL" if word == "None" else word.upper()


def children(expr: Expr) -> tuple[Expr, ...]:
    if isinstance(expr, (Call, UserCall)):
        return expr.args
    if isinstance(expr, AggregateCall):
        return expr.arguments
    if isinstance(expr, Member):
        return expr.operands
    return ()


def walk(expr: Expr) -> Iterator[Expr]:
    """The expression and all below it, parents first."""
    yield expr
    for child in children(expr):
        yield from walk(child)


def transform(expr: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """Rebuild bottom-up, passing every node through `change`."""
    if isinstance(expr, (Call, UserCall)):
        args = tuple(transform(a, change) for a in expr.args)
        if args != expr.args:
            expr = replace(expr, args=args)
    elif isinstance(expr, AggregateCall):
        arguments = tuple(transform(a, change) for a in expr.arguments)
        if arguments != expr.arguments:
            expr = replace(expr, arguments=arguments)
    return change(expr)


def columns_of(expr: Expr) -> frozenset[str]:
    """Names of the columns an expression reads."""
    return frozenset(e.name for e in walk(expr) if isinstance(e, Column))
