"""Maintenance of streams, state and output: in few packs, and no longer than needed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from thalweg.exec.jobs import Job
from thalweg.exec.upkeep.gather_output import GatherResult, RejectsResult
from thalweg.exec.upkeep.merge_packs import FoldResult
from thalweg.plan.catalog import Catalog
from thalweg.runtime.executor import JobRunner
from thalweg.runtime.lifecycle.plan_table import PlanTable
from thalweg.runtime.settings import Settings
from thalweg.runtime.sharing.window_stores import WindowStores
from thalweg.runtime.state.engine_state import EngineState
from thalweg.runtime.state.output_keys import place_of
from thalweg.runtime.state.outputs import Outputs
from thalweg.runtime.state.pending_files import PendingFiles
from thalweg.runtime.state.stream_state import StreamState
from thalweg.runtime.upkeep.background_merges import BackgroundMerges, Merged
from thalweg.runtime.upkeep.compaction import fold_tasks, merge_tasks
from thalweg.runtime.upkeep.matched_rows import forget_matched, merges_of_matched
from thalweg.runtime.upkeep.output_compaction import (
    OutputCompaction,
    merges_of_rejects,
    replace_compacted,
    replace_rejects,
)
from thalweg.runtime.upkeep.output_retention import forget_results
from thalweg.runtime.upkeep.retention import forget_passed, retained_since
from thalweg.runtime.upkeep.stream_demand import StreamDemand
from thalweg.store.storage import Storage


class Upkeep:
    """Merges and folds before a step, drops rows after it."""

    def __init__(
        self,
        storage: Storage,
        catalog: Catalog,
        state: EngineState,
        plans: PlanTable,
        stores: WindowStores,
        outputs: Outputs,
        files: PendingFiles,
        settings: Settings,
        runner: JobRunner,
    ) -> None:
        self._storage = storage
        self._catalog = catalog
        self._state = state
        self._plans = plans
        self._stores = stores
        self._files = files
        self._settings = settings
        self._compaction = OutputCompaction(state, outputs, settings, files)
        self.background = BackgroundMerges(runner.aside)

    # -- before the step ---------------------------------------------------------------------

    def jobs(self) -> list[Job]:
        """The merges and folds of this epoch; large merges are begun beside it."""
        for result in self.background.finished():
            self.replace_merged(result)
        return self.background.take(self._jobs())

    def _jobs(self) -> list[Job]:
        state, plans, files = self._state, self._plans, self._files
        jobs: list[Job] = []
        traced = {
            block.leaves[i].relation
            for plan in plans.values()
            for block in plan.blocks
            for subresult in block.subresults
            for i in subresult.members
        }
        barriers = {q.history.first_seq for q in state.queries.values()}
        demand = StreamDemand(plans, state)
        for name, stream in state.streams.items():
            if name in self._catalog.streams:
                wanted = demand.of(name)
                columns = tuple(f.name for f in self._catalog.streams[name].fields)
                low = self._low(name, self._retained_since(name, demand))
                jobs += merge_tasks(
                    name, stream, low, wanted.released, barriers, columns, plans.keys_of(name),
                    files.prefix("log"), name in traced, wanted.without_backfill,
                )  # fmt: skip
        for name, query in state.queries.items():
            if query.operators.slots and name in plans:
                jobs += fold_tasks(name, plans[name], query, files.prefix_of(name))
        jobs += merges_of_matched(state, plans, files.prefix("q/passed"))
        jobs += merges_of_rejects(state, files)
        return [*jobs, *self._compaction.tasks(), *self._stores.tasks()]

    def _retained_since(self, stream: str, demand: StreamDemand) -> int:
        return retained_since(stream, self._catalog, self._state, demand.of(stream).lowest)

    def _low(self, stream: str, low: int) -> int:
        """The first instant of a stream's kept rows: stores may need earlier rows than queries
        do."""
        asked = self._stores.low(stream)
        return low if asked is None else min(low, asked)

    def keeps_rows(self, streams: Sequence[str], demand: StreamDemand) -> bool:
        """Whether rows of some stream are kept, other than for stores, which only order matters
        to."""
        return any(self._keeps_rows(s, demand) for s in streams)

    def _keeps_rows(self, stream: str, demand: StreamDemand) -> bool:
        packs = self._state.streams[stream].packs
        if self._stores.low(stream) is None:
            return bool(packs)
        low = self._retained_since(stream, demand)
        return any(p.max_ts >= low for p in packs)

    # -- results of upkeep -------------------------------------------------------------------

    def replace_merged(self, result: Merged) -> None:
        """Replace several packs by one, unless some of them have been dropped meanwhile."""
        if isinstance(result, GatherResult):
            self._files.drop(replace_compacted(self._state, result))
            return
        if isinstance(result, RejectsResult):
            self._files.drop(replace_rejects(self._state, result))
            return
        stream = self._state.streams.get(result.stream, StreamState())
        at = place_of([p.name for p in stream.packs], result.old)
        merged = list(result.merged)
        if at is None:
            self._files.drop(p.name for p in merged)
            return
        stream.packs[at : at + len(result.old)] = merged
        self._files.drop(result.old)

    def replace_folded(self, result: FoldResult) -> None:
        """Replace several packs of state by one."""
        query = self._state.queries[result.query]
        packs = query.operators.slots.get(result.slot, ())
        at = next((i for i, p in enumerate(packs) if p.meta.name == result.old[0]), None)
        if at is None:
            return
        end = at + len(result.old)
        self._files.drop(f for p in packs[at:end] for f in p.files)
        folded = () if result.folded is None else (result.folded,)
        slots = {**query.operators.slots, result.slot: (*packs[:at], *folded, *packs[end:])}
        query.operators = replace(query.operators, slots=slots)

    # -- after the step ----------------------------------------------------------------------

    def forget_rows(self) -> None:
        """Drop packs that no window and no RETAIN can reach any more."""
        state, plans = self._state, self._plans
        for name, query in state.queries.items():
            if query.operators.slots and name in plans:
                self._files.drop(forget_passed(plans[name], query))
        self._files.drop(forget_matched(state, plans))
        demand = StreamDemand(plans, state)
        for name, stream in state.streams.items():
            if name in self._catalog.streams:
                # what a late query reads must not depend on what others share
                since = self._retained_since(name, demand)
                stream.kept_since = max(stream.kept_since, since)
                self._forget_below(stream, self._low(name, since))

    def _forget_below(self, stream: StreamState, low: int) -> None:
        gone = [p for p in stream.packs if p.max_ts < low]
        if gone:
            self._files.drop(p.name for p in gone)
            stream.packs = [p for p in stream.packs if p.max_ts >= low]

    def forget_results(self, clock: int) -> None:
        """Drop output after a day (`results_retain`)."""
        limit = clock - self._settings.results_retain
        prefix = self._files.prefix("q/answers")
        self._files.drop(forget_results(self._state, self._plans, self._storage, limit, prefix))
