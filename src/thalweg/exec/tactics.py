"""Tactics: the choices that may change while a query runs, which are the order in which the
predicates of a conjunction are evaluated, or in which a pipeline probes leaves.

A tactic is a small picklable value that the driver sends along with a task. The executor calls it
before each slice of rows for the order, and afterwards with what the slice has shown; it may choose
another order for the next slice. Tactics of pipelines and joins say what to observe, and the driver
chooses for the next epoch. Rows and rejects never depend on them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from thalweg.instants import Ints
from thalweg.plan.expr import Predicate
from thalweg.plan.joins.join_order import PipelineOf
from thalweg.plan.pipeline import Pipeline

PASSED, DROPPED, ERRED, UNKNOWN = 0, 1, 2, -1
Verdicts = npt.NDArray[np.int8]
"""Per profiled row and predicate (in text order) one of the four above."""
Conjunction = tuple[Predicate, ...]
"""Predicates in text order: the key of a tactic, whatever the plan's order."""


@dataclass(frozen=True, slots=True)
class JoinOf:
    """The join of a relation, by its number."""

    relation: int


Subject = Conjunction | PipelineOf | JoinOf
"""The subject of a tactic: predicates, the leaves that a pipeline probes, or a join as a whole."""


@dataclass(frozen=True, slots=True)
class Observation:
    """The observation of one slice. Arrays are by predicate in text order, except `survivors`.

    `order` is the order it ran in; `evaluated` counts the evaluations the answer needed, `extra`
    those made for the profile alone, `seconds` and `extra_seconds` what both took; `gathering` is
    the part of both that went into fetching rows, which depends on a predicate's place, not on the
    predicate. `survivors[k]` rows were left after position k. `profile` holds the rows of the
    sample that were dropped, `passed` counts the others. `unasked` are predicates that the tactic
    did not want evaluated on all those rows.
    """

    order: tuple[int, ...]
    rows: int
    evaluated: Ints
    extra: Ints
    seconds: npt.NDArray[np.float64]
    extra_seconds: npt.NDArray[np.float64]
    gathering: npt.NDArray[np.float64]
    survivors: Ints
    profile: Verdicts
    passed: int = 0
    unasked: frozenset[int] = frozenset()


class Tactic(Protocol):
    """Orders one conjunction while it runs."""

    @property
    def order(self) -> Sequence[int]:
        """The predicates (numbered in text order) in the order of evaluation."""
        ...

    @property
    def guards(self) -> Sequence[frozenset[int]]:
        """Per predicate those that guard it: it is never evaluated on rows they drop."""
        ...

    def slice_rows(self) -> int:
        """The number of rows to process before the next observation."""
        ...

    def sample(self, rows: int) -> Ints:
        """Which rows of the next slice are profiled, in ascending order."""
        ...

    def wanted(self, position: int, dropped_at: Ints) -> npt.NDArray[np.bool_]:
        """Which profiled rows the predicate at `position` is evaluated on as well, though they were
        dropped at positions `dropped_at` before it (such rows only)."""
        ...

    def observe(self, observation: Observation) -> None: ...


@dataclass(frozen=True, slots=True)
class PipelineTactic:
    """The rows of a pipeline's source that are looked up in every leaf: the `places`, if there were
    as many rows as `of`. With more they are spread, as rows lie in the order of their keys, with
    fewer some of them are left out."""

    places: Ints
    of: int

    def among(self, rows: int) -> Ints:
        if rows < self.of:
            return self.places[self.places < rows]
        return self.places * rows // self.of


@dataclass(frozen=True, slots=True)
class JoinTactic:
    """What to observe of a join: of the pipelines of some `leaves` a `share` of the rows, or at
    least so many, go through leaf by leaf, whatever is cached. `keys` are look-ups that caches
    would get: pipeline, place, and the columns of their key. `upkeep` are pipelines that some of
    the caches would need."""

    leaves: frozenset[int] = frozenset()
    share: float = 0.0
    least: int = 0
    keys: tuple[tuple[int, int, tuple[str, ...]], ...] = ()
    upkeep: tuple[Pipeline, ...] = ()


@dataclass(frozen=True, slots=True)
class Effort:
    """The work of a pipeline for some rows: per operator how many it looked up and made, and the
    results."""

    rows: int
    looked_up: tuple[int, ...]
    made: tuple[int, ...]
    results: int


@dataclass(frozen=True, slots=True)
class Sample:
    """Some rows sent through a pipeline: how many tuples there were before each operator, and after
    the last; and the cost of computing them."""

    handled: tuple[int, ...]
    effort: Effort


@dataclass(frozen=True, slots=True)
class CacheSeen:
    """The statistics of a subresult in an epoch."""

    lookups: int
    fills: int
    bytes: int


@dataclass(slots=True)
class JoinSeen:
    """A task's observations of a join in an epoch, and the `seconds` it took, some for `profiling`.
    `rows` entered each pipeline as they appeared, and as many as `left` as they vanished; of some
    of them there are `samples`. `keys` are hashes of what caches would be looked up by, by number;
    `upkeep` the work of separate pipelines, by number; `caches` are the subresults of the plan, by
    number."""

    seconds: float = 0.0
    profiling: float = 0.0
    rows: dict[int, int] = field(default_factory=dict)
    left: dict[int, int] = field(default_factory=dict)
    samples: dict[int, Sample] = field(default_factory=dict)
    keys: dict[int, npt.NDArray[np.uint64]] = field(default_factory=dict)
    upkeep: dict[int, Effort] = field(default_factory=dict)
    caches: dict[int, CacheSeen] = field(default_factory=dict)


Seen = Observation | JoinSeen
AnyTactic = Tactic | PipelineTactic | JoinTactic
