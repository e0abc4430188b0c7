"""Rows as they are at the instants of a grid, for those who look at no others.

A change counts from the next instant of the grid on. So what appears and vanishes between two of
them is never there, and joins and conditions above, which compare rows at equal instants, have that
much less to do: of a window that slides, one function of time for each answer.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from thalweg.columns.frame import Changes
from thalweg.columns.netting import net
from thalweg.exec.relations.protocol import RelationStep, runs
from thalweg.instants import Ints, format_duration
from thalweg.models.relations.fitted import FitModel
from thalweg.models.relations.groups import Grouped
from thalweg.models.relations.mapped import Map
from thalweg.models.relations.modeled import Modeled
from thalweg.models.relations.solved import Solve
from thalweg.models.relations.state import DUE, scheduled
from thalweg.plan.logical import Filter, Join, Node, Project, Schema
from thalweg.plan.planner import Drafts, lowers
from thalweg.plan.relations.protocol import Describer, Need, Relation, Together

_AT_EQUAL_INSTANTS = (Solve, Filter, Join, Project, Map)
"""Their rows at an instant follow from the rows of their inputs at that instant."""
_OVER_TIME = (Grouped, Modeled, FitModel)


@dataclass(frozen=True, slots=True)
class Thin(Node):
    """The rows of the input at the multiples of periods; between them nothing changes."""

    row_by_row = True
    input: Node
    periods: tuple[int, ...]

    @property
    def schema(self) -> Schema:
        return self.input.schema

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)


def thinned(node: Node, periods: tuple[int, ...]) -> Node:
    """A node of which only the rows at multiples of periods matter, so that joins and conditions
    see no others. An equation may hold for a single instant, which is an answer off the grid too:
    such a node stays as it is."""
    return _thinned(node, periods) if _compares(node) else node


def _compares(node: Node) -> bool:
    if isinstance(node, (Solve, Join)):
        return True
    return isinstance(node, _AT_EQUAL_INSTANTS) and any(map(_compares, node.inputs))


def _thinned(node: Node, periods: tuple[int, ...]) -> Node:
    if isinstance(node, _OVER_TIME):
        return Thin(node, periods)
    if not isinstance(node, _AT_EQUAL_INSTANTS) or (isinstance(node, Solve) and node.marks_points):
        return node
    return node.with_inputs(tuple(_thinned(i, periods) for i in node.inputs))


@dataclass(frozen=True, slots=True)
class Thinned(Relation):
    slots = (DUE,)
    is_netted = True
    inputs: tuple[int, ...] = field()
    schema: Schema = field()
    periods: tuple[int, ...]

    @property
    def only_grows(self) -> bool:
        return False

    def needs(self) -> tuple[Need, ...]:
        return (Need(Together.CONTENT),)

    def explained(self, show: Describer) -> list[str]:
        periods = " and of ".join(map(format_duration, self.periods))
        return [f"  {show.inputs(self.inputs)} as it is at the multiples of {periods} since 1970"]


@lowers(Thin)
def _lower(drafts: Drafts, node: Thin) -> int:
    return drafts.append(Thinned((drafts.relation(node.input),), node.schema, node.periods))


@runs(Thinned)
def run_thinned(step: RelationStep, relation: Thinned) -> Changes:
    (changes,) = step.raw_inputs()
    later = Changes(changes.frame, next_instants(changes.ts, relation.periods), changes.signs)
    return net(scheduled(step, relation.schema, net(later)))


def next_instants(ts: Ints, periods: tuple[int, ...]) -> Ints:
    """The first multiple of any period that is not before each instant."""
    found: Ints = np.minimum.reduce([-(-ts // p) * p for p in periods])
    return found
