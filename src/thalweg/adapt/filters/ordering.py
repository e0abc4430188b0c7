"""The base of all filter orderings: sampling, costs, guards, and the record of switches."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np
import numpy.typing as npt

from thalweg.adapt.constants import (
    ALPHA,
    EVIDENCE,
    LONGEST_SLICE_ROWS,
    PROFILE_RATE,
    PROFILE_WINDOW,
    SLICE_MEMORY,
    SLICE_ROWS,
    SLICE_SECONDS,
)
from thalweg.adapt.filters.costs import CostBook
from thalweg.adapt.filters.guards import Guards, free, learned, respected
from thalweg.adapt.filters.window import Drops
from thalweg.exec.tactics import DROPPED, Observation
from thalweg.instants import Ints

Order = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Settings:
    """The configuration of an ordering: how many predicates, which of them guard others, and the
    share of rows to profile. `learns` says per predicate whether errors may reveal further guards;
    `injected` are costs per row that replace measured ones; `alike` is the weight of the prior that
    these are the same."""

    predicates: int
    guards: Guards = ()
    learns: tuple[bool, ...] = ()
    injected: tuple[float, ...] | None = None
    rate: float = PROFILE_RATE
    window: int = PROFILE_WINDOW
    alpha: float = ALPHA
    evidence: int = EVIDENCE
    alike: int = 0

    def __post_init__(self) -> None:
        if not self.guards:
            object.__setattr__(self, "guards", free(self.predicates))
        if not self.learns:
            object.__setattr__(self, "learns", (False,) * self.predicates)


@dataclass(frozen=True, slots=True)
class Trigger:
    """Why an order was replaced: which predicate's statistic exceeded which other's.

    At `position` the incumbent's value was `had`, the challenger's `has` (drops per unit of cost in
    the profile, unless `statistic` says otherwise), over `evidence` profiled rows.
    """

    statistic: str
    position: int
    incumbent: int
    challenger: int
    had: float
    has: float
    evidence: int


@dataclass(frozen=True, slots=True)
class Reorder:
    """One change of order."""

    old: Order
    new: Order
    trigger: Trigger


@dataclass(slots=True)
class Overhead:
    """Seconds that adapting took, by its four components, and extra evaluations made."""

    profile: float = 0.0
    window: float = 0.0
    matrix: float = 0.0
    repair: float = 0.0
    extra: int = 0

    @property
    def bookkeeping(self) -> float:
        """All but evaluating more than the answer needs."""
        return self.window + self.matrix + self.repair

    @property
    def total(self) -> float:
        return self.profile + self.bookkeeping


class Ordering:
    """Base of all orderings; on its own it keeps the order it was given (`fixed`).

    It changes its order itself, as in a task between slices, or `proposes` the change and leaves it
    to the driver's loop to `take` it.
    """

    name = "fixed"

    def __init__(self, settings: Settings, order: Order | None = None) -> None:
        self.settings = settings
        self.guards = settings.guards
        chosen = range(settings.predicates) if order is None else order
        self.current: list[int] = respected(self.guards, list(chosen))
        self.costs = CostBook(settings.predicates, settings.injected, settings.alike)
        self.rate = settings.rate if self.profiles else 0.0
        self.switches: list[Reorder] = []
        self.proposals: list[Reorder] = []
        self.proposes = False
        self.banned: frozenset[Order] = frozenset()
        self.overhead = Overhead()
        self._row_seconds = 0.0
        self._random = np.random.default_rng(0)

    profiles = False
    """Whether it needs a sample."""

    # -- for the executor --------------------------------------------------------------------

    @property
    def order(self) -> list[int]:
        return self.current

    def slice_rows(self) -> int:
        if self.settings.injected is not None or not self._row_seconds:
            return SLICE_ROWS
        return int(np.clip(SLICE_SECONDS / self._row_seconds, SLICE_ROWS, LONGEST_SLICE_ROWS))

    def sample(self, rows: int) -> Ints:
        return bernoulli(rows, self.rate, self._random)

    def wanted(self, position: int, dropped_at: Ints) -> npt.NDArray[np.bool_]:
        return np.ones(len(dropped_at), np.bool_)

    def observe(self, seen: Observation) -> None:
        if seen.rows:
            spent = float(seen.seconds.sum()) / seen.rows
            old = self._row_seconds or spent
            self._row_seconds = SLICE_MEMORY * old + (1 - SLICE_MEMORY) * spent
        self.costs.add(seen)
        self.overhead.profile += float(seen.extra_seconds.sum())
        self.overhead.extra += int(seen.extra.sum())
        self._learn_guards(seen)
        self._learn(seen)

    # -- for the driver ----------------------------------------------------------------------

    def fork(self, seed: int) -> Ordering:
        """A copy for one task, which samples by its own seed."""
        own = (self._random, self.switches, self.proposals)  # replaced below
        same = (self.settings, self.guards, self.banned, *own)
        copy = deepcopy(self, {id(one): one for one in same})
        copy._random = np.random.default_rng(seed)
        copy.switches, copy.proposals, copy.proposes = [], [], False
        copy.overhead = Overhead()
        return copy

    def force(self, order: Order) -> None:
        """Switch to another order, whatever the statistics say (reverts, restarts, tests)."""
        self.proposals = []
        self.current = respected(self.guards, list(order))
        self._restart()

    def take(self, order: Order) -> None:
        """Adopt the proposed order."""
        old, self.current, self.proposals = self.current, list(order), []
        self._taken(old)

    def refuse(self) -> None:
        """Keep the present order and drop the proposal."""
        self.proposals = []

    def predicted(self, order: Order) -> float | None:
        """Cost per row of an order by the present profile, if there is one."""
        return None

    # -- for subclasses ----------------------------------------------------------------------

    def _learn(self, seen: Observation) -> None:
        """Process the observation of a slice, and perhaps adopt another order."""

    def _restart(self) -> None:
        """Reset statistics of the old order after a change from outside."""

    def _taken(self, old: list[int]) -> None:
        """Reset statistics of the old order after a proposal was taken."""
        self._restart()

    def _adopt(self, new: Order, trigger: Trigger) -> bool:
        """Switch, or propose it, unless the order is banned; returns whether the order has
        changed."""
        if new == tuple(self.current):
            return False
        if self.proposes:
            self.proposals.append(Reorder(tuple(self.current), new, trigger))
        if self.proposes or new in self.banned:
            return False
        self._change(new, trigger)
        return True

    def _change(self, new: Order, trigger: Trigger) -> None:
        self.switches.append(Reorder(tuple(self.current), new, trigger))
        self.current = list(new)

    def _learn_guards(self, seen: Observation) -> None:
        found = learned(self.guards, seen.profile, self.settings.learns)
        if found == self.guards:
            return
        self.guards = found
        self.settings = replace(self.settings, guards=found)
        order = tuple(respected(found, self.current))
        moved = next((i for i, number in enumerate(order) if number != self.current[i]), 0)
        trigger = Trigger("a guard was found", moved, self.current[moved], order[moved], 0, 0, 1)
        self.banned -= {order}  # guards take precedence over bans
        if order != tuple(self.current):
            self._change(order, trigger)
        self._restart()


def bernoulli(rows: int, rate: float, random: np.random.Generator) -> Ints:
    """Numbers below `rows`, each with the same probability, drawn by their gaps."""
    if rate >= 1.0:
        return np.arange(rows)
    if rate <= 0.0 or not rows:
        return np.empty(0, np.int64)

    def gaps(count: int) -> Ints:
        return np.minimum(random.geometric(rate, count), rows + 1)  # the sum must not overflow

    expected = int(rows * rate)
    places = np.cumsum(gaps(expected + 4)) - 1
    while places[-1] < rows:
        places = np.concatenate([places, places[-1] + np.cumsum(gaps(expected // 4 + 4))])
    return places[places < rows].astype(np.int64)


class Fork:
    """An ordering's copy for one task, made when the task first has rows for it."""

    def __init__(self, ordering: Ordering, seed: int) -> None:
        self._master = ordering
        self._seed = seed
        self._own: Ordering | None = None

    @property
    def own(self) -> Ordering:
        if self._own is None:
            self._own = self._master.fork(self._seed)
        return self._own

    @property
    def order(self) -> list[int]:
        return self.own.order

    @property
    def guards(self) -> Guards:
        return self.own.guards

    def slice_rows(self) -> int:
        return self.own.slice_rows()

    def sample(self, rows: int) -> Ints:
        return self.own.sample(rows)

    def wanted(self, position: int, dropped_at: Ints) -> npt.NDArray[np.bool_]:
        return self.own.wanted(position, dropped_at)

    def observe(self, seen: Observation) -> None:
        self.own.observe(seen)


def dropped(seen: Observation) -> Drops:
    """The profile as drops: rows on which a predicate errs are not dropped by it."""
    found: Drops = seen.profile == DROPPED
    return found


class Stopwatch:
    """A stopwatch that adds the time since its last reading to one of several components."""

    def __init__(self) -> None:
        self._last = perf_counter()

    def lap(self) -> float:
        now = perf_counter()
        spent, self._last = now - self._last, now
        return spent
