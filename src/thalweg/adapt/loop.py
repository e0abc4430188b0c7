"""The adaptive loop around one part of a plan: observe, profile, candidates, cost, choose, trial,
log. The same for orders of filters and pipelines, for trees and for caches.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, TypeVar

from thalweg.adapt.estimates import Estimate
from thalweg.adapt.planlog import KEPT, SWITCHED, Considered, PlanLog, Reason, Switch
from thalweg.adapt.profiler import Key, Profiler
from thalweg.adapt.watch import Candidate, Watch, WatchProfiler
from thalweg.plan.physical import QueryPlan

Choice = TypeVar("Choice")
MEASURED = "measured cost per row"


class Loop(Generic[Choice]):
    """One watch of a query, with the choices that did not pay and are banned for a while."""

    def __init__(self, watch: Watch[Choice], scope: Key, profiler: Profiler, log: PlanLog) -> None:
        self.watch = watch
        self.log = log
        self.seen = WatchProfiler(profiler, scope)
        self._banned: dict[Choice, int] = {}
        self._news: list[str] = []
        self._asked = [(*scope, *key) for key in watch.statistics()]
        for key, statistic in zip(self._asked, watch.statistics().values(), strict=True):
            kept = profiler.ask(key, self._noticed, statistic)
            assert statistic in (None, kept), f"{key} is kept for another watch"

    def close(self) -> None:
        """Release the watch's statistics."""
        for key in self._asked:
            self.seen.profiler.release(key, self._noticed)

    # -- one epoch ---------------------------------------------------------------------------

    def learn(self, plan: QueryPlan, seen: Sequence[Any], epoch: int) -> QueryPlan:
        """Process the observations of an epoch's tasks; returns the plan for the next one."""
        watch = self.watch
        if watch.follows(plan, seen):
            watch.trial.give_up()
            self.log.changed()
            return watch.applied(plan)
        before = watch.choice
        for portion in watch.portions(seen):
            self.advance(portion, epoch)
        watch.end_epoch(seen, self.seen)
        if self._news:
            self._choose(epoch)
        return watch.applied(plan) if watch.is_stale or watch.choice != before else plan

    def advance(self, portion: Any, epoch: int) -> list[Switch]:
        """Process a portion of observations, and choose; returns the switches that follow."""
        logged = self.log.count
        self.watch.trial.saw(portion)
        self._age_bans()
        for forced, old in self.watch.observe(portion, self.seen):
            forced.epoch = epoch
            self.watch.trial.begin(forced, old, self.watch.choice)
            self._log(forced)
        if not self._judged_badly(epoch):
            self._choose(epoch)
        new = self.log.count - logged
        return list(self.log)[-new:] if new else []

    def _noticed(self, key: Key, before: Estimate, now: Estimate) -> None:
        """Handle a change of a statistic that the Profiler announces."""
        about = " ".join(key[len(self.seen.scope) :])
        self._news.append(f"{about} went from {before.value:.3g} to {now.value:.3g}")
        if self.watch.noticed(key, before, now):
            self._start_over()

    def _start_over(self) -> None:
        """What was measured before says nothing about what is now: trials end, and bans."""
        self._banned = {}
        self.watch.avoid(frozenset())
        self.watch.trial.give_up()
        self.log.changed()

    # -- trials ------------------------------------------------------------------------------

    def _judged_badly(self, epoch: int) -> bool:
        """Whether the last switch did not pay, so that it was reverted."""
        watch, switch, old = self.watch, self.watch.trial.switch, self.watch.trial.old
        if switch is None or old is None:
            return False
        failed = watch.trial.has_failed(watch.cost)
        if watch.trial.is_on:
            return False
        self.log.changed()
        if not failed:
            watch.settled()
            return False
        self._banned[watch.choice] = watch.ban
        watch.avoid(frozenset(self._banned))
        watch.go_back(old)
        why = Reason(
            MEASURED, switch.challenger, switch.incumbent, switch.after or 0.0,
            switch.before or 0.0, 0,
        )  # fmt: skip
        back = Switch.because(why, epoch, watch.subject, switch.new, watch.shown(watch.choice))
        back.unit = watch.row_unit
        back.outcome = KEPT
        self.log.add(back)
        return True

    def _age_bans(self) -> None:
        if self._banned:
            self._banned = {c: n - 1 for c, n in self._banned.items() if n > 1}
            self.watch.avoid(frozenset(self._banned))

    # -- choices -----------------------------------------------------------------------------

    def _choose(self, epoch: int) -> None:
        """Switch to the first candidate that is better than the present choice and not banned."""
        present, *others = self.watch.candidates(bool(self._news))
        if not others and not self._news:
            return
        before = self.watch.cost(present.choice)
        costs = [self.watch.cost(c.choice) for c in others]
        why, outcome, chosen = "", "nothing proposed", None
        for candidate, cost in zip(others, costs, strict=True):
            if candidate.reason is not None and chosen is None:
                why = candidate.reason.statistic
                outcome = self._objection(candidate, before, cost) or SWITCHED
                if outcome == SWITCHED:
                    chosen = candidate, candidate.reason, cost
        shown = [self.watch.shown(c.choice) for c in (present, *others)]
        plans = tuple(zip(shown, [before, *costs], strict=True))
        reasons = ", ".join(filter(None, [why, *self._news]))
        about = epoch, self.watch.subject, reasons, plans, outcome, self.watch.cost_unit
        self.log.consider(Considered(*about))
        self._news = []
        if chosen is None:
            self.watch.refuse()
        else:
            candidate, reason, after = chosen
            known = None if before is None or after is None else (before, after)
            self._switch(candidate.choice, reason, known, epoch)

    def _objection(
        self, candidate: Candidate[Choice], present: float | None, cost: float | None
    ) -> str:
        if candidate.choice in self._banned:
            return "banned: it did not pay"
        least = self.watch.least_gain
        if least and present is not None and cost is not None and cost > (1 - least) * present:
            return f"gains less than {least:.0%}"
        return ""

    def _switch(
        self, new: Choice, why: Reason, predicted: tuple[float, float] | None, epoch: int
    ) -> None:
        watch, old = self.watch, self.watch.choice
        switch = Switch.because(why, epoch, watch.subject, watch.shown(old), watch.shown(new))
        switch.predicted = predicted
        watch.take(new)
        watch.trial.begin(switch, old, new)
        self._log(switch)

    def _log(self, switch: Switch) -> None:
        switch.unit = self.watch.row_unit
        self.log.add(switch)
        if self.log.transients[switch.pair]:
            self.watch.unsettled()
