"""What is kept of streams and state, in few packs and no longer than somebody needs it."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import quote

from thalweg.exec.gather import GatherResult, RejectsResult
from thalweg.exec.jobs import Job
from thalweg.exec.upkeep import FoldResult
from thalweg.plan.catalog import Catalog
from thalweg.plan.physical import QueryPlan
from thalweg.runtime.sharing.window_stores import Stores
from thalweg.runtime.state.engine_state import RUNNING, EngineState, StreamState
from thalweg.runtime.state.output_keys import place_of
from thalweg.runtime.upkeep.background_merges import Merged
from thalweg.runtime.upkeep.matched_rows import forget_passed, merges_of_passed
from thalweg.runtime.upkeep.output_compaction import (
    Gathering,
    gathers_of_rejects,
    replace_gathered,
    replace_rejects,
)
from thalweg.runtime.upkeep.output_retention import forget_results
from thalweg.runtime.upkeep.retention import (
    fold_tasks,
    forget_emitted,
    low_water,
    merge_tasks,
    reached,
    retained_since,
)
from thalweg.store.packs import Key
from thalweg.store.storage import Storage


class Keeping:
    """The part of `Coordinator` that merges, folds and forgets."""

    storage: Storage
    catalog: Catalog
    state: EngineState
    plans: dict[str, QueryPlan]
    stores: Stores
    gathering: Gathering
    results_retain: int
    keys_of: Callable[[str], tuple[Key, ...]]
    _prefix: Callable[[str], str]
    _dropped: list[str]

    def _upkeep(self) -> list[Job]:
        jobs: list[Job] = []
        referred = {
            block.leaves[i].relation
            for plan in self.plans.values()
            for block in plan.blocks
            for subresult in block.subresults
            for i in subresult.members
        }
        for name, stream in self.state.streams.items():
            if name in self.catalog.streams:
                columns = tuple(f.name for f in self.catalog.streams[name].fields)
                lowest, cold = reached(name, self.plans, self.state)
                low = self._low(name, retained_since(name, self.catalog, self.state, lowest))
                released = self._released(name)
                barriers = {q.first_seq for q in self.state.queries.values()}
                jobs += merge_tasks(
                    name, stream, low, released, barriers, columns, self.keys_of(name),
                    self._prefix("log"), name in referred, cold,
                )  # fmt: skip
        for name, query in self.state.queries.items():
            if query.slots and name in self.plans:
                prefix = self._prefix(f"q/{quote(name, safe='')}")
                jobs += fold_tasks(name, self.plans[name], query, prefix)
        jobs += merges_of_passed(self.state, self.plans, self._prefix("q/passed"))
        jobs += gathers_of_rejects(self.state, self._prefix)
        return [*jobs, *self.gathering.tasks(), *self.stores.tasks()]

    def _low(self, stream: str, low: int) -> int:
        """Where what is kept of a stream begins: stores may ask for rows before the others do."""
        asked = self.stores.low(stream)
        return low if asked is None else min(low, asked)

    def _released(self, stream: str) -> int:
        """Below this instant every query has processed the stream's rows."""
        found = [
            self.state.queries[n].frontier
            for n, plan in self.plans.items()
            if self.state.queries[n].status == RUNNING
            and not self.state.queries[n].behind
            and stream in plan.streams
        ]
        return min(found, default=self.state.streams[stream].watermark)

    def _merged(self, result: Merged) -> None:
        if isinstance(result, GatherResult):
            self._dropped += replace_gathered(self.state, result)
            return
        if isinstance(result, RejectsResult):
            self._dropped += replace_rejects(self.state, result)
            return
        stream = self.state.streams.get(result.stream, StreamState())
        at = place_of([p.name for p in stream.packs], result.old)
        merged = list(result.merged)
        if at is None:
            self._dropped += [p.name for p in merged]  # some of them have gone meanwhile
            return
        stream.packs[at : at + len(result.old)] = merged
        self._dropped += result.old

    def _replace_state(self, result: FoldResult) -> None:
        packs = self.state.queries[result.query].slots.get(result.slot, [])
        at = next((i for i, p in enumerate(packs) if p.meta.name == result.old[0]), None)
        if at is None:
            return
        self._dropped += [f for p in packs[at : at + len(result.old)] for f in p.files]
        packs[at : at + len(result.old)] = [] if result.folded is None else [result.folded]

    def _forget_results(self, clock: int) -> None:
        """Results are kept for a day (`results_retain`)."""
        limit = clock - self.results_retain
        prefix = self._prefix("q/answers")
        self._dropped += forget_results(self.state, self.plans, self.storage, limit, prefix)

    def _retain(self) -> None:
        """Forget packs that no window and no RETAIN can reach any more."""
        for name, query in self.state.queries.items():
            if query.slots and name in self.plans:
                self._dropped += forget_emitted(self.plans[name], query)
        self._dropped += forget_passed(self.state, self.plans)
        for name, stream in self.state.streams.items():
            if name not in self.catalog.streams:
                continue
            # what a late query sees must not depend on what others share
            since = low_water(name, self.catalog, self.plans, self.state)
            stream.kept_since = max(stream.kept_since, since)
            low = self._low(name, since)
            gone = [p for p in stream.packs if p.max_ts < low]
            if gone:
                self._dropped += [p.name for p in gone]
                stream.packs = [p for p in stream.packs if p.max_ts >= low]
