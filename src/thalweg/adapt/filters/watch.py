"""One order of a running query, as the driver sees it: of the predicates of a conjunction, or of
the leaves that a pipeline probes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from thalweg.adapt.constants import (
    BAN_SLICES,
    LEAST_ALPHA,
    METER_SLICES,
    REVERT_MARGIN,
    REVERT_ROWS,
    TRANSIENT_ALPHA,
)
from thalweg.adapt.filters.guards import allows
from thalweg.adapt.filters.hindsight import Hindsight, Memory
from thalweg.adapt.filters.ordering import Fork, Order, Ordering, Reorder
from thalweg.adapt.filters.static import greedy_order
from thalweg.adapt.planlog import KEPT, PENDING, REVERTED, PlanLog, Switch
from thalweg.adapt.reoptimizer import Reoptimizer
from thalweg.exec.tactics import Observation, PipelineTactic, Subject, Tactic
from thalweg.plan.conjunctions import Ordered, reordered
from thalweg.plan.physical import QueryPlan


class OrderWatch(Reoptimizer[Order]):
    """The Re-optimizer of one order.

    The ordering runs in tasks, as forks, and adapts there between slices. Here the same
    observations are taken in again, in one sequence, so that what all tasks have seen decides with
    which order the next epoch begins. A switch is judged by what rows cost after it against what
    the old order would have cost by then, and reverted if that was less.
    """

    def __init__(
        self, what: Subject, subject: str, texts: tuple[str, ...], ordering: Ordering, log: PlanLog
    ) -> None:
        self.what = what
        self.ordering = ordering
        self.log = log
        self.memory = Memory(len(texts))
        self.texts = texts
        self.subject = subject
        self.seconds = 0.0
        """What it has taken, profiling left out."""
        self._recent: list[tuple[float, Observation]] = []
        self._trial: _Trial | None = None
        self._banned: dict[Order, int] = {}
        self._alpha = ordering.settings.alpha

    @property
    def plan(self) -> Order:
        return tuple(self.ordering.order)

    @abstractmethod
    def tactic(self, seed: int) -> Tactic | PipelineTactic:
        """What one task is sent of it."""

    @abstractmethod
    def applied(self, plan: QueryPlan) -> QueryPlan:
        """A query's plan with this order in it."""

    def name_of(self, number: int) -> str:
        """What statistics about one of those ordered are filed under."""
        return self.texts[number]

    def candidates(self) -> Sequence[Order]:
        window = getattr(self.ordering, "window", None)
        if window is None or not len(window):
            return [self.plan]
        greedy = greedy_order(window.rows(), self.ordering.costs.per_row, self.ordering.guards)
        return list(dict.fromkeys([self.plan, greedy]))

    def cost(self, plan: Order) -> float | None:
        return self.ordering.predicted(plan)

    def absorb(self, seen: Observation, epoch: int) -> Sequence[Switch]:
        self.memory.add(seen)
        self.seconds += float(seen.seconds.sum())
        self._measure(seen)
        self._age_bans()
        self.ordering.observe(seen)
        found = [self._log(reorder, epoch) for reorder in self.ordering.switches]
        self.ordering.switches.clear()
        return found + self._judge_trial(epoch)

    def hindsight(self) -> Hindsight | None:
        """What would the best static order have cost?"""
        return self.memory.judged(self.ordering.costs.per_row, self.ordering.guards)

    # -- measuring ---------------------------------------------------------------------------

    def measured(self, seen: Observation) -> float:
        """What the rows of a slice cost in all: seconds, or units of injected costs."""
        if self.ordering.settings.injected is not None:
            return self.ordering.costs.total(seen.evaluated)
        return float(seen.seconds.sum())

    def _measure(self, seen: Observation) -> None:
        cost = self.measured(seen)
        if self._trial is not None and self._trial.judges(seen):
            self._trial.after.add(cost, seen)
        if seen.order == self.plan:
            self._recent = [*self._recent[-METER_SLICES + 1 :], (cost, seen)]

    def _before(self) -> _Meter:
        """What the last slices under this order took."""
        meter = _Meter(len(self.texts))
        for cost, seen in self._recent:
            meter.add(cost, seen)
        return meter

    # -- switches ----------------------------------------------------------------------------

    def _log(self, reorder: Reorder, epoch: int) -> Switch:
        why, before = reorder.trigger, self._before()
        switch = Switch(
            epoch,
            self.subject,
            tuple(self.texts[i] for i in reorder.old),
            tuple(self.texts[i] for i in reorder.new),
            why.statistic,
            self.texts[why.incumbent],
            self.texts[why.challenger],
            why.had,
            why.has,
            why.evidence,
            reorder.predicted,
            before.cost_per_row,
        )
        self._close_trial(KEPT)
        self.log.add(switch)
        self._damp(switch)
        if switch.before is None or not allows(self.ordering.guards, reorder.old):
            switch.outcome = KEPT  # nothing to compare with, or no way back
        else:
            self._trial = _Trial(switch, reorder, before, len(self._recent))
        self._recent = []
        return switch

    def _damp(self, switch: Switch) -> None:
        """After a pair caused transients before, ratios have to differ by more for a switch."""
        times = self.log.transients[switch.pair]
        if times:
            self._set_alpha(max(self.ordering.settings.alpha * TRANSIENT_ALPHA, LEAST_ALPHA))

    def _set_alpha(self, alpha: float) -> None:
        self.ordering.settings = replace(self.ordering.settings, alpha=alpha)

    def _judge_trial(self, epoch: int) -> list[Switch]:
        trial = self._trial
        if trial is None or trial.after.rows < REVERT_ROWS:
            return []
        trial.switch.after = trial.after.cost_per_row
        no_way_back = trial.new != self.plan or not allows(self.ordering.guards, trial.old)
        if no_way_back or self._pays(trial):
            self._close_trial(KEPT)
            alpha = self.ordering.settings.alpha  # a switch that paid: less caution is needed
            self._set_alpha(min(alpha / TRANSIENT_ALPHA, self._alpha))
            return []
        trial.switch.outcome = REVERTED
        self._trial = None
        self._ban(trial.new)
        self.ordering.force(trial.old)
        back = Switch(
            epoch, self.subject, trial.switch.new, trial.switch.old, "measured cost per row",
            trial.switch.challenger, trial.switch.incumbent, trial.switch.after or 0.0,
            trial.switch.before or 0.0, 0, outcome=KEPT,
        )  # fmt: skip
        self.log.add(back)
        self._recent = []
        return [back]

    def _pays(self, trial: _Trial) -> bool:
        """Whether a row costs no more than it would by now under the old order: than it did,
        moved as far as the profile says that statistics have moved. Time alone is no witness
        against a switch on a busy machine: the evaluations, at like costs, have to agree."""
        limit = REVERT_MARGIN * self._moved(trial)
        costs = self.ordering.costs.per_row
        took = (trial.after.cost_per_row or 0.0) > limit * (trial.before.cost_per_row or 0.0)
        asked = trial.after.work_per_row(costs) > limit * trial.before.work_per_row(costs)
        return not (took and asked)

    def _moved(self, trial: _Trial) -> float:
        now = self.ordering.predicted(trial.old)
        if trial.predicted is None or now is None or not trial.predicted[0]:
            return 1.0
        return max(1.0, now / trial.predicted[0])

    def _close_trial(self, outcome: str) -> None:
        if self._trial is not None and self._trial.switch.outcome == PENDING:
            self._trial.switch.outcome = outcome
        self._trial = None

    def _ban(self, order: Order) -> None:
        self._banned[order] = BAN_SLICES
        self.ordering.banned = frozenset(self._banned)

    def _age_bans(self) -> None:
        if self._banned:
            self._banned = {o: n - 1 for o, n in self._banned.items() if n > 1}
            self.ordering.banned = frozenset(self._banned)


