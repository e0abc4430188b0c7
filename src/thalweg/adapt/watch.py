"""The interface between the adaptive loop and a part of a plan that may change while its query
runs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from thalweg.adapt.estimates import Estimate
from thalweg.adapt.operation_costs import JoinCosts
from thalweg.adapt.planlog import ROW_SECONDS, Reason, Switch
from thalweg.adapt.profiler import Key, Profiler, Statistic
from thalweg.adapt.trial import Trial
from thalweg.exec.tactics import AnyTactic, Subject
from thalweg.plan.bound_query import QueryOptions
from thalweg.plan.physical import QueryPlan

Choice = TypeVar("Choice")


@dataclass(frozen=True, slots=True)
class Candidate(Generic[Choice]):
    """A choice, and why it is to be preferred to the present one; without a reason it is only
    compared."""

    choice: Choice
    reason: Reason | None = None


class Watch(ABC, Generic[Choice]):
    """One part of a query's plan that may be chosen anew.

    The loop calls it in this order: `tactic` before a step; after it `observe` for each portion of
    the tasks' observations, `candidates` and the `cost` of each, and `take` or `refuse`; `applied`
    puts the choice into the plan. The state of a watch is soft: one without observations gives the
    same rows.
    """

    least_gain = 0.0
    """The part of the cost per row below which nothing is changed."""
    ban = 0
    """Portions for which a choice that did not pay is not tried again."""
    cost_unit = ROW_SECONDS
    """The unit of `cost`."""
    row_unit = ROW_SECONDS
    """The unit in which trials measure the cost of a row."""

    def __init__(self, what: Subject | None, subject: str, trial: Trial[Choice]) -> None:
        self.what = what
        """The subject of its tactics; None: tasks are sent none, and nothing is observed."""
        self.subject = subject
        self.trial = trial
        self.is_stale = False
        """Whether the plan in force does not contain all of the choice."""

    # -- observations ------------------------------------------------------------------------

    def statistics(self) -> Mapping[Key, Statistic | None]:
        """The statistic that it needs; None: a share."""
        return {}

    def tactic(self, seed: int, part: int, parts: int) -> AnyTactic:
        """The tactic for one of the tasks of a step."""
        raise LookupError(f"{self.subject}: nothing is observed")

    def follows(self, plan: QueryPlan, seen: Sequence[Any]) -> bool:
        """Whether others have changed what the choice rests on, so that it was made anew and what
        was seen in this epoch says little."""
        return False

    def portions(self, seen: Sequence[Any]) -> Iterable[Any]:
        """The observations of an epoch's tasks, in pieces to be processed one by one."""
        return [seen]

    def observe(self, portion: Any, profiler: WatchProfiler) -> Sequence[tuple[Switch, Choice]]:
        """Pass a portion to the Profiler. Returns changes that followed and were not a matter of
        choice, with the choice before each."""
        return ()

    def end_epoch(self, seen: Sequence[Any], profiler: WatchProfiler) -> None:
        """All portions of an epoch have been observed."""

    def noticed(self, key: Key, before: Estimate, now: Estimate) -> bool:
        """Handle a significant change of a statistic; returns whether all trials are void."""
        return False

    # -- choices -----------------------------------------------------------------------------

    @property
    @abstractmethod
    def choice(self) -> Choice:
        """The choice in force."""

    @abstractmethod
    def candidates(self, compare: bool) -> Sequence[Candidate[Choice]]:
        """The present choice, then better ones, the best first; to `compare`, also others that are
        worth reporting."""

    @abstractmethod
    def cost(self, choice: Choice) -> float | None:
        """The cost of rows under a choice, by present statistics; None if unknown."""

    @abstractmethod
    def take(self, choice: Choice) -> None:
        """Make this the choice in force."""

    def refuse(self) -> None:
        """None of the candidates was taken, if there were any."""

    def go_back(self, choice: Choice) -> None:
        """Revert the last switch, which did not pay."""
        self.take(choice)

    def avoid(self, banned: frozenset[Choice]) -> None:
        """Choices that did not pay, which tasks must not try either."""

    def unsettled(self) -> None:
        """Be more cautious: a switch was soon followed by another."""

    def settled(self) -> None:
        """Be less cautious: a switch has paid."""

    @abstractmethod
    def applied(self, plan: QueryPlan) -> QueryPlan:
        """The plan with the choice in it."""

    # -- reports -----------------------------------------------------------------------------

    @abstractmethod
    def shown(self, choice: Choice) -> tuple[str, ...]:
        """A choice as text."""

    def kept(self) -> Any:
        """The choice as JSON, to be restored after a restart; None: nothing."""
        return None

    def resume(self, kept: Any) -> None:
        """Restore a stored choice, unless it belongs to another text."""

    def report(self, profiler: WatchProfiler) -> list[dict[str, Any]]:
        """Counters and estimates, for `Query.stats()`; under `balance` what adapting has saved so
        far, where that is known."""
        return []

    def lines(self, profiler: WatchProfiler) -> list[str]:
        """The report as lines of text, for EXPLAIN ADAPT."""
        return []

    def costs_per_row(self) -> dict[str, float]:
        """The costs of predicates, by their text, for SysStream."""
        return {}


@dataclass(frozen=True, slots=True)
class Known:
    """Prior knowledge: costs of predicates by their text and of the operations of joins, where they
    are given, and the memory for the caches of one join."""

    costs: Mapping[str, float]
    join_costs: JoinCosts | None
    cache_bytes: int

    def lookups(self, count: int) -> tuple[float, ...] | None:
        """The cost of look-ups in so many windows, where that is given."""
        return None if self.join_costs is None else (self.join_costs.probe,) * count


@dataclass(frozen=True, slots=True)
class WatchKind:
    """A family of watches. `find` returns the watches of a plan; `name` is where `stats()` lists
    it."""

    name: str
    find: Callable[[QueryPlan, QueryOptions, Known], Sequence[Watch[Any]]]


@dataclass(frozen=True, slots=True)
class WatchProfiler:
    """The Profiler restricted to one watch: keys begin with the query and the watch."""

    profiler: Profiler
    scope: Key

    def record(self, key: Key, *seen: Any) -> None:
        self.profiler.record((*self.scope, *key), *seen)

    def estimate(self, key: Key) -> Estimate:
        return self.profiler.estimate((*self.scope, *key))
