"""UNION ALL: the bag union of relations."""

from __future__ import annotations

from dataclasses import dataclass, field

from thalweg.plan.logical import Schema
from thalweg.plan.relations.protocol import Describer, Need, Relation, Together


@dataclass(frozen=True, slots=True)
class UnionAll(Relation):
    """All rows of all inputs, columns matched by position."""

    inputs: tuple[int, ...] = field()
    schema: Schema = field()
    names: tuple[tuple[str, ...], ...] = ()
    """Per input its columns, in the order of the schema."""

    @property
    def only_grows(self) -> bool:
        return True

    def needs(self) -> tuple[Need, ...]:
        return tuple(Need(Together.ANY) for _ in self.inputs)

    def shows(self, place: int, column: str) -> frozenset[str]:
        return by_position(self.schema, self.names[place], column)

    def explained(self, show: Describer) -> list[str]:
        return [f"  all rows of {show.inputs(self.inputs)}"]


def by_position(schema: Schema, names: tuple[str, ...], column: str) -> frozenset[str]:
    """Columns of the schema that stand where an input has the column."""
    return frozenset(f.name for f, name in zip(schema, names, strict=True) if name == column)
