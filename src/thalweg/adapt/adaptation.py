"""Adaptation of the queries of an engine.

All of it is soft state of the driver. Choices and the end of the plan log are handed back to be
stored with the query, so that a restart begins where the engine stopped; everything else is learned
again.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from thalweg.adapt.balance import sentence
from thalweg.adapt.constants import CACHE_BYTES
from thalweg.adapt.kinds import WATCH_KINDS
from thalweg.adapt.loop import Loop
from thalweg.adapt.operation_costs import JoinCosts
from thalweg.adapt.planlog import PlanLog
from thalweg.adapt.profiler import Profiler
from thalweg.adapt.watch import Known, Watch, WatchKind
from thalweg.exec.tactics import AnyTactic, Seen, Subject
from thalweg.plan.bound_query import QueryOptions
from thalweg.plan.physical import QueryPlan

ORDERS = "orders"
"""The key under which version 0.1 stored the orders of a query, by position."""
_LOG = "log"
_SHOWN = 5
NOTHING = "adaptive: nothing (it takes two predicates on the same rows, or a join of three)"
UNKNOWN_HERE = (
    "adaptive: not known here (it is known to the engine in which the query runs by itself)"
)
WORDS = {
    "→": "a → b: first a, then b",
    "profiled": "profiled rows: they are asked everything, so that orders can be compared",
    "drops per cost": "drops per cost: rows dropped per second of work",
    "Δ": "Δs: the rows that enter and leave the window on s",
    "⋈": "s⋈t: what a join of s and t gives",
    "upkeep": "upkeep: what keeping it up to date takes",
}
"""What is not plain by itself, explained at the end of EXPLAIN ADAPT where it occurs."""


@dataclass(slots=True)
class Watched:
    """The watches of one query: for each watch the name of its kind, the name under which its
    choice is stored, and the loop around it."""

    log: PlanLog
    loops: list[tuple[str, str, Loop[Any]]] = field(default_factory=list)

    @property
    def observed(self) -> list[Loop[Any]]:
        return [loop for _, _, loop in self.loops if loop.watch.what is not None]

    def of(self, kind: str) -> list[Any]:
        """The watches of a kind."""
        return [loop.watch for name, _, loop in self.loops if name == kind]


class Adaptation:
    """Executor hooks: `tactics` before a step, `learn` after it."""

    def __init__(
        self,
        costs: Mapping[str, float] | None = None,
        join_costs: JoinCosts | None = None,
        kinds: Sequence[WatchKind] | None = None,
        profiler: Profiler | None = None,
    ) -> None:
        self.costs = dict(costs or {})
        self.join_costs = join_costs
        self.cache_bytes = CACHE_BYTES
        self.profiler = profiler or Profiler()
        self.queries: dict[str, Watched] = {}
        self._kinds = WATCH_KINDS if kinds is None else kinds

    # -- watches -----------------------------------------------------------------------------

    def watch(
        self,
        name: str,
        plan: QueryPlan,
        options: QueryOptions,
        kept: Mapping[str, Any] | None = None,
    ) -> QueryPlan:
        """Begin to watch a query, starting from its stored choices; returns the plan that uses
        them. A new plan of a known query continues its log."""
        kept = kept or {}
        known = name in self.queries
        found = Watched(self.log(name) if known else PlanLog(kept.get(_LOG)))
        self.forget(name)
        choices = _Choices(kept)
        given = Known(self.costs, self.join_costs, self.cache_bytes)
        for kind in self._kinds:
            for watch in kind.find(plan, options, given):
                at = choices.begin(kind.name, watch)
                loop = Loop(watch, (name, at), self.profiler, found.log)
                found.loops.append((kind.name, at, loop))
                plan = watch.applied(plan)
        self.queries[name] = found
        return plan

    def forget(self, name: str) -> None:
        found = self.queries.pop(name, None)
        for _, _, loop in found.loops if found is not None else ():
            loop.close()

    # -- hooks of the executor ---------------------------------------------------------------

    def tactics(
        self, name: str, epoch: int, part: int, parts: int
    ) -> tuple[tuple[Subject, AnyTactic], ...]:
        """The observations that one task is to make, seeded so that a retry samples the same
        rows."""
        watched = self.queries.get(name)
        if watched is None:
            return ()
        seed = zlib.crc32(f"{name}/{epoch}/{part}".encode())
        return tuple(
            (loop.watch.what, loop.watch.tactic(seed + i, part, parts))
            for i, loop in enumerate(watched.observed)
            if loop.watch.what is not None
        )

    def learn(
        self, name: str, plan: QueryPlan, epoch: int, seen: Sequence[tuple[int, Seen]]
    ) -> QueryPlan:
        """Process the observations of an epoch's tasks, by the numbers of their tactics; returns
        the plan for the next epoch."""
        watched = self.queries.get(name)
        for number, loop in enumerate(watched.observed if watched is not None else ()):
            plan = loop.learn(plan, [o for n, o in seen if n == number], epoch)
        return plan

    # -- reports -----------------------------------------------------------------------------

    def kept(self, name: str) -> dict[str, Any]:
        """The choices in force and the end of the plan log as JSON, to be stored with the query."""
        watched = self.queries.get(name)
        if watched is None:
            return {}
        choices = ((at, loop.watch.kept()) for _, at, loop in watched.loops)
        found: dict[str, Any] = {at: choice for at, choice in choices if choice is not None}
        log = watched.log.kept()
        return {**found, _LOG: log} if log else found

    def log(self, name: str) -> PlanLog:
        found = self.queries.get(name)
        return PlanLog() if found is None else found.log

    def costs_of(self, name: str) -> dict[str, float]:
        """The cost per row of the predicates of a query's conjunctions, by their text."""
        costs = (loop.watch.costs_per_row() for _, _, loop in self._loops(name))
        return {text: cost for some in costs for text, cost in some.items()}

    def report(self, name: str) -> dict[str, Any]:
        """Counters and estimates of a query's adaptation, for `Query.stats()`."""
        if name not in self.queries:
            return {}
        found: dict[str, Any] = {kind.name: [] for kind in self._kinds}
        for kind, _, loop in self._loops(name):
            found[kind] += loop.watch.report(loop.seen)
        log, balance = self.log(name), sentence(r for rows in found.values() for r in rows)
        told = {"switches": log.count, "considered": list(log.considered)}
        return {"so_far": balance, **told, **found}

    def explain(self, name: str) -> str:
        """EXPLAIN ADAPT: what is watched, what was learned, which plans were considered and chosen,
        and what each change saved or cost."""
        if name not in self.queries:
            return UNKNOWN_HERE
        loops, log = self._loops(name), self.log(name)
        if not loops:
            return NOTHING
        lines = [f"so far: {self.report(name)['so_far']}"]
        lines += [line for _, _, loop in loops for line in loop.watch.lines(loop.seen)]
        lines.append(f"switches: {log.count}")
        lines += [f"  {switch}" for switch in list(log)[-_SHOWN:]]
        if log.considered:
            lines.append("considered:")
            lines += [f"  {found}" for found in list(log.considered)[-_SHOWN:]]
        text = "\n".join(lines)
        return "\n".join([text, "words:", *(f"  {w}" for sign, w in WORDS.items() if sign in text)])

    def _loops(self, name: str) -> list[tuple[str, str, Loop[Any]]]:
        watched = self.queries.get(name)
        return [] if watched is None else watched.loops


class _Choices:
    """Stored choices, handed to the watches that begin."""

    def __init__(self, kept: Mapping[str, Any]) -> None:
        self._kept = kept
        self._by_position = list(kept.get(ORDERS, ()))
        self._numbers: Counter[str] = Counter()

    def begin(self, kind: str, watch: Watch[Any]) -> str:
        """Start a watch with its stored choice; returns the name under which that is stored."""
        about = f"{kind}: {watch.subject}"
        self._numbers[about] += 1
        if self._numbers[about] > 1:
            about += f" ({self._numbers[about]})"
        kept = self._kept.get(about)
        if self._by_position and watch.kept() is not None:
            kept = self._by_position.pop(0)
        if kept is not None:
            watch.resume(kept)
        return about
