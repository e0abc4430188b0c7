"""The tasks of a step: per query and share of its keys, what it reads and where it runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from thalweg.exec.jobs import Job
from thalweg.exec.leaves.task_share import task_ranges
from thalweg.exec.shared_filters.member_roll import Roll
from thalweg.exec.task import StepTask
from thalweg.instants import BEFORE_TIME
from thalweg.plan.physical import QueryPlan
from thalweg.runtime.lifecycle.history_start import first_instant
from thalweg.runtime.lifecycle.plan_table import PlanTable
from thalweg.runtime.settings import Settings
from thalweg.runtime.sharing.window_stores import WindowStores
from thalweg.runtime.state.engine_state import EngineState
from thalweg.runtime.state.pending_files import PendingFiles
from thalweg.runtime.state.query_state import QueryState
from thalweg.store.packs import PackMeta
from thalweg.store.storage import Storage

Batches = list[list[Job]]


class StepTasks:
    """Makes the jobs of an epoch, list by list of those that run in one place."""

    def __init__(
        self,
        storage: Storage,
        state: EngineState,
        plans: PlanTable,
        stores: WindowStores,
        files: PendingFiles,
        settings: Settings,
    ) -> None:
        self._storage = storage
        self._state = state
        self._plans = plans
        self._stores = stores
        self._files = files
        self._settings = settings

    def tasks(self, epoch: int, moving: Mapping[str, int]) -> list[list[StepTask]]:
        """Per query that moves, and does not wait for an invocation, its tasks."""
        return [
            self._tasks_of(name, until, epoch)
            for name, until in moving.items()
            if not self._state.queries[name].works_on_demand
        ]

    def levels(self, tasks: Sequence[Sequence[StepTask]], beside: Iterable[Job]) -> list[Batches]:
        """The batches to run one after another: just one level, as no plan is split by key yet.
        Tasks of one query go to different places, single ones and other jobs in turn."""
        parts = self._settings.tasks
        batches: Batches = [[] for _ in range(parts)]
        single = 0
        for group in tasks:
            for i, task in enumerate(group):
                batches[(single if len(group) == 1 else i) % parts].append(task)
            single += len(group) == 1
        for i, job in enumerate(beside):
            batches[(i + single) % parts].append(job)
        return [[b for b in batches if b]]

    def _tasks_of(self, name: str, until: int, epoch: int) -> list[StepTask]:
        plan, query = self._plans[name], self._state.queries[name]
        packs = tuple(self._visible(plan, i, query) for i in range(len(plan.leaves)))
        self._begin(plan, packs, query, until)
        ranges = task_ranges(plan, self._settings.tasks)
        stores = self._stores.content(query)
        state = dict(query.operators.slots)
        state |= {slot: store.packs for slot, store in stores.items()}
        shared = tuple((slot, store.frontier) for slot, store in stores.items())
        return [
            StepTask(
                name, plan, query.progress.frontier, until, query.progress.start, packs, state,
                own, i, len(ranges), self._files.prefix_of(name), epoch,
                _floors(plan, query, packs),
                self._plans.adaptation.tactics(name, epoch, i, len(ranges)),
                self._plans.common,
                self._roll(name, query),
                shared,
            )
            for i, own in enumerate(ranges)
        ]  # fmt: skip

    def _roll(self, name: str, query: QueryState) -> Roll | None:
        if not query.sharing.roll:
            return None
        packs = tuple(PackMeta.from_json(p) for p in query.sharing.roll)
        residuals = self._plans.residuals.get(name, {})
        return Roll(packs, query.sharing.struck, tuple(residuals.items()))

    def _visible(self, plan: QueryPlan, i: int, query: QueryState) -> tuple[PackMeta, ...]:
        leaf = plan.leaves[i]
        if leaf.is_table:
            return tuple(self._state.tables.get(leaf.relation, ()))
        return tuple(self._state.seen_by(query, leaf.relation))

    def _begin(
        self, plan: QueryPlan, packs: Sequence[Sequence[PackMeta]], query: QueryState, until: int
    ) -> None:
        """Find the first instant of a query that has none yet."""
        progress = query.progress
        if progress.start is None:
            progress.start = self._first_instant(plan, packs, query, until)
        had_rows = query.history.had_rows and until == query.history.silent_until
        if progress.start is None and had_rows:
            progress.start = until - 1  # what came before is not kept, but it was there

    def _first_instant(
        self, plan: QueryPlan, packs: Sequence[Sequence[PackMeta]], query: QueryState, until: int
    ) -> int | None:
        found = []
        for i in plan.stream_leaves:
            since = query.limits.floors.get(plan.leaves[i].relation, BEFORE_TIME)
            found.append(first_instant(self._storage, packs[i], since))
        first = min((f for f in found if f is not None), default=until)
        return first if first < until else None


def _floors(
    plan: QueryPlan, query: QueryState, packs: Sequence[Sequence[PackMeta]]
) -> tuple[tuple[str, int, int], ...]:
    """Where rows lie below the floor of a stream: what it was before this step, and what it is."""
    evicted = query.limits.evicted
    return tuple(
        (stream, *evicted.get(stream, (floor, floor)))
        for stream, floor in query.limits.floors.items()
        if stream in evicted
        or any(
            p.min_ts < floor
            for i in plan.stream_leaves
            if plan.leaves[i].relation == stream
            for p in packs[i]
        )
    )
