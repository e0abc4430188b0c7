"""Auto: A-Greedy while statistics change, a cheaper ordering while they do not.

Survival rates at each position, which normal execution measures at no cost, tell when statistics
drift. Then the stale profile is discarded and many rows are profiled until it is filled again. In
quiet times profiling keeps within a budget: fewer rows, no predicate whose statistics cannot
matter, and with many predicates `sweep` instead of A-Greedy.
"""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter

import numpy as np

from thalweg.adapt.constants import (
    BUDGET_MEMORY,
    BURST_ROWS,
    BURST_SLICES,
    DRIFT,
    DRIFT_CALM,
    DRIFT_ROWS,
    DRIFT_SIGMAS,
    HOPELESS,
    KNOWN_PLANS,
    MANY_PREDICATES,
    PROFILE_BUDGET,
    REFILL_ROWS,
    REGION_STEPS,
    SETTLED_ROWS,
    STABLE_SLICES,
    SWEEP_EVIDENCE,
    SWEEP_WINDOW,
)
from thalweg.adapt.filters.agreedy import AGreedy
from thalweg.adapt.filters.guards import allows
from thalweg.adapt.filters.ordering import Order, Settings, Trigger
from thalweg.adapt.filters.sweep import Sweep
from thalweg.exec.tactics import Observation
from thalweg.instants import Ints

Region = tuple[int, ...]


