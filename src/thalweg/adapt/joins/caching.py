"""The choice of subresults that a join keeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from thalweg.adapt.constants import (
    AUTO_GAIN,
    BUCKETS_PER_KEY,
    CACHE_BYTES,
    CACHE_EPOCHS,
    CACHE_FIRST_EPOCHS,
    CACHE_PAGE,
    CACHED_GAIN,
    JOIN_ROWS,
    JOIN_SHARE,
    LEAST_BUCKETS,
    ROOM_TO_GROW,
    SAMPLE_OBSERVATIONS,
    USED_EPOCHS,
    USED_ROWS,
    USED_SHARE,
)
from thalweg.adapt.estimates import Estimate
from thalweg.adapt.joins.calibration import calibrated
from thalweg.adapt.joins.candidates import Segment, Shared, candidates, global_candidates
from thalweg.adapt.joins.costs import Estimates, benefit, total_cost, upkeep
from thalweg.adapt.joins.lifecycle import CacheStates, State
from thalweg.adapt.joins.memory import PagePool, priority
from thalweg.adapt.joins.selection import select
from thalweg.adapt.joins.statistics import JoinStatistics, Upkeep
from thalweg.adapt.joins.trial import Caches, CacheTrial
from thalweg.adapt.operation_costs import UNITS, JoinCosts
from thalweg.adapt.planlog import EPOCH_SECONDS, ROW_UNITS, Reason, Switch, amount
from thalweg.adapt.profiler import Key, Statistic
from thalweg.adapt.watch import Candidate, Known, Watch, WatchKind, WatchProfiler
from thalweg.exec.tactics import JoinOf, JoinSeen, JoinTactic
from thalweg.plan.bound_query import QueryOptions
from thalweg.plan.joins.join_caches import (
    Span,
    key_of,
    may_be_kept,
    sources_of,
    upkeep_of,
    with_spans,
)
from thalweg.plan.physical import QueryPlan
from thalweg.plan.relations.block import Block, blocks_of

RATES = ("caches", "rates")


@dataclass(frozen=True, slots=True)
class CacheReport:
    """The report on one cache: its state, what it saves and costs an epoch, and what it holds (for
    pipelines that share it, each time)."""

    name: str
    state: State
    saves: float | None
    upkeep: float | None
    bytes: int


class CacheWatch(Watch[Caches]):
    """The caches of one join. `costs` replace calibrated ones, where operations are counted. No
    cache is used unless the join then costs at most the part `gain` of its cost without."""

    ban = CACHE_EPOCHS
    cost_unit = EPOCH_SECONDS

    def __init__(
        self,
        plan: QueryPlan,
        relation: int,
        costs: JoinCosts | None = None,
        memory: int = CACHE_BYTES,
        gain: float = 1.0,
    ) -> None:
        super().__init__(JoinOf(relation), "caches", CacheTrial(timed=costs is None))
        self.relation = relation
        self.gain = gain
        self.costs = costs or calibrated()
        if self.costs is UNITS:
            self.cost_unit, self.row_unit = "units an epoch", ROW_UNITS
        self.pool = PagePool[Shared](memory // CACHE_PAGE, CACHE_PAGE)
        self._plan = plan
        self._block = plan.block(relation)
        self._orders = self._block.orders
        self.seen = JoinStatistics(
            self._orders, self.costs, costs is None, lambda: self.trial.is_on
        )
        self.states = CacheStates(
            self._considered(), interval=CACHE_EPOCHS, first=CACHE_FIRST_EPOCHS, hides=False
        )
        self._limits: dict[Shared, int] = {}
        self._used: Caches = ()

    # -- observations ------------------------------------------------------------------------

    def statistics(self) -> Mapping[Key, Statistic | None]:
        return {RATES: self.seen}

    def tactic(self, seed: int, part: int, parts: int) -> JoinTactic:
        """What one of several tasks is to observe in the next epoch: other pipelines than the other
        tasks, and others than before."""
        choosing = any(s is State.PROFILED for s in self.states.states.values())
        watching = bool(self._used) and self.seen.epochs % USED_EPOCHS == 0
        if not self.seen.pace.can_afford or not (choosing or watching):
            return JoinTactic()
        keys = tuple(_lookup(self._block, self._orders, s) for s in self.seen.asked)
        pipelines = self.seen.pipelines
        apart = min(parts, len(pipelines))
        turn = (p for n, p in enumerate(pipelines, part + self.seen.epochs) if not n % apart)
        rows = (JOIN_SHARE, JOIN_ROWS) if choosing else (USED_SHARE, USED_ROWS)
        return JoinTactic(frozenset(turn), *rows, keys, tuple(self.seen.apart.values()))

    def follows(self, plan: QueryPlan, seen: Sequence[JoinSeen]) -> bool:
        """Whether pipelines have changed: then candidates are looked for anew."""
        block = plan.block(self.relation)
        orders, before = block.orders, self._orders
        if orders == before:  # though it may have been put in anew, without caches
            self.is_stale |= bool(self._used) and not block.subresults
            return False
        self.seen.pass_over(seen)
        self._plan, self._orders, self._block = plan, orders, block
        self.seen.reorder(orders)
        changed = [leaf for leaf in orders if orders[leaf] != before[leaf]]
        self.states.reordered(self._considered(), changed)
        used = self.states.used
        self._use(tuple(s for s in self._used if s in used))
        return True

    def observe(
        self, portion: Sequence[JoinSeen], profiler: WatchProfiler
    ) -> Sequence[tuple[Switch, Caches]]:
        profiler.record(RATES, portion)
        estimates = self.estimates() if self.seen.samples else None
        if estimates is not None:
            samples = max(self.seen.samples // len(self.seen.pipelines), 1)
            for segment in estimates.caches:
                figures = benefit(segment, estimates), upkeep(segment, estimates)
                self.states.observed(segment, *figures, samples * SAMPLE_OBSERVATIONS)
        if self.seen.pace.can_afford:
            self.states.tick(self.seen.epochs)
        return ()

    def end_epoch(self, seen: Sequence[JoinSeen], profiler: WatchProfiler) -> None:
        """Give every cache the pages it needs."""
        held = {s.shared: self.seen.bytes.get(s.shared, 0) for s in self._used}
        is_full = any(n + CACHE_PAGE > self.pool.bytes_of(s) for s, n in held.items())
        if held.keys() == self._limits.keys() and not is_full:
            return
        estimates = self.estimates()
        if estimates is not None and self._used:
            limits = _allotted(self.pool, self._used, held, estimates)
            self.is_stale |= limits != self._limits
            self._limits = limits

    def noticed(self, key: Key, before: Estimate, now: Estimate) -> bool:
        """Choose anew, as statistics of streams have changed."""
        self.states.start_over("rows come faster or slower, or take longer")
        self.seen.pace.hurry()
        return True

    def estimates(self) -> Estimates | None:
        return self.seen.estimates()

    # -- choices -----------------------------------------------------------------------------

    @property
    def choice(self) -> Caches:
        return self._used

    def candidates(self, compare: bool) -> Sequence[Candidate[Caches]]:
        if self.states.ready():
            self.states.decide(self._best)
            self.seen.pace.chosen()
        found = [Candidate(self._used)]
        wanted = _sorted(self.states.used)
        if wanted != self._used:
            found.append(Candidate(wanted, self._reason(wanted)))
        if compare and all(c.choice for c in found):
            found.append(Candidate(()))
        return found

    def cost(self, choice: Caches) -> float | None:
        """The cost of an epoch with some caches, by the present estimates; None if unknown."""
        estimates = self.estimates()
        if estimates is None or not set(choice) <= estimates.caches.keys():
            return None
        return total_cost(choice, estimates)

    def take(self, choice: Caches) -> None:
        self._use(choice)

    def refuse(self) -> None:
        if self.states.used != frozenset(self._used):
            self.states.go_back(self._used, "refused: the change did not pay before")

    def go_back(self, choice: Caches) -> None:
        self.states.go_back(choice, "measured: rows took longer")
        self._use(_sorted(s for s in choice if s in self.states.states))

    def _considered(self) -> list[Segment]:
        """Segments whose changes the pipelines produce, and, up to a quota, others that are
        maintained by separate pipelines."""

        def key(before: frozenset[int], own: frozenset[int]) -> tuple[str, ...]:
            return key_of(self._block, before, own) if may_be_kept(self._block, [*own]) else ()

        found = candidates(self._orders, key)
        more = global_candidates(self._orders, key, found)
        more = [replace(s, beside=frozenset()) for s in more]  # kept exactly, not as a semijoin
        upkeep: Upkeep = {
            s: upkeep_of(self._plan, self.relation, Span(s.pipeline, s.first, s.last)) for s in more
        }
        self.seen.consider(dict.fromkeys(found + more), upkeep)
        return found + more

    def _best(self, considered: Sequence[Segment]) -> frozenset[Segment]:
        """The best choice by the present estimates."""
        estimates = self.estimates()
        if estimates is None:
            return frozenset()
        found = select([s for s in considered if s in estimates.caches], estimates)
        bare = total_cost((), estimates)
        return found if total_cost(found, estimates) <= self.gain * bare else frozenset()

    def _reason(self, wanted: Caches) -> Reason:
        before, after = self.cost(self._used), self.cost(wanted)
        old, new = (" + ".join(self.shown(some)) for some in (self._used, wanted))
        return Reason(
            "cost of an epoch by profile", old, new, before or 0.0, after or 0.0, self.seen.evidence
        )

    def _use(self, used: Caches) -> None:
        """Use these caches from now on; the pages of others are released."""
        for gone in {s.shared for s in self._used} - {s.shared for s in used}:
            self.pool.release(gone)
        self._used = used
        self.is_stale = True

    def applied(self, plan: QueryPlan) -> QueryPlan:
        """The plan with the chosen caches, each within the memory that it gets."""
        spans = [_span(s, self.seen.keys_of(s), self._limits.get(s.shared, 0)) for s in self._used]
        plan = with_spans(plan, self.relation, spans)
        kept = enumerate(plan.block(self.relation).subresults)
        numbers = {(frozenset(k.members), k.key): n for n, k in kept}
        self.seen.use({s: numbers[s.leaves, s.key] for s in self._used})
        self.is_stale = False
        return plan

    # -- reports -----------------------------------------------------------------------------

    def shown(self, choice: Caches) -> tuple[str, ...]:
        return tuple(_name_of(self._block, s) for s in choice) or ("none",)

    def described(self) -> list[CacheReport]:
        """Every candidate, by the present estimates."""
        estimates = self.estimates()
        known = {} if estimates is None else estimates.caches
        return [
            CacheReport(
                _name_of(self._block, s),
                state,
                benefit(s, estimates) if estimates is not None and s in known else None,
                upkeep(s, estimates) if estimates is not None and s in known else None,
                self.seen.bytes.get(s.shared, 0) if state is State.USED else 0,
            )
            for s, state in self.states.states.items()
        ]

    def report(self, profiler: WatchProfiler) -> list[dict[str, Any]]:
        return [
            {
                "cache": c.name,
                "state": c.state.value,
                "saves": c.saves,
                "upkeep": c.upkeep,
                "bytes": c.bytes,
            }
            for c in self.described()
        ]

    def lines(self, profiler: WatchProfiler) -> list[str]:
        found = self.described()
        if not found:
            return ["adaptive: no subresult that pipelines in this order could cache"]
        used, pages = self.pool.pages - self.pool.free, self.pool.pages
        lines = [f"adaptive: caches, {used} of {pages} pages of {CACHE_PAGE >> 10} KiB in use"]
        for c in found:
            figures = "saving not known yet"
            if c.saves is not None and c.upkeep is not None:
                verb = "saves" if c.state is State.USED else "would save"
                saves, cost = (amount(f, self.cost_unit) for f in (c.saves, c.upkeep))
                figures = f"{verb} {saves}, upkeep {cost} (estimates)"
            lines.append(f"  {c.name}: {c.state.value}, {figures}")
        return lines


def _allotted(
    pool: PagePool[Shared], used: Caches, held: Mapping[Shared, int], estimates: Estimates
) -> dict[Shared, int]:
    """How many bytes each cache may hold; those with the largest benefit per byte are served
    first."""
    ranks: dict[Shared, float] = {}
    for shared, size in held.items():
        users = [s for s in used if s.shared == shared and s in estimates.caches]
        gain = sum(benefit(s, estimates) for s in users)
        cost = max((upkeep(s, estimates) for s in users), default=0.0)
        ranks[shared] = priority(gain, cost, 1, max(size, CACHE_PAGE))
    for shared in sorted(ranks, key=lambda s: -ranks[s]):
        pool.rank(shared, ranks[shared])
        needed = held[shared] * ROOM_TO_GROW + CACHE_PAGE
        while pool.bytes_of(shared) < needed:
            if not pool.ask(shared, ranks[shared]).granted:
                break
    return {shared: pool.bytes_of(shared) for shared in ranks}


def _sorted(caches: Any) -> Caches:
    return tuple(sorted(caches, key=lambda s: (s.pipeline, s.first)))


def _lookup(
    block: Block, orders: Mapping[int, Sequence[int]], segment: Segment
) -> tuple[int, int, tuple[str, ...]]:
    before = [segment.pipeline, *orders[segment.pipeline][: segment.first]]
    return segment.pipeline, segment.first, sources_of(block, before, segment.leaves)


def _name_of(block: Block, segment: Segment) -> str:
    leaves = "⋈".join(block.leaves[i].alias for i in sorted(segment.leaves))
    return f"{leaves} in Δ{block.leaves[segment.pipeline].alias}"


def _span(segment: Segment, keys: float, limit: int) -> Span:
    """The place of a cache, with room for the keys it is probed with."""
    wanted = max(LEAST_BUCKETS, int(BUCKETS_PER_KEY * keys))
    buckets = 1 << (wanted - 1).bit_length()
    return Span(segment.pipeline, segment.first, segment.last, False, buckets, limit)


def _find(plan: QueryPlan, options: QueryOptions, known: Known) -> list[CacheWatch]:
    if options.joins in ("xjoin", "mjoin"):
        return []
    gain = CACHED_GAIN if options.joins == "cached" else AUTO_GAIN
    return [
        CacheWatch(plan, number, known.join_costs, known.cache_bytes, gain)
        for number, relation in blocks_of(plan.relations)
        if relation.is_many_way
    ]


CACHES = WatchKind("caches", _find)
