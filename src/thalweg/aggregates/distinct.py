"""DISTINCT inside an aggregate: a value counts from when it is first there until it is last there.

The values of a group are kept with their counts; the aggregate below sees only the changes between
none and some.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from thalweg.aggregates.accumulator import (
    Accumulator,
    Arguments,
    Columns,
    Loaded,
    Side,
    Signed,
    running_counts,
    used_weights,
)
from thalweg.aggregates.holdings import Holdings
from thalweg.aggregates.whole_group import presence_changes
from thalweg.columns.vector import Vector
from thalweg.instants import Ints
from thalweg.plan.types import DataType


@dataclass(slots=True)
class Distinct:
    """`inner` keeps nothing beside its state rows."""

    prefix: str
    type: DataType
    inner: Accumulator
    _held: Holdings = field(init=False)

    def __post_init__(self) -> None:
        self._held = Holdings(self.prefix, (self.type,))

    @property
    def side_types(self) -> tuple[DataType, ...]:
        return self._held.types

    def advance(self, arguments: Arguments, signed: Signed, loaded: Loaded) -> None:
        runs = signed.runs
        used = used_weights(arguments, signed)
        codes = self._held.load(arguments, used, runs, loaded)
        changed = presence_changes(self._held, codes, used, runs)
        members = running_counts(changed, runs, loaded.ints(f"{self.prefix}n"))
        seen = replace(signed, weight=changed, members=members)
        self.inner.advance(arguments, seen, loaded)

    def values(self) -> Vector:
        return self.inner.values()

    def save(self, last: Ints) -> tuple[Columns, Side | None]:
        columns, side = self._held.save()
        inner, _ = self.inner.save(last)
        return columns | inner, side
