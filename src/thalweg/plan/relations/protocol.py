"""The interface of every kind of relation to the planner.

A plan is a list of relations, each made from streams and tables (its `leaves`) and from relations
before it (its `inputs`). A kind is a frozen dataclass; how it runs is registered for its class in
`exec/relations/`, how it is lowered from the logical plan in `plan/planner.py`. The kinds that the
planner itself makes have these in files of their own; a feature has them all in one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import ClassVar, Protocol, Self

from thalweg.plan.expr import Predicate
from thalweg.plan.leaf import Leaf
from thalweg.plan.logical import Schema
from thalweg.plan.state_slots import SlotKind

Predicates = tuple[Predicate, ...]
Reorder = Callable[[Predicates], Predicates]


class Together(Enum):
    """Which rows of an input must be sent to one task."""

    ANY = "each row on its own"
    KEYS = "rows that are equal in the keys"
    CONTENT = "rows of equal content"
    ALL = "all rows"


@dataclass(frozen=True, slots=True)
class Need:
    """How the rows of one input must be routed; `keys` are its columns, each of which will do."""

    together: Together
    keys: frozenset[str] = frozenset()


class Describer(Protocol):
    """Names and texts that EXPLAIN needs beyond the relation."""

    def leaf(self, leaf: Leaf) -> list[str]: ...
    def inputs(self, numbers: Sequence[int]) -> str: ...


class Relation(ABC):
    """One relation of a plan."""

    __slots__ = ()
    slots: ClassVar[tuple[SlotKind, ...]] = ()
    """The state it keeps from epoch to epoch."""
    sees_rows_once: ClassVar[bool] = False
    """Whether it reads each row of its leaves once, when it arrives: earlier rows are in its state
    alone."""
    is_netted: ClassVar[bool] = False
    """Whether its changes at an instant never cancel."""
    called: str | None = None
    """What EXPLAIN calls the output of a plan that ends in it, if not by the plan's kind."""

    @property
    @abstractmethod
    def schema(self) -> Schema: ...

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        return ()

    @property
    @abstractmethod
    def inputs(self) -> tuple[int, ...]:
        """Relations before it, those of its leaves among them."""

    @property
    @abstractmethod
    def only_grows(self) -> bool:
        """Whether no row ever vanishes, provided that none does from the inputs."""

    @property
    def grain(self) -> int:
        """Epochs of the query end at multiples of this many microseconds."""
        return 1

    @property
    def lasts(self) -> int:
        """For how long time alone goes on changing its rows after the last change below."""
        return 0

    @property
    def has_keys(self) -> bool:
        """Whether its state is by key, so that it may be without rows."""
        return True

    @abstractmethod
    def needs(self) -> tuple[Need, ...]:
        """How rows must be routed: per leaf, or, without leaves, per input."""

    def shows(self, place: int, column: str) -> frozenset[str]:
        """Output columns that show a column of that leaf or input unchanged."""
        return frozenset((column,)) & {f.name for f in self.schema}

    def conjunctions(self) -> Iterator[Predicates]:
        """Predicates that are evaluated together, and may be in any order."""
        for leaf in self.leaves:
            yield leaf.filters + leaf.hints + leaf.members
            yield leaf.post_filters

    def reordered(self, order: Reorder) -> Self:
        """The same with its conjunctions in another order."""
        return self

    def probed_keys(self, leaf: int) -> tuple[tuple[str, ...], ...]:
        """Keys by which kept rows of a leaf are looked up."""
        return ()

    def stored(self, slot: str) -> tuple[Schema, tuple[tuple[str, ...], ...]]:
        """The columns of the rows in a slot of its own, and the keys they are arranged by."""
        return self.schema, ()

    @abstractmethod
    def explained(self, show: Describer) -> list[str]:
        """The relation as text, indented by two."""


def reordered_leaf(leaf: Leaf, order: Reorder) -> Leaf:
    return replace(
        leaf,
        filters=order(leaf.filters),
        hints=order(leaf.hints),
        members=order(leaf.members),
        post_filters=order(leaf.post_filters),
    )


def stored_leaves(relations: Sequence[Relation]) -> list[Leaf]:
    """The streams and tables read, relation by relation."""
    return [leaf for r in relations for leaf in r.leaves if leaf.is_stored]
