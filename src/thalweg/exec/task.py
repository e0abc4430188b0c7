"""The input and the result of a step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from thalweg.exec.aggregate.group_state import StatePack
from thalweg.exec.leaves.protocol import Floor
from thalweg.exec.leaves.task_share import Ranges
from thalweg.exec.predicates.memo import Common
from thalweg.exec.shared_filters.member_roll import Roll
from thalweg.exec.tactics import AnyTactic, Seen, Subject
from thalweg.plan.physical import QueryPlan
from thalweg.store.packs import PackMeta


@dataclass(frozen=True, slots=True)
class StepTask:
    """The input of a step.

    `packs` are per leaf of the plan; `state` maps slots (see `plan/state_slots.py`) to packs,
    oldest first. `start` is the query's first instant, None until it is known. `floors` are streams
    whose oldest rows are given up, with the floor before this step and the floor now. `tactics`
    order conjunctions while the step runs; `ranges` are the hashes of its share along each axis of
    the routing; `common` are predicates that other queries evaluate too. With a `roll` the output
    is for its members. Slots that are `shared` hold what other queries hold too, as of the instants
    given.
    """

    query: str
    plan: QueryPlan
    since: int
    until: int
    start: int | None
    packs: tuple[tuple[PackMeta, ...], ...]
    state: Mapping[str, tuple[StatePack, ...]]
    ranges: Ranges = ()
    part: int = 0
    parts: int = 1
    prefix: str = ""
    seq: int = 0
    floors: tuple[tuple[str, int, int], ...] = ()
    tactics: tuple[tuple[Subject, AnyTactic], ...] = ()
    common: Common = frozenset()
    roll: Roll | None = None
    shared: tuple[tuple[str, int], ...] = ()

    def floor_of(self, stream: str) -> Floor | None:
        return next((Floor(b, n) for s, b, n in self.floors if s == stream), None)


@dataclass(slots=True)
class StepResult:
    """Packs that a step wrote, and its counters. `state` lists new packs per slot; slots in
    `replaced` drop what this task's share held before. `observations` belong to the task's tactics,
    by number. `wakes_at` is the first instant after the epoch at which the output may change
    without new rows; None if there is none. `error` is set when the query's own code failed."""

    query: str
    outputs: list[PackMeta] = field(default_factory=list)
    rejects: list[PackMeta] = field(default_factory=list)
    state: dict[str, StatePack] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    observations: list[tuple[int, Seen]] = field(default_factory=list)
    wakes_at: int | None = None
    error: str | None = None