class FilterWatch(OrderWatch):
    """The order of the predicates of a conjunction."""

    def __init__(self, conjunction: Ordered, ordering: Ordering, log: PlanLog) -> None:
        texts = tuple(p.label for p in conjunction.predicates)
        super().__init__(conjunction.predicates, " AND ".join(texts), texts, ordering, log)
        self.conjunction = conjunction

    def tactic(self, seed: int) -> Fork:
        return Fork(self.ordering, seed)

    def applied(self, plan: QueryPlan) -> QueryPlan:
        return reordered(plan, self.conjunction.predicates, self.plan)


class _Meter:
    """What some slices took."""

    def __init__(self, predicates: int) -> None:
        self.cost = 0.0
        self.rows = 0
        self.evaluated = np.zeros(predicates, np.int64)

    def add(self, cost: float, seen: Observation) -> None:
        self.cost += cost
        self.rows += seen.rows
        self.evaluated += seen.evaluated

    @property
    def cost_per_row(self) -> float | None:
        return self.cost / self.rows if self.rows else None

    def work_per_row(self, costs: npt.NDArray[np.float64]) -> float:
        """Evaluations at given costs."""
        return float((self.evaluated * costs).sum()) / max(self.rows, 1)


class _Trial:
    """A switch that has still to show whether it pays."""

    def __init__(self, switch: Switch, reorder: Reorder, before: _Meter, slices: int) -> None:
        self.switch = switch
        self.old = reorder.old
        self.new = reorder.new
        self.predicted = reorder.predicted
        self.before = before
        self.after = _Meter(len(reorder.new))
        self._usual = before.rows // max(slices, 1)

    def judges(self, seen: Observation) -> bool:
        """Whether a slice tells something: in one much shorter than those before the switch the
        calls themselves cost more than the rows."""
        return seen.order == self.new and 2 * seen.rows >= self._usual
