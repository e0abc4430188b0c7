"""DISTINCT, EXCEPT, INTERSECT, SEMI and ANTI: rows by their multiplicities in the inputs."""

from __future__ import annotations

from dataclasses import dataclass, field

from thalweg.plan.logical import CountRule, Schema
from thalweg.plan.relations.protocol import Describer, Need, Relation, Together
from thalweg.plan.relations.union import by_position
from thalweg.plan.state_slots import COUNTS


@dataclass(frozen=True, slots=True)
class Counted(Relation):
    """Rows whose multiplicity a rule computes from their counts in the inputs."""

    slots = (COUNTS,)
    rule: CountRule
    inputs: tuple[int, ...] = field()
    schema: Schema = field()
    names: tuple[tuple[str, ...], ...] = ()
    """Per input its columns, in the order of the schema."""

    @property
    def only_grows(self) -> bool:
        return self.rule in (CountRule.DISTINCT, CountRule.SEMI, CountRule.INTERSECT)

    def needs(self) -> tuple[Need, ...]:
        return tuple(Need(Together.CONTENT) for _ in self.inputs)

    def shows(self, place: int, column: str) -> frozenset[str]:
        return by_position(self.schema, self.names[place], column)

    def explained(self, show: Describer) -> list[str]:
        return [f"  rows of {show.inputs(self.inputs)}: {self.rule.value}"]
