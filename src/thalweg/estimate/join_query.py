"""A join as a hypergraph: equated columns merged into attributes, each input an edge over them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from thalweg.plan.expr import Predicate


@dataclass(frozen=True, slots=True)
class Attribute:
    """Columns of at least two inputs that the join equates. NULL joins nothing, unless every
    equality between them is `<=>` (`null_safe`)."""

    name: str
    null_safe: bool = False


@dataclass(frozen=True, slots=True)
class Condition:
    """What a predicate says of one column, with constants: a range, or a set of values.

    `low` and `high` are None where that side is open-ended; `values` are those of `=` and IN, and
    then nothing else is said. NULL satisfies none of these. Constants are as in `Literal`.
    """

    column: str
    low: Any = None
    high: Any = None
    low_included: bool = True
    high_included: bool = True
    values: tuple[Any, ...] | None = None


@dataclass(frozen=True, slots=True)
class JoinInput:
    """One input of a join.

    `columns` has the column that stands for each attribute. `predicates` are all conditions over
    this input alone; `conditions` repeats those of them that are ranges and sets of constants,
    which they imply: a bound may use them and leave the others out. `unique` says that no two
    rows agree on all of `columns`.
    """

    alias: str
    relation: str
    columns: tuple[tuple[str, str], ...]
    predicates: tuple[Predicate, ...] = ()
    conditions: tuple[Condition, ...] = ()
    unique: bool = False

    @property
    def attributes(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.columns)

    def column(self, attribute: str) -> str:
        return dict(self.columns)[attribute]


@dataclass(frozen=True, slots=True)
class JoinQuery:
    """An inner join. `residual` holds the conditions across inputs that are no equalities of
    columns: leaving them out keeps a bound valid."""

    inputs: tuple[JoinInput, ...]
    attributes: tuple[Attribute, ...]
    residual: tuple[Predicate, ...] = ()

    def inputs_of(self, attribute: str) -> tuple[int, ...]:
        return tuple(i for i, r in enumerate(self.inputs) if attribute in r.attributes)
