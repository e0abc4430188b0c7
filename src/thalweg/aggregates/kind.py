"""What an aggregate is: its names in SQL, the state it keeps, how it is computed and what it means.

An aggregate is one file: binding rules, accumulator, reference meaning, and the `AggregateKind`
values in its `KINDS`, which are listed in `aggregates/__init__.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from importlib import import_module
from typing import Any, NoReturn, Protocol

from thalweg.aggregates.accumulator import Accumulator
from thalweg.errors import ThalwegError
from thalweg.plan.expr import AggregateCall, Expr
from thalweg.synopses.ranked_tree import Summary

Rows = list[tuple[Any, ...]]
"""Arguments of the rows of a group, as Python values."""
INT, FLOAT = "int64", "float64"
"""Types of state columns."""


class DistinctRule(Enum):
    """What `agg(DISTINCT x)` means for an aggregate."""

    WRAPPED = "it sees each value once, by `aggregates/distinct.py`"
    IGNORED = "it makes no difference"
    OWN = "the accumulator sees to it"
    REFUSED = "it means nothing"


class BindCall(Protocol):
    """An aggregate as written, at its place in a query. Arguments are numbered from 0."""

    @property
    def name(self) -> str: ...
    @property
    def distinct(self) -> bool: ...
    @property
    def count(self) -> int:
        """How many arguments there are."""
        ...

    @property
    def is_star(self) -> bool:
        """Whether the argument is `*`."""
        ...

    @property
    def is_modeled(self) -> bool:
        """Whether a source in view has columns that are functions of time."""
        ...

    def need(self, *counts: int) -> None:
        """Refuse any other number of arguments."""
        ...

    def argument(self, number: int = 0) -> Expr: ...
    def one(self) -> Expr:
        """The only argument, which is not `*`."""
        ...

    def number(self) -> Expr:
        """The only argument, which is numeric."""
        ...

    def double(self, argument: Expr) -> Expr:
        """A numeric argument as DOUBLE."""
        ...

    def condition(self) -> Expr:
        """The only argument, which is BOOLEAN."""
        ...

    def event_time(self) -> Expr:
        """When a row of the joined sources happened: at the latest of its parts."""
        ...

    def fail(self, error: ThalwegError) -> NoReturn: ...


Rule = Callable[[BindCall], AggregateCall]


def same(call: AggregateCall, value: Any) -> Any:
    return value


@dataclass(frozen=True, eq=False)
class AggregateKind:
    """An aggregate.

    `state` names the columns of its state rows by their stems, with types; a stem may repeat with
    a number behind it (`l30`, `l31`). `reference` gives the mathematical value over the rows whose
    last argument is not NULL; it also tells two states of a group apart. `finish` makes the result
    of it, before it is brought into the result type. `ordered_set` are the names that take WITHIN
    GROUP; there the values come first, unless `lists` says that they are the argument again.
    `summary` answers from the summary of a range of rows.
    """

    name: str
    names: Mapping[str, Rule]
    state: Mapping[str, str]
    accumulate: Callable[[AggregateCall, str], Accumulator]
    reference: Callable[[AggregateCall, Rows], Any]
    examples: tuple[str, ...]
    finish: Callable[[AggregateCall, Any], Any] = same
    distinct: DistinctRule = DistinctRule.WRAPPED
    wants_ends: bool = False
    """Whether it keeps less where the end of every row is known when it appears."""
    takes_arrays: bool = False
    """Whether values without an order are among those it takes."""
    keeps_values: bool = False
    """Whether it holds on to values beyond the one it shows."""
    ordered_set: frozenset[str] = field(default=frozenset())
    lists: bool = False
    summary: Callable[[Summary], float | None] | None = None

    @property
    def keeps_distinct(self) -> bool:
        """Whether DISTINCT makes it hold on to values."""
        return self.distinct is not DistinctRule.IGNORED

    def __reduce__(self) -> Any:
        """A kind holds functions: it is pickled as where to find it."""
        return _find, (self.accumulate.__module__, self.name)

    def __repr__(self) -> str:
        return self.name


def _find(module: str, name: str) -> AggregateKind:
    kinds: tuple[AggregateKind, ...] = import_module(module).KINDS
    return next(k for k in kinds if k.name == name)


def kind_of(call: AggregateCall) -> AggregateKind:
    """The kind that a call carries; plans know it by a narrower protocol."""
    assert isinstance(call.kind, AggregateKind)
    return call.kind


def is_stem(kind: AggregateKind, column: str) -> bool:
    """Whether a state column, without its prefix, is one that the kind declares."""
    return column in kind.state or column.rstrip("0123456789") in kind.state
