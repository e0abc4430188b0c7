"""An order of a running query in the driver: of the predicates of a conjunction, or of the leaves
that a pipeline probes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from thalweg.adapt.balance import Balance
from thalweg.adapt.constants import BAN_SLICES, LEAST_ALPHA, TRANSIENT_ALPHA
from thalweg.adapt.filters.catalog import make_ordering, usual_settings
from thalweg.adapt.filters.hindsight import Hindsight, Memory
from thalweg.adapt.filters.ordering import Fork, Order, Ordering, Reorder, Settings
from thalweg.adapt.filters.static import greedy_order
from thalweg.adapt.filters.trial import OrderTrial
from thalweg.adapt.planlog import ROW_UNITS, Reason, Switch, amount
from thalweg.adapt.profiler import Key, Statistic
from thalweg.adapt.watch import Candidate, Known, Watch, WatchKind, WatchProfiler
from thalweg.exec.tactics import Observation, Subject
from thalweg.instants import format_seconds
from thalweg.plan.bound_query import QueryOptions
from thalweg.plan.physical import QueryPlan
from thalweg.plan.predicate_order import Ordered, orderable, reordered

SELECTIVITY = "selectivity"
PROFILE = "profile"


class OrderWatch(Watch[Order]):
    """The watch of any order. The ordering runs in tasks, as forks, and adapts there between
    slices. Here the same observations are processed again, in one sequence, so that those of all
    tasks decide with which order the next epoch begins."""

    ban = BAN_SLICES
    work = "filter time"
    """The work that the order is for."""

    def __init__(
        self, what: Subject, subject: str, title: str, texts: tuple[str, ...], ordering: Ordering
    ) -> None:
        super().__init__(what, subject, OrderTrial(ordering))
        ordering.proposes = True
        self.title = title
        self.ordering = ordering
        self.memory = Memory(len(texts))
        self.texts = texts
        self.seconds = 0.0
        """Seconds spent on the rows, without profiling."""
        if ordering.settings.injected is not None:
            self.cost_unit = self.row_unit = ROW_UNITS
        self._alpha = ordering.settings.alpha

    def name_of(self, number: int) -> str:
        """The key of the statistics of one of the ordered predicates or leaves."""
        return self.texts[number]

    def statistics(self) -> Mapping[Key, Statistic | None]:
        asked: dict[Key, Statistic | None] = {(PROFILE,): self.ordering}
        return asked | {(self.name_of(i), SELECTIVITY): None for i in range(len(self.texts))}

    def portions(self, seen: Sequence[Observation]) -> Sequence[Observation]:
        return seen

    def observe(
        self, portion: Observation, profiler: WatchProfiler
    ) -> Sequence[tuple[Switch, Order]]:
        self.memory.add(portion)
        self.seconds += float(portion.seconds.sum())
        profiler.record((PROFILE,), portion)
        forced = [(self._forced(r), r.old) for r in self.ordering.switches]
        self.ordering.switches.clear()
        return forced

    def end_epoch(self, seen: Sequence[Observation], profiler: WatchProfiler) -> None:
        """Selectivities as measured by execution: each at its place in the order."""
        if not seen:
            return
        self.memory.end_epoch(self.ordering.overhead.bookkeeping)
        asked = np.sum([o.evaluated for o in seen], axis=0)
        left = np.zeros(len(self.texts), np.int64)
        for one in seen:
            for position, number in enumerate(one.order):
                left[number] += one.survivors[position] if one.evaluated[number] else 0
        for i in range(len(self.texts)):
            profiler.record((self.name_of(i), SELECTIVITY), int(left[i]), int(asked[i]))

    # -- choices -----------------------------------------------------------------------------

    @property
    def choice(self) -> Order:
        return tuple(self.ordering.order)

    def candidates(self, compare: bool) -> Sequence[Candidate[Order]]:
        found = [Candidate(self.choice)]
        found += [Candidate(p.new, _reason(self.texts, p)) for p in self.ordering.proposals]
        if compare:
            window = getattr(self.ordering, "window", None)
            if window is not None and len(window):
                guards, costs = self.ordering.guards, self.ordering.costs.per_row
                greedy = greedy_order(window.rows(), costs, guards)
                if all(greedy != c.choice for c in found):
                    found.append(Candidate(greedy))
        return found

    def cost(self, choice: Order) -> float | None:
        return self.ordering.predicted(choice)

    def take(self, choice: Order) -> None:
        self.ordering.take(choice)

    def refuse(self) -> None:
        self.ordering.refuse()

    def go_back(self, choice: Order) -> None:
        self.ordering.force(choice)

    def avoid(self, banned: frozenset[Order]) -> None:
        self.ordering.banned = banned

    def unsettled(self) -> None:
        """Require a larger difference of ratios for a switch."""
        settings = self.ordering.settings
        alpha = max(settings.alpha * TRANSIENT_ALPHA, LEAST_ALPHA)
        self.ordering.settings = replace(settings, alpha=alpha)

    def settled(self) -> None:
        settings = self.ordering.settings
        alpha = min(settings.alpha / TRANSIENT_ALPHA, self._alpha)
        self.ordering.settings = replace(settings, alpha=alpha)

    # -- reports -----------------------------------------------------------------------------

    def shown(self, choice: Order) -> tuple[str, ...]:
        return tuple(self.texts[i] for i in choice)

    def kept(self) -> list[int]:
        return list(self.choice)

    def resume(self, kept: Any) -> None:
        if self.ordering.name != "fixed" and sorted(kept) == list(range(len(self.texts))):
            self.ordering.force(tuple(kept))

    def hindsight(self) -> Hindsight | None:
        """The cost that the best static order would have had."""
        return self.memory.judged(self.ordering.costs.per_row, self.ordering.guards)

    def _balance(self, found: Hindsight | None) -> dict[str, Any] | None:
        """What adapting has saved, where costs are times."""
        if found is None or self.ordering.settings.injected is not None:
            return None
        bookkeeping = self.memory.bookkeeping
        saved = (found.text - found.adaptive) * found.rows - bookkeeping
        return asdict(Balance(self.work, self.memory.seconds + bookkeeping, saved))

    def _forced(self, reorder: Reorder) -> Switch:
        """A change of order that a new guard forces."""
        why, shown = _reason(self.texts, reorder), (reorder.old, reorder.new)
        return Switch.because(why, 0, self.subject, *map(self.shown, shown))

    def report(self, profiler: WatchProfiler) -> list[dict[str, Any]]:
        ordering, hindsight = self.ordering, self.hindsight()
        spent = ordering.overhead
        best = None if hindsight is None else list(self.shown(hindsight.order))
        return [
            {
                "ordering": ordering.name,
                "seconds": self.seconds,
                "order": list(self.shown(self.choice)),
                "profile_rate": ordering.rate,
                "costs": self._costs(),
                "selectivities": {
                    t: profiler.estimate((self.name_of(i), SELECTIVITY))
                    for i, t in enumerate(self.texts)
                },
                "overhead": {
                    "profile": spent.profile,
                    "window": spent.window,
                    "matrix": spent.matrix,
                    "repair": spent.repair,
                    "extra_evaluations": spent.extra,
                },
                "return_on_adapting": None if hindsight is None else hindsight.gain,
                "best_static_order": best,
                "balance": self._balance(hindsight),
            }
        ]

    def lines(self, profiler: WatchProfiler) -> list[str]:
        ordering = self.ordering
        rate = f"{ordering.rate:.2%} of the rows are profiled now".replace("%", " %")
        lines = [f"adaptive: {self.title} by {ordering.name}, {rate}"]
        for number in self.choice:
            passing = profiler.estimate((self.name_of(number), SELECTIVITY))
            known = f"passes {passing.percent} of the rows it is asked, "
            known = known if passing.count else "new, "
            behind = f"takes {amount(ordering.costs.per_row[number], self.row_unit)}"
            behind += (
                f" (estimates from {passing.count:,} rows)" if passing.count else " (estimate)"
            )
            guards = ", ".join(self.texts[g] for g in sorted(ordering.guards[number]))
            behind += f", behind {guards}" if guards else ""
            lines.append(f"  {self.texts[number]}: {known}{behind}")
        spent = ordering.overhead
        parts = (spent.profile, spent.window, spent.matrix, spent.repair)
        profile, window, matrix, repair = map(format_seconds, parts)
        lines.append(
            f"  overhead (measured): profiling {profile} ({spent.extra:,} more evaluations), "
            f"keeping the profile {window}, counting drops {matrix}, choosing orders {repair}"
        )
        hindsight = self.hindsight()
        if hindsight is not None:
            best = " → ".join(self.shown(hindsight.order))
            lines.append(
                f"  return on adapting: {hindsight.gain:.3f} (estimate: the time of the best order "
                f"that never changes, {best}, by the time taken)"
            )
        return lines

    def _costs(self) -> dict[str, float]:
        return dict(zip(self.texts, self.ordering.costs.per_row.tolist(), strict=True))


def _reason(texts: tuple[str, ...], reorder: Reorder) -> Reason:
    why = reorder.trigger
    incumbent, challenger = texts[why.incumbent], texts[why.challenger]
    return Reason(why.statistic, incumbent, challenger, why.had, why.has, why.evidence)


class FilterWatch(OrderWatch):
    """The order of the predicates of a conjunction."""

    def __init__(self, conjunction: Ordered, ordering: Ordering) -> None:
        texts = tuple(p.label for p in conjunction.predicates)
        super().__init__(conjunction.predicates, " AND ".join(texts), "filters", texts, ordering)
        self.conjunction = conjunction

    def tactic(self, seed: int, part: int, parts: int) -> Fork:
        return Fork(self.ordering, seed)

    def applied(self, plan: QueryPlan) -> QueryPlan:
        return reordered(plan, self.conjunction.predicates, self.choice)

    def costs_per_row(self) -> dict[str, float]:
        return self._costs()


def _find(plan: QueryPlan, options: QueryOptions, known: Known) -> list[FilterWatch]:
    return [FilterWatch(c, _ordering(c, options, known)) for c in orderable(plan)]


def _ordering(conjunction: Ordered, options: QueryOptions, known: Known) -> Ordering:
    texts = [p.label for p in conjunction.predicates]
    injected = None
    if any(t in known.costs for t in texts):
        injected = tuple(known.costs.get(t, 1.0) for t in texts)
    settings = Settings(len(texts), conjunction.guards, conjunction.learns, injected)
    return make_ordering(
        options.filters, usual_settings(options.filters, settings, options.profile)
    )


FILTERS = WatchKind("filters", _find)
