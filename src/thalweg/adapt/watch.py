"""What the adaptive loop asks of a part of a plan that may change while its query runs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from thalweg.adapt.estimates import Estimate
from thalweg.adapt.operation_costs import JoinCosts
from thalweg.adapt.planlog import Reason, Switch
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

    The loop asks for what it needs in this order: `tactic` before a step; after it `observe` for
    each portion of what the tasks have seen, `candidates` and what each would `cost`, and `take` or
    `refuse`; `applied` puts the choice into the plan. Everything a watch knows is soft: one that
    has seen nothing gives the same rows.
    """

    least_gain = 0.0
    """The part of what rows cost below which nothing is changed."""
    ban = 0
    """Portions for which a choice that did not pay is not tried again."""

    def __init__(self, what: Subject | None, subject: str, trial: Trial[Choice]) -> None:
        self.what = what
        """What its tactics are about; None: tasks are sent none, and nothing is observed."""
        self.subject = subject
        self.trial = trial
        self.is_stale = False
        """Whether the plan in force does not say all of what was chosen."""

    # -- what is seen ------------------------------------------------------------------------

    def statistics(self) -> Mapping[Key, Statistic | None]:
        """What it needs to know; None: a share."""
        return {}

    def tactic(self, seed: int, part: int, parts: int) -> AnyTactic:
        """What one of the tasks of a step is sent."""
        raise LookupError(f"{self.subject}: nothing is observed")

    def follows(self, plan: QueryPlan, seen: Sequence[Any]) -> bool:
        """Whether others have changed what the choice rests on, so that it was made anew and what
        was seen in this epoch says little."""
        return False

    def portions(self, seen: Sequence[Any]) -> Iterable[Any]:
        """What the tasks of an epoch have seen, in pieces to be learned from one by one."""
        return [seen]

    def observe(self, portion: Any, profiler: WatchProfiler) -> Sequence[tuple[Switch, Choice]]:
        """Give the Profiler a portion. Changes that followed and were not a matter of choice, with
        what there was before each."""
        return ()

    def end_epoch(self, seen: Sequence[Any], profiler: WatchProfiler) -> None:
        """All portions of an epoch have been observed."""

    def noticed(self, key: Key, before: Estimate, now: Estimate) -> bool:
        """A statistic has changed significantly; whether so much that all trials are void."""
        return False

    # -- what to do --------------------------------------------------------------------------

    @property
    @abstractmethod
    def choice(self) -> Choice:
        """What is in force."""

    @abstractmethod
    def candidates(self, compare: bool) -> Sequence[Candidate[Choice]]:
        """The present choice, then those to be preferred, the best first; to `compare`, others that
        are worth a look, too."""

    @abstractmethod
    def cost(self, choice: Choice) -> float | None:
        """What rows would cost under a choice, by present statistics; None if unknown."""

    @abstractmethod
    def take(self, choice: Choice) -> None:
        """From now on this."""

    def refuse(self) -> None:
        """None of the candidates was taken, if there were any."""

    def go_back(self, choice: Choice) -> None:
        """The last switch did not pay: as before."""
        self.take(choice)

    def avoid(self, banned: frozenset[Choice]) -> None:
        """Choices that did not pay, and are not to be tried within tasks either."""

    def unsettled(self) -> None:
        """A switch was made whose like led to others soon after: be more careful."""

    def settled(self) -> None:
        """A switch has paid: less caution is needed."""

    @abstractmethod
    def applied(self, plan: QueryPlan) -> QueryPlan:
        """The plan with what was chosen in it."""

    # -- what others are told ----------------------------------------------------------------

    @abstractmethod
    def shown(self, choice: Choice) -> tuple[str, ...]:
        """A choice in words."""

    def kept(self) -> Any:
        """The choice as JSON, to begin with after a restart; None: nothing."""
        return None

    def resume(self, kept: Any) -> None:
        """Begin with what was kept, unless it is of another text."""

    def report(self, profiler: WatchProfiler) -> list[dict[str, Any]]:
        """Counters and estimates, for `Query.stats()`."""
        return []

    def lines(self, profiler: WatchProfiler) -> list[str]:
        """The same in words, for EXPLAIN ADAPT."""
        return []

    def costs_per_row(self) -> dict[str, float]:
        """What predicates cost, by their text, for SysStream."""
        return {}


@dataclass(frozen=True, slots=True)
class Known:
    """What is known before anything was observed: costs of predicates by their text and of the
    operations of joins, where they are given, and the memory for the caches of one join."""

    costs: Mapping[str, float]
    join_costs: JoinCosts | None
    cache_bytes: int

    def lookups(self, count: int) -> tuple[float, ...] | None:
        """What looking rows up in so many windows costs, where that is given."""
        return None if self.join_costs is None else (self.join_costs.probe,) * count


@dataclass(frozen=True, slots=True)
class WatchKind:
    """A family of watches. `find` says what there is to watch in a plan; `name` is where `stats()`
    lists it."""

    name: str
    find: Callable[[QueryPlan, QueryOptions, Known], Sequence[Watch[Any]]]


@dataclass(frozen=True, slots=True)
class WatchProfiler:
    """The Profiler as one watch sees it: keys begin with the query and the watch."""

    profiler: Profiler
    scope: Key

    def record(self, key: Key, *seen: Any) -> None:
        self.profiler.record((*self.scope, *key), *seen)

    def estimate(self, key: Key) -> Estimate:
        return self.profiler.estimate((*self.scope, *key))
