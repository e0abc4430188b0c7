"""Which subresults a join keeps: the Re-optimizer of its caches.

Pipelines are profiled as if nothing were cached; from that come the rates and costs of their
operators, and how often a cache would miss. Caches that are in use are watched as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isnan

from thalweg.adapt.constants import (
    BUCKETS_PER_KEY,
    CACHE_BYTES,
    CACHE_EPOCHS,
    CACHE_FIRST_EPOCHS,
    CACHE_PAGE,
    COLD_EPOCHS,
    JOIN_ROWS,
    JOIN_SHARE,
    LEAST_BUCKETS,
    ROOM_TO_GROW,
    SAMPLE_OBSERVATIONS,
    USED_EPOCHS,
    USED_ROWS,
    USED_SHARE,
)
from thalweg.adapt.joins.calibration import JoinCosts, calibrated
from thalweg.adapt.joins.candidates import Leaves, Segment, Shared, candidates, global_candidates
from thalweg.adapt.joins.costs import (
    Apart,
    CacheEstimate,
    Estimates,
    benefit,
    total_cost,
    upkeep,
)
from thalweg.adapt.joins.estimators import NewKeyShare, Recent
from thalweg.adapt.joins.lifecycle import CacheStates, State
from thalweg.adapt.joins.memory import PagePool, priority
from thalweg.adapt.joins.pacing import Pace
from thalweg.adapt.joins.profiles import PipelineProfile, UpkeepProfile
from thalweg.adapt.joins.selection import select
from thalweg.adapt.joins.trial import CacheTrial
from thalweg.adapt.planlog import KEPT, PlanLog, Switch
from thalweg.exec.tactics import JoinSeen, JoinTactic
from thalweg.plan.physical import QueryPlan
from thalweg.plan.pipeline import Pipeline
from thalweg.plan.relations.block import Block
from thalweg.plan.subresults import Span, key_of, may_be_kept, sources_of, upkeep_of, with_spans


@dataclass(frozen=True, slots=True)
class Candidate:
    """What people are told of a cache: what is done with it, what it saves and costs an epoch, and
    what it holds (for pipelines that share it, each time)."""

    name: str
    state: State
    saves: float | None
    upkeep: float | None
    bytes: int


class CacheWatch:
    """The caches of one join. `costs` replace what is calibrated, where operations are counted. No
    cache is used unless the join then costs at most the part `gain` of what it costs without."""

    def __init__(
        self,
        plan: QueryPlan,
        relation: int,
        log: PlanLog,
        costs: JoinCosts | None = None,
        memory: int = CACHE_BYTES,
        gain: float = 1.0,
    ) -> None:
        self.relation = relation
        self.log = log
        self.gain = gain
        self.costs = costs or calibrated()
        self.pool = PagePool[Shared](memory // CACHE_PAGE, CACHE_PAGE)
        self._plan = plan
        self._block = plan.block(relation)
        self._orders = self._block.orders
        self._upkeep: dict[Segment, tuple[Pipeline, ...]] = {}
        self._profiles = {leaf: PipelineProfile.of(len(o)) for leaf, o in self._orders.items()}
        self.states = CacheStates(
            self._candidates(), interval=CACHE_EPOCHS, first=CACHE_FIRST_EPOCHS, hides=False
        )
        self._distinct = {s: NewKeyShare() for s in self.states.states}
        self._apart: dict[tuple[Leaves, int], UpkeepProfile] = {}
        self._missed: dict[Segment, Recent] = {}
        self._limits: dict[Shared, int] = {}
        self._pace = Pace(timed=costs is None)
        self._trial = CacheTrial(timed=costs is None)
        self._banned: dict[frozenset[Segment], int] = {}
        self._epochs = 0
        self._used: tuple[Segment, ...] = ()
        self._numbers: dict[Segment, int] = {}
        self._bytes: dict[Shared, int] = {}

    # -- what the executor is asked ----------------------------------------------------------

    def tactic(self, part: int, parts: int) -> JoinTactic:
        """What one of several tasks is to look at in the next epoch: other pipelines than the rest,
        and others than before."""
        choosing = any(s is State.PROFILED for s in self.states.states.values())
        watching = bool(self._used) and self._epochs % USED_EPOCHS == 0
        if not self._pace.can_afford or not (choosing or watching):
            return JoinTactic()
        keys = tuple(_lookup(self._block, self._orders, s) for s in self.states.states)
        upkeep = tuple(self._pipelines_apart().values())
        apart = min(parts, len(self._profiles))
        turn = (leaf for n, leaf in enumerate(self._profiles, part + self._epochs) if not n % apart)
        rows = (JOIN_SHARE, JOIN_ROWS) if choosing else (USED_SHARE, USED_ROWS)
        return JoinTactic(frozenset(turn), *rows, keys, upkeep)

    def _pipelines_apart(self) -> dict[tuple[Leaves, int], Pipeline]:
        """What would keep up the candidates that need it, by what is cached and whose rows come."""
        return {(s.leaves, p.leaf): p for s, apart in self._upkeep.items() for p in apart}

    # -- what it has seen --------------------------------------------------------------------

    def saw(self, seen: Sequence[JoinSeen]) -> None:
        """An epoch is over, whatever is made of what its tasks have seen."""
        self._epochs += 1
        self._pace.saw(seen, self._trial.is_on)
        self._trial.saw(seen)

    def absorb(self, seen: Sequence[JoinSeen], epoch: int) -> bool:
        """Take in what the tasks of an epoch have seen; whether other caches are to be used."""
        asked = list(self.states.states)
        if self._pace.is_surprised:
            self._start_over()
        for leaf, profile in self._profiles.items():
            profile.rows.add(sum(one.rows.get(leaf, 0) for one in seen))
            profile.left.add(sum(one.left.get(leaf, 0) for one in seen))
        for one in seen:
            for number, hashes in one.keys.items():
                self._distinct[asked[number]].add(hashes)
            self._watch_used(one)
            self._watch_apart(one)
            for leaf, sample in one.samples.items():
                self._profiles[leaf].add(sample)
        self._observe(sum(len(one.samples) for one in seen))
        if self._pace.can_afford:
            self.states.tick(self._epochs)
        if self._trial.has_failed(self._cost_of):
            self._go_back(epoch, self._trial.old)
            return True
        if self.states.ready():
            self.states.decide(self._chosen)
            self._pace.chosen()
        return self._changed(epoch) | self._allotted()

    def _start_over(self) -> None:
        """Streams are not what they were: forget how fast they came, and choose anew."""
        for profile in self._profiles.values():
            profile.rows, profile.left = Recent(), Recent()
        self.states.start_over("rows come faster or slower, or take longer")
        self._pace.hurry()
        self._banned = {}
        self._trial.give_up()

    def _watch_apart(self, one: JoinSeen) -> None:
        asked = list(self._pipelines_apart())
        for number, effort in one.upkeep.items():
            self._apart.setdefault(asked[number], UpkeepProfile()).add(effort)

    def _watch_used(self, one: JoinSeen) -> None:
        for number, cache in one.caches.items():
            for segment in (s for s in self._used if self._numbers[s] == number):
                if cache.lookups:
                    missed = self._missed.setdefault(segment, Recent(COLD_EPOCHS))
                    missed.add(cache.fills / cache.lookups)
                self._bytes[segment.shared] = cache.bytes

    def _observe(self, samples: int) -> None:
        estimates = self.estimates() if samples else None
        if estimates is None:
            return
        times = max(samples // len(self._profiles), 1) * SAMPLE_OBSERVATIONS
        for segment in estimates.caches:
            figures = benefit(segment, estimates), upkeep(segment, estimates)
            self.states.observed(segment, *figures, times)

    # -- estimates ---------------------------------------------------------------------------

    def estimates(self) -> Estimates | None:
        """Rates per epoch and costs as the last observations show them; None if there are none."""
        if not all(p.is_known for p in self._profiles.values()):
            return None
        operators = {leaf: p.operators(self.costs) for leaf, p in self._profiles.items()}
        outputs = {leaf: p.output for leaf, p in self._profiles.items()}
        passes = {leaf: p.passes for leaf, p in self._profiles.items()}
        found = Estimates(self._orders, operators, outputs, {}, passes=passes)
        caches = {s: self._cache(s, found) for s in self.states.states}
        apart = {s: self._kept_up(s) for s in self._upkeep}
        known = {
            s: c
            for s, c in caches.items()
            if not isnan(c.miss_prob) and (s not in apart or apart[s] is not None)
        }
        told = {s: a for s, a in apart.items() if a is not None}
        return replace(found, caches=known, apart=told)

    def _kept_up(self, segment: Segment) -> Apart | None:
        """What the pipelines apart of a cache bring and take an epoch; None if it is not known."""
        deltas = spent = 0.0
        for pipeline in self._upkeep[segment]:
            profile = self._apart.get((segment.leaves, pipeline.leaf))
            if profile is None:
                return None
            rows = self._profiles[pipeline.leaf].rows.mean
            deltas += rows * profile.results.mean
            spent += rows * profile.spent(self.costs)
        return Apart(frozenset(p.leaf for p in self._upkeep[segment]), deltas, spent)

    def _cache(self, segment: Segment, e: Estimates) -> CacheEstimate:
        costs = self.costs
        missed = self._missed.get(segment)
        if self.states.states.get(segment) is State.USED and missed is not None and missed.full:
            miss = missed.mean
        else:
            # what is asked for again when it vanishes has been asked for before
            miss = self._distinct[segment].miss_probability() / e.passes_of(segment.pipeline)
        asked = e.asked(segment)
        if not asked:  # then nothing can miss either
            miss = 0.0
        size = e.rate_after(segment.pipeline, segment.last + 1) / asked if asked else 0.0
        return CacheEstimate(miss, costs.lookup + size * costs.found, costs.update)

    # -- choosing ----------------------------------------------------------------------------

    def _candidates(self) -> list[Segment]:
        """Segments whose changes come by, and, up to a quota, others that are kept up apart."""

        def key(before: frozenset[int], own: frozenset[int]) -> tuple[str, ...]:
            return key_of(self._block, before, own) if may_be_kept(self._block, [*own]) else ()

        found = candidates(self._orders, key)
        more = global_candidates(self._orders, key, found)
        more = [replace(s, beside=frozenset()) for s in more]  # kept exactly, not as a semijoin
        self._upkeep = {
            s: upkeep_of(self._plan, self.relation, Span(s.pipeline, s.first, s.last)) for s in more
        }
        return found + more

    def _chosen(self, considered: Sequence[Segment]) -> frozenset[Segment]:
        estimates = self.estimates()
        if estimates is None:
            return frozenset()
        found = select([s for s in considered if s in estimates.caches], estimates)
        bare = total_cost((), estimates)
        if total_cost(found, estimates) > self.gain * bare:
            return frozenset()
        return self.states.used if self._banned.get(found, 0) > self._epochs else found

    def _allotted(self) -> bool:
        """Give every cache the pages it needs, those that bring most per byte first; whether one
        has more or less than before."""
        sharing = dict.fromkeys(s.shared for s in self._used)
        held, pool = self._bytes, self.pool
        is_full = any(held.get(s, 0) + CACHE_PAGE > pool.bytes_of(s) for s in sharing)
        if sharing.keys() == self._limits.keys() and not is_full:
            return False
        estimates = self.estimates()
        if estimates is None or not self._used:
            return False
        ranks: dict[Shared, float] = {}
        for shared in sharing:
            users = [s for s in self._used if s.shared == shared and s in estimates.caches]
            gain = sum(benefit(s, estimates) for s in users)
            cost = max((upkeep(s, estimates) for s in users), default=0.0)
            ranks[shared] = priority(gain, cost, 1, max(self._bytes.get(shared, 0), CACHE_PAGE))
        for shared in sorted(ranks, key=lambda s: -ranks[s]):
            self.pool.rank(shared, ranks[shared])
            needed = self._bytes.get(shared, 0) * ROOM_TO_GROW + CACHE_PAGE
            while self.pool.bytes_of(shared) < needed:
                if not self.pool.ask(shared, ranks[shared]).granted:
                    break
        limits = {shared: self.pool.bytes_of(shared) for shared in ranks}
        changed = limits != self._limits
        self._limits = limits
        return changed

    def _cost_of(self, caches: tuple[Segment, ...]) -> float | None:
        """What an epoch costs with some caches, by the present estimates; None if unknown."""
        estimates = self.estimates()
        if estimates is None or not set(caches) <= estimates.caches.keys():
            return None
        return total_cost(caches, estimates)

    def _changed(self, epoch: int) -> bool:
        used = tuple(sorted(self.states.used, key=lambda s: (s.pipeline, s.first)))
        if used == self._used:
            return False
        self._trial.begin(self._log(epoch, used), self._used)
        self._use(used)
        return True

    def _go_back(self, epoch: int, old: tuple[Segment, ...]) -> None:
        """The last change did not pay: as before, and not again for a while."""
        self._banned[frozenset(self._used)] = self._epochs + CACHE_EPOCHS
        self.states.go_back(old)
        used = tuple(s for s in old if s in self.states.states)
        self._log(epoch, used, "measured cost per row").outcome = KEPT
        self._use(used)

    def _use(self, used: tuple[Segment, ...]) -> None:
        """From now on these; what others held is given back."""
        for gone in {s.shared for s in self._used} - {s.shared for s in used}:
            self.pool.release(gone)
            self._bytes.pop(gone, None)
        self._used = used
        self._missed = {s: m for s, m in self._missed.items() if s in used}

    def _log(
        self, epoch: int, used: tuple[Segment, ...], why: str = "cost of an epoch by profile"
    ) -> Switch:
        estimates = self.estimates()
        assert estimates is not None
        before, after = ([s for s in some if s in estimates.caches] for some in (self._used, used))
        costs = total_cost(before, estimates), total_cost(after, estimates)
        old, new = (tuple(_name_of(self._block, s) for s in some) for some in (before, used))
        evidence = sum(p.handled[0].count for p in self._profiles.values())
        switch = Switch(
            epoch, "caches", old or ("none",), new or ("none",), why,
            " + ".join(old) or "none", " + ".join(new) or "none", *costs, evidence, costs,
        )  # fmt: skip
        self.log.add(switch)
        return switch

    def described(self) -> list[Candidate]:
        """Every candidate, by the present estimates."""
        estimates = self.estimates()
        known = {} if estimates is None else estimates.caches
        return [
            Candidate(
                _name_of(self._block, s),
                state,
                benefit(s, estimates) if estimates is not None and s in known else None,
                upkeep(s, estimates) if estimates is not None and s in known else None,
                self._bytes.get(s.shared, 0) if state is State.USED else 0,
            )
            for s, state in self.states.states.items()
        ]

    def applied(self, plan: QueryPlan) -> QueryPlan:
        """The plan with the chosen caches, each within the memory that it gets."""
        plan = with_spans(
            plan,
            self.relation,
            [_span(s, self._distinct[s], self._limits.get(s.shared, 0)) for s in self._used],
        )
        block = plan.block(self.relation)
        self._numbers = {
            s: next(
                n
                for n, kept in enumerate(block.subresults)
                if set(kept.members) == s.leaves and kept.key == s.key
            )
            for s in self._used
        }
        return plan

    def is_of_other_orders(self, plan: QueryPlan) -> bool:
        return plan.block(self.relation).orders != self._orders

    def reordered(self, plan: QueryPlan) -> None:
        """Pipelines have changed: look for candidates anew."""
        block = plan.block(self.relation)
        orders = block.orders
        changed = [leaf for leaf in orders if orders[leaf] != self._orders[leaf]]
        self._plan, self._orders, self._block = plan, orders, block
        for leaf in changed:
            self._profiles[leaf] = PipelineProfile.of(len(orders[leaf]))
        found = self._candidates()
        self.states.reordered(found, changed)
        self._distinct = {s: self._distinct.get(s, NewKeyShare()) for s in self.states.states}
        used = self.states.used
        self._use(tuple(s for s in self._used if s in used))
        self._trial.give_up()


def _lookup(
    block: Block, orders: Mapping[int, Sequence[int]], segment: Segment
) -> tuple[int, int, tuple[str, ...]]:
    before = [segment.pipeline, *orders[segment.pipeline][: segment.first]]
    return segment.pipeline, segment.first, sources_of(block, before, segment.leaves)


def _name_of(block: Block, segment: Segment) -> str:
    leaves = "⋈".join(block.leaves[i].alias for i in sorted(segment.leaves))
    return f"{leaves} in Δ{block.leaves[segment.pipeline].alias}"


def _span(segment: Segment, distinct: NewKeyShare, limit: int) -> Span:
    """Where a cache stands, with room for the keys that are asked for."""
    wanted = max(LEAST_BUCKETS, int(BUCKETS_PER_KEY * distinct.entries()))
    buckets = 1 << (wanted - 1).bit_length()
    return Span(segment.pipeline, segment.first, segment.last, False, buckets, limit)
