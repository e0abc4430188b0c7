"""What the jobs of an epoch have made becomes state and output."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from thalweg.exec.aggregate.group_by import OPENS
from thalweg.exec.aggregate.group_state import StatePack
from thalweg.exec.jobs import Result, UpkeepFailed
from thalweg.exec.leaves.window_store import KeepResult
from thalweg.exec.task import StepResult
from thalweg.exec.upkeep.merge_packs import FoldResult
from thalweg.plan import state_slots
from thalweg.plan.state_slots import SlotRule
from thalweg.runtime.epoch.intake import Intake
from thalweg.runtime.lifecycle.plan_table import PlanTable
from thalweg.runtime.lifecycle.silent_fill import add_up, end_silence
from thalweg.runtime.lifecycle.transitions import Event, after
from thalweg.runtime.settings import Settings
from thalweg.runtime.sharing.window_stores import WindowStores
from thalweg.runtime.state.engine_state import EngineState
from thalweg.runtime.state.internal_names import members_output
from thalweg.runtime.state.outputs import Outputs
from thalweg.runtime.state.pending_files import PendingFiles
from thalweg.runtime.state.query_state import OperatorState, QueryState
from thalweg.runtime.upkeep.background_merges import Merged
from thalweg.runtime.upkeep.upkeep import Upkeep
from thalweg.store.packs import PackMeta
from thalweg.store.storage import Storage

log = logging.getLogger("thalweg")
Put = dict[str, list[PackMeta]]
"""What queries have put out in an epoch."""


class ApplyResults:
    """Applies results in the order of queries; upkeep of state comes after the steps that read
    it."""

    def __init__(
        self,
        storage: Storage,
        state: EngineState,
        plans: PlanTable,
        intake: Intake,
        stores: WindowStores,
        upkeep: Upkeep,
        outputs: Outputs,
        files: PendingFiles,
        settings: Settings,
    ) -> None:
        self._storage = storage
        self._state = state
        self._plans = plans
        self._intake = intake
        self._stores = stores
        self._upkeep = upkeep
        self._outputs = outputs
        self._files = files
        self._settings = settings

    def apply(self, epoch: int, results: Iterable[Result]) -> Put:
        """Results of steps and upkeep; what queries have put out."""
        found = list(results)
        by_query: dict[str, list[StepResult]] = {}
        for result in found:
            if isinstance(result, StepResult):
                by_query.setdefault(result.query, []).append(result)
            elif isinstance(result, Merged):
                self._upkeep.replace_merged(result)
            elif isinstance(result, UpkeepFailed):
                log.warning("upkeep failed and is tried again: %s", result.error)
        outputs = {name: self._apply_query(epoch, name, some) for name, some in by_query.items()}
        for result in found:
            if isinstance(result, FoldResult):
                self._upkeep.replace_folded(result)
            elif isinstance(result, KeepResult):
                self._stores.apply(result)
        return outputs

    def advance(self, moving: Mapping[str, int]) -> bool:
        """Set the frontiers of the queries that ran; whether a view has moved."""
        views_moved = False
        for name, until in moving.items():
            query = self._state.queries[name]
            if query.limits.evicted:
                query.limits = replace(query.limits, evicted={})
            if query.runs:
                query.progress.frontier = until
                _close_groups(query)
            if query.definition.feeds:
                stream = self._state.streams[query.definition.feeds]
                stream.heartbeat = query.progress.frontier
                views_moved = True
        return views_moved

    def end_silences(self, epoch: int) -> Put:
        """Put out what queries held back whose windows are filled by now."""
        found: Put = {}
        for name, query in self._state.queries.items():
            waits = query.output.replaces or query.output.pending
            if not waits or name not in self._plans or query.is_silent:
                continue
            so_far, prefix = self._outputs.of(name), self._files.prefix_of(name)
            packs, gone = end_silence(query, self._plans[name], so_far, self._storage, prefix)
            self._files.drop(gone)
            self._outputs.put(name, epoch, packs)
            found[name] = packs
        return found

    # -- one query ---------------------------------------------------------------------------

    def _apply_query(self, epoch: int, name: str, results: Sequence[StepResult]) -> list[PackMeta]:
        query = self._state.queries[name]
        failed = next((r.error for r in results if r.error), None)
        if failed is not None:
            query.lifecycle = after(query.lifecycle, Event.FAIL, failed)
            return []
        packs = [p for result in results for p in result.outputs]
        rejects = [p for result in results for p in result.rejects]
        if query.is_silent:
            self._files.drop(p.name for p in rejects)
        elif rejects:
            described = (*query.output.rejects, *(p.to_json() for p in rejects))
            query.output = replace(query.output, rejects=described)
        query.operators = OperatorState(
            self._slots(query, results), query.operators.shared_slots, _counts(query, results)
        )
        wakes = (r.wakes_at for r in results if r.wakes_at is not None)
        query.progress.wakes_at = min(wakes, default=None)
        self._learn(epoch, name, query, results)
        return self._put(epoch, name, query, packs)

    def _slots(
        self, query: QueryState, results: Sequence[StepResult]
    ) -> dict[str, tuple[StatePack, ...]]:
        """Packs of state: some slots are replaced by each step, the others are added to."""
        found: dict[str, tuple[StatePack, ...]] = {}
        for slot, packs in query.operators.slots.items():
            if state_slots.kind_of(slot).rule is SlotRule.REPLACED:
                self._files.drop(f for p in packs for f in p.files)
            else:
                found[slot] = packs
        for result in results:
            for slot, pack in result.state.items():
                found[slot] = (*found.get(slot, ()), pack)
        return found

    def _learn(
        self, epoch: int, name: str, query: QueryState, results: Sequence[StepResult]
    ) -> None:
        seen = [o for result in results for o in result.observations]
        learned = self._plans.learn(name, epoch, seen, self._settings.strict)
        if learned is not None and learned != query.definition.learned:
            query.definition = replace(query.definition, learned=learned)

    def _put(
        self, epoch: int, name: str, query: QueryState, packs: list[PackMeta]
    ) -> list[PackMeta]:
        """Hold output back, hand it to the stream of a view, or put it out."""
        if query.is_silent:
            prefix = self._files.prefix_of(name)
            self._files.drop(add_up(query, self._plans[name], packs, self._storage, prefix))
            return []
        if query.definition.feeds:
            self._intake.add(query.definition.feeds, packs)
            return []
        owner, cohort = name, query.sharing.cohort
        if cohort is not None:  # members of all cohorts about one thing share their output
            owner = members_output(query.definition.kind, cohort.about)
        self._outputs.put(owner, epoch, packs)
        return packs


def _counts(query: QueryState, results: Sequence[StepResult]) -> dict[str, int]:
    found = dict(query.operators.counts)
    untold = ("emitted", "rejected") if query.is_silent else ()
    for result in results:
        for key, count in result.counts.items():
            if key not in untold:
                found[key] = found.get(key, 0) + count
    return found


def _close_groups(query: QueryState) -> None:
    """Groups whose time is over will never change again."""
    counts = query.operators.counts
    closed = [
        k
        for k in counts
        if k.startswith(OPENS) and int(k.removeprefix(OPENS)) <= query.progress.frontier
    ]
    if closed:
        left = {k: n for k, n in counts.items() if k not in closed}
        left["closed"] = left.get("closed", 0) + sum(counts[k] for k in closed)
        query.operators = replace(query.operators, counts=left)
