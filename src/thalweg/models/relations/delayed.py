"""Functions of time as they were some time ago: all of a relation later by so many microseconds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from thalweg.columns.frame import Changes
from thalweg.columns.vector import Vector
from thalweg.exec.relations.protocol import RelationStep, runs
from thalweg.instants import format_duration
from thalweg.models.relations.state import DUE, scheduled
from thalweg.plan.logical import Node, Schema
from thalweg.plan.planner import Drafts, lowers
from thalweg.plan.relations.protocol import Describer, Need, Relation, Together
from thalweg.plan.types import BIGINT


@dataclass(frozen=True, slots=True)
class Delay(Node):
    """The rows of the input, later; `start` is the column from which on their functions count."""

    input: Node
    start: str
    by: int

    @property
    def schema(self) -> Schema:
        return self.input.schema

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    def reads(self) -> Iterator[str]:
        yield self.start


@dataclass(frozen=True, slots=True)
class Delayed(Relation):
    slots = (DUE,)
    is_netted = True
    inputs: tuple[int, ...] = field()
    schema: Schema = field()
    start: str = field()
    by: int = field()

    @property
    def only_grows(self) -> bool:
        return False

    def needs(self) -> tuple[Need, ...]:
        return (Need(Together.CONTENT),)

    def explained(self, show: Describer) -> list[str]:
        return [f"  {show.inputs(self.inputs)} as it was {format_duration(self.by)} ago"]


@lowers(Delay)
def _lower(drafts: Drafts, node: Delay) -> int:
    below = drafts.relation(node.input)
    return drafts.append(Delayed((below,), node.schema, node.start, node.by))


@runs(Delayed)
def run_delayed(step: RelationStep, relation: Delayed) -> Changes:
    (changes,) = step.inputs()
    start = np.asarray(changes.frame.columns[relation.start].data) + relation.by
    frame = changes.frame.merged({relation.start: Vector(BIGINT, start)})
    later = Changes(frame, changes.ts + relation.by, changes.signs)
    return scheduled(step, relation.schema, later)