class Auto(AGreedy):
    name = "auto"

    def __init__(self, settings: Settings, order: Order | None = None) -> None:
        super().__init__(settings, order)
        self.sweep: Sweep | None = None
        self.quiet = 0
        self.ignored: frozenset[int] = frozenset()
        self.known: dict[Region, Order] = {}
        self.patience = np.ones(settings.predicates)
        self.burst = BURST_SLICES * BURST_ROWS
        self.rate = 1.0 if settings.rate else 0.0
        self.spent = 0.0
        self.paid = 0.0
        self._last: tuple[Ints, int] = (np.zeros(settings.predicates, np.int64), 0)
        """Evaluations of the last slice, and its rows."""
        self._recalled = False
        self._forget_rates()

    def slice_rows(self) -> int:
        return BURST_ROWS if self.burst and self.settings.rate else super().slice_rows()

    def wanted(self, position: int, dropped_at: Ints) -> np.ndarray:
        if self.sweep is not None:
            return self.sweep.wanted(position, dropped_at)
        return np.full(len(dropped_at), self.current[position] not in self.ignored)

    def observe(self, seen: Observation) -> None:
        begun = perf_counter()
        super().observe(seen)
        paid = perf_counter() - begun + float(seen.extra_seconds.sum())
        self.paid = BUDGET_MEMORY * self.paid + paid
        self.spent = BUDGET_MEMORY * self.spent + float(seen.seconds.sum())

    def _learn(self, seen: Observation) -> None:
        profiled = len(seen.profile) + seen.passed
        if profiled >= min(seen.rows, BURST_ROWS):  # observations of other tasks are no burst
            self.burst = max(self.burst - profiled, 0)
        if seen.order == tuple(self.current):
            self._notice_drift(seen)
        before = list(self.current)
        if self.sweep is not None:
            self._sweep(seen)
        elif len(seen.profile) and seen.unasked <= self.ignored:  # else a fork went sweeping
            super()._learn(seen)
        if self.current != before:
            self._settle_again()
        elif not self.proposals:
            self._grow_quiet()
        self._last = seen.evaluated, seen.rows
        self.rate = self._chosen_rate()

    # -- drift -------------------------------------------------------------------------------

    def _notice_drift(self, seen: Observation) -> None:
        """Compare survival rates with those of the first slices under this order."""
        asked = np.concatenate([[seen.rows], seen.survivors[:-1]])
        if self._asked[0] < SETTLED_ROWS:
            self._asked += asked
            self._left += seen.survivors
            return
        counted = (asked >= DRIFT_ROWS) & (self._asked >= DRIFT_ROWS)
        expected = self._left / np.maximum(self._asked, 1)
        found = seen.survivors / np.maximum(asked, 1)
        variance = np.maximum(expected * (1 - expected), 1e-3) / np.maximum(asked, 1)
        limits = np.maximum(DRIFT * self.patience, DRIFT_SIGMAS * np.sqrt(variance))
        moved = counted & (np.abs(found - expected) > limits)
        if moved.any():
            self._wake(moved)

    def _wake(self, moved: np.ndarray) -> None:
        self.window.clear()
        self.matrix.recount(self.window.rows(), self.current)
        self.sweep = None
        self.ignored = frozenset()
        self.quiet = 0
        self.burst = BURST_SLICES * BURST_ROWS
        self._recalled = False
        self.patience[moved] *= DRIFT_CALM  # until a switch shows that the alarm was justified
        self._forget_rates()

    def _forget_rates(self) -> None:
        self._remembered = False
        self._asked = np.zeros(self.settings.predicates, np.int64)
        self._left = np.zeros(self.settings.predicates, np.int64)

    def _settle_again(self) -> None:
        self.quiet = 0
        self.sweep = None
        self.ignored = frozenset()
        self.patience[:] = 1.0
        self._forget_rates()

    # -- quiet times -------------------------------------------------------------------------

    def _grow_quiet(self) -> None:
        self.quiet += 1
        if self._asked[0] >= SETTLED_ROWS and len(self.window) >= REFILL_ROWS:
            self._remember()
        if self.quiet % STABLE_SLICES:
            return
        self.ignored = frozenset() if self.ignored else self._hopeless()
        if self.settings.predicates >= MANY_PREDICATES and self.sweep is None:
            self._begin_sweep()

    def _begin_sweep(self) -> None:
        settings = replace(
            self.settings, window=SWEEP_WINDOW, evidence=SWEEP_EVIDENCE, guards=self.guards
        )
        self.sweep = Sweep(settings, tuple(self.current))
        self.sweep.costs = self.costs
        self.sweep.overhead = self.overhead

    def _sweep(self, seen: Observation) -> None:
        assert self.sweep is not None
        self.sweep.banned = self.banned
        self.sweep._learn(seen)
        if self.sweep.switches:
            found, old = self.sweep.switches[-1], list(self.current)
            self.sweep.switches.clear()
            if self._adopt(found.new, found.trigger):
                self._taken(old)

    def _hopeless(self) -> frozenset[int]:
        """Predicates so far from moving forward that their statistics cannot matter."""
        if len(self.window) < REFILL_ROWS:
            return frozenset()
        ratios = self.matrix.counts / self.costs.per_row[self.matrix.order]
        own = np.diagonal(ratios)
        return frozenset(
            self.matrix.order[j]
            for j in range(1, len(own))
            if (ratios[:j, j] < HOPELESS * own[:j]).all()
        )

    def _chosen_rate(self) -> float:
        if self.burst and self.settings.rate:
            return 1.0
        if self.settings.injected is None and self.paid > PROFILE_BUDGET * self.spent:
            return 0.0
        costs = self.costs.per_row
        if self.sweep is not None:
            extra = float(costs[self.current[self.sweep.stage]])
        else:
            extra = float(sum(costs[i] for i in self.current[1:] if i not in self.ignored))
        evaluated, rows = self._last
        if not extra or not rows:
            return self.settings.rate
        spent = self.costs.total(evaluated) / rows
        return min(self.settings.rate, PROFILE_BUDGET * spent / extra)

    # -- known plans -------------------------------------------------------------------------

    def _region(self) -> Region:
        """The region of the statistics: the drop rate of each predicate, coarsely."""
        rows = self.window.rows()
        return tuple(int(r * REGION_STEPS + 0.5) for r in rows.mean(0))

    def _remember(self) -> None:
        if self._remembered:
            return
        self._remembered = True
        if len(self.known) >= KNOWN_PLANS:
            self.known.pop(next(iter(self.known)))
        self.known[self._region()] = tuple(self.current)

    def _check(self) -> None:
        if not self._recall():
            super()._check()

    def _recall(self) -> bool:
        """Switch at once to a plan that was good for similar statistics."""
        if self._recalled:
            return False
        self._recalled = True
        plan = self.known.get(self._region())
        if plan is None or list(plan) == self.current or not allows(self.guards, plan):
            return False
        trigger = Trigger("known statistics", 0, self.current[0], plan[0], 0, 0, len(self.window))
        if not self._adopt(plan, trigger):
            return False
        self.matrix.recount(self.window.rows(), self.current)
        return True

    def _restart(self) -> None:
        super()._restart()
        self._settle_again()

    def _taken(self, old: list[int]) -> None:
        if self.sweep is not None:  # meanwhile rows were not asked everything
            self.window.clear()
        super()._taken(old)
        self.rate = self._chosen_rate()

    def refuse(self) -> None:
        if self.proposals:
            self._grow_quiet()
        super().refuse()
        if self.sweep is not None and self.sweep.current != self.current:
            self.sweep.force(tuple(self.current))
