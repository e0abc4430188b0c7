"""Observations of one join by its tasks: rates of rows, profiles of its pipelines and caches.

Pipelines are profiled as if nothing were cached; from that follow the rates and costs of their
operators, and how often a cache would miss. Caches that are in use are observed as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from math import isnan

from thalweg.adapt.constants import COLD_EPOCHS
from thalweg.adapt.joins.candidates import Leaves, Segment, Shared
from thalweg.adapt.joins.costs import Apart, CacheEstimate, Estimates
from thalweg.adapt.joins.estimators import NewKeyShare, Recent
from thalweg.adapt.joins.pacing import Pace
from thalweg.adapt.joins.profiles import PipelineProfile, UpkeepProfile
from thalweg.adapt.operation_costs import JoinCosts
from thalweg.adapt.profiler import Change
from thalweg.exec.tactics import JoinSeen
from thalweg.plan.pipeline import Pipeline

Upkeep = Mapping[Segment, tuple[Pipeline, ...]]
"""By candidate the pipelines that would maintain it, if normal processing does not produce its
changes."""


class JoinStatistics:
    """The last observations of one join. `timed` tells that costs are seconds, `on_trial` whether
    epochs are slower because caches have just changed."""

    def __init__(
        self,
        orders: Mapping[int, tuple[int, ...]],
        costs: JoinCosts,
        timed: bool,
        on_trial: Callable[[], bool],
    ) -> None:
        self.pace = Pace(timed)
        self.epochs = 0
        self.samples = 0
        """The number of samples of the last epoch."""
        self.bytes: dict[Shared, int] = {}
        """The bytes that each cache in use holds."""
        self._costs = costs
        self._on_trial = on_trial
        self._orders = orders
        self._profiles = {leaf: PipelineProfile.of(len(o)) for leaf, o in orders.items()}
        self._distinct: dict[Segment, NewKeyShare] = {}
        self._upkeep: Upkeep = {}
        self._apart: dict[tuple[Leaves, int], UpkeepProfile] = {}
        self._missed: dict[Segment, Recent] = {}
        self._used: Mapping[Segment, int] = {}

    # -- requests ----------------------------------------------------------------------------

    @property
    def asked(self) -> list[Segment]:
        """Caches whose keys tasks report, by number."""
        return list(self._distinct)

    @property
    def apart(self) -> dict[tuple[Leaves, int], Pipeline]:
        """The separate pipelines of the candidates that need them, by cached leaves and changing
        leaf."""
        return {(s.leaves, p.leaf): p for s, apart in self._upkeep.items() for p in apart}

    def consider(self, candidates: Collection[Segment], upkeep: Upkeep) -> None:
        """Set the candidates."""
        self._distinct = {s: self._distinct.get(s, NewKeyShare()) for s in candidates}
        self._upkeep = upkeep

    def reorder(self, orders: Mapping[int, tuple[int, ...]]) -> None:
        """Discard observations of pipelines whose order has changed."""
        for leaf in orders:
            if orders[leaf] != self._orders[leaf]:
                self._profiles[leaf] = PipelineProfile.of(len(orders[leaf]))
        self._orders = orders

    def use(self, used: Mapping[Segment, int]) -> None:
        """Set the caches in use, by their numbers in the plan."""
        self._used = used
        self._missed = {s: m for s, m in self._missed.items() if s in used}
        shared = {s.shared for s in used}
        self.bytes = {s: n for s, n in self.bytes.items() if s in shared}

    # -- observations ------------------------------------------------------------------------

    def observe(self, seen: Sequence[JoinSeen]) -> Change | None:
        """What the tasks of an epoch have seen; how fast rows come, if that is not what it was."""
        self.pass_over(seen)
        surprise = self.pace.surprise
        for leaf, profile in self._profiles.items():
            if surprise is not None:
                profile.rows, profile.left = Recent(), Recent()
            profile.rows.add(sum(one.rows.get(leaf, 0) for one in seen))
            profile.left.add(sum(one.left.get(leaf, 0) for one in seen))
        for one in seen:
            self._add(one)
        self.samples = sum(len(one.samples) for one in seen)
        return surprise

    def pass_over(self, seen: Sequence[JoinSeen]) -> None:
        """An epoch is over, whatever is made of what its tasks have seen."""
        self.epochs += 1
        self.pace.saw(seen, self._on_trial())

    def _add(self, one: JoinSeen) -> None:
        asked, apart = self.asked, list(self.apart)
        for number, hashes in one.keys.items():
            self._distinct[asked[number]].add(hashes)
        for number, effort in one.upkeep.items():
            self._apart.setdefault(apart[number], UpkeepProfile()).add(effort)
        for leaf, sample in one.samples.items():
            self._profiles[leaf].add(sample)
        for number, cache in one.caches.items():
            for segment in (s for s, n in self._used.items() if n == number):
                if cache.lookups:
                    missed = self._missed.setdefault(segment, Recent(COLD_EPOCHS))
                    missed.add(cache.fills / cache.lookups)
                self.bytes[segment.shared] = cache.bytes

    # -- estimates ---------------------------------------------------------------------------

    @property
    def evidence(self) -> int:
        """Observations that estimates rest on."""
        return sum(p.handled[0].count for p in self._profiles.values())

    @property
    def pipelines(self) -> list[int]:
        return list(self._profiles)

    def keys_of(self, segment: Segment) -> float:
        """The number of distinct keys a cache would be probed with."""
        return self._distinct[segment].entries()

    def estimates(self) -> Estimates | None:
        """Rates per epoch and costs as the last observations show them; None if there are none."""
        if not all(p.is_known for p in self._profiles.values()):
            return None
        operators = {leaf: p.operators(self._costs) for leaf, p in self._profiles.items()}
        outputs = {leaf: p.output for leaf, p in self._profiles.items()}
        passes = {leaf: p.passes for leaf, p in self._profiles.items()}
        found = Estimates(self._orders, operators, outputs, {}, passes=passes)
        caches = {s: self._cache(s, found) for s in self._distinct}
        apart = {s: self._kept_up(s) for s in self._upkeep}
        known = {
            s: c
            for s, c in caches.items()
            if not isnan(c.miss_prob) and (s not in apart or apart[s] is not None)
        }
        told = {s: a for s, a in apart.items() if a is not None}
        return replace(found, caches=known, apart=told)

    def _kept_up(self, segment: Segment) -> Apart | None:
        """The rate and cost of a cache's separate pipelines per epoch; None if it is not known."""
        deltas = spent = 0.0
        for pipeline in self._upkeep[segment]:
            profile = self._apart.get((segment.leaves, pipeline.leaf))
            if profile is None:
                return None
            rows = self._profiles[pipeline.leaf].rows.mean
            deltas += rows * profile.results.mean
            spent += rows * profile.spent(self._costs)
        return Apart(frozenset(p.leaf for p in self._upkeep[segment]), deltas, spent)

    def _cache(self, segment: Segment, e: Estimates) -> CacheEstimate:
        costs, missed = self._costs, self._missed.get(segment)
        if segment in self._used and missed is not None and missed.full:
            miss = missed.mean
        else:
            # a key looked up when its row vanishes has been looked up before
            miss = self._distinct[segment].miss_probability() / e.passes_of(segment.pipeline)
        asked = e.asked(segment)
        if not asked:  # then nothing can miss either
            miss = 0.0
        size = e.rate_after(segment.pipeline, segment.last + 1) / asked if asked else 0.0
        return CacheEstimate(miss, costs.lookup + size * costs.found, costs.update)
