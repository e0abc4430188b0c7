"""The epoch loop: new log entries in, one committed manifest out.

Everything an epoch decides (watermarks, frontiers, which packs exist) is decided here, on the
driver, from the log and the recorded clock; workers only compute. Nothing leaves an epoch before
its manifest is committed.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, Protocol
from urllib.parse import quote

from thalweg.adapt.loop import Adaptation
from thalweg.config import RESULTS_RETAIN
from thalweg.errors import ConfigError
from thalweg.exec import slots
from thalweg.exec.aggregate import OPENS
from thalweg.exec.expressions import UserFunction
from thalweg.exec.frame import BEFORE_TIME
from thalweg.exec.jobs import Job, Result, UpkeepFailed
from thalweg.exec.many.roll import Roll
from thalweg.exec.share import task_ranges
from thalweg.exec.shared import Common
from thalweg.exec.step import StepResult, StepTask
from thalweg.exec.tactics import Seen
from thalweg.exec.upkeep import FoldResult
from thalweg.exec.windowstore import KeepResult
from thalweg.plan.catalog import SYSSTREAM, Catalog
from thalweg.plan.expr import Expr
from thalweg.plan.physical import QueryPlan
from thalweg.runtime.epoch.catch_up import Pace
from thalweg.runtime.epoch.change_queue import Requests
from thalweg.runtime.epoch.frontiers import Advancing
from thalweg.runtime.epoch.intake import Intake
from thalweg.runtime.epoch.report import EpochReport as EpochReport
from thalweg.runtime.epoch.report import growth, state_bytes, tallies
from thalweg.runtime.epoch.system_stream import SysStream
from thalweg.runtime.lifecycle.history_start import first_instant
from thalweg.runtime.lifecycle.query_registry import Registering
from thalweg.runtime.lifecycle.silent_fill import speak, swallow
from thalweg.runtime.lifecycle.state_limits import enforce
from thalweg.runtime.sharing.window_stores import Stores
from thalweg.runtime.state.engine_state import (
    ASLEEP,
    FAILED,
    RUNNING,
    VIEWS,
    EngineState,
    QueryState,
)
from thalweg.runtime.state.output_keys import key_of, keys_of
from thalweg.runtime.upkeep.background_merges import Aside, Merged
from thalweg.runtime.upkeep.output_compaction import Gathering
from thalweg.runtime.upkeep.upkeep import Keeping
from thalweg.store.log import LogEntry
from thalweg.store.manifest import State, commit_manifest
from thalweg.store.packs import PackMeta
from thalweg.store.storage import Storage

log = logging.getLogger("thalweg")
SHARE_FROM = 16


class Executor(Protocol):
    """Runs lists of jobs, each list in one place, and returns their results in order."""

    def run(
        self, batches: Sequence[Sequence[Job]], functions: Mapping[str, UserFunction]
    ) -> list[list[Result]]: ...

    def aside(self, job: Job) -> Future[Result]:
        """Begin a job that nobody waits for."""
        ...


class Coordinator(Registering, Advancing, Keeping):
    """Owns the engine's hard state and advances it epoch by epoch."""

    def __init__(
        self,
        storage: Storage,
        catalog: Catalog,
        executor: Executor,
        state: EngineState,
        parts: int,
    ) -> None:
        self.storage = storage
        self.catalog = catalog
        self.executor = executor
        self.state = state
        self.parts = parts
        self.plans: dict[str, QueryPlan] = {}
        self.functions: dict[str, UserFunction] = {}
        self.awake_since = 0
        self.idle: set[str] = set()
        self.committed: State = {}
        if state.epoch:  # as it stands on disk: by the incarnation before this one
            self.committed = {**state.to_json(), "incarnation": state.incarnation - 1}
        self._under_way = False
        self._dropped: list[str] = []
        self.requests = Requests()
        self._aside = Aside(lambda job: executor.aside(job))
        self.before_commit: list[Callable[[], None]] = []
        self.rest: dict[str, dict[str, Expr]] = {}
        """What members of cohorts ask beyond comparisons."""
        self.share_from = SHARE_FROM
        """How many queries that only filter a stream are run each by itself."""
        self.pace = Pace()
        """How many rows of the past an epoch goes through beside the new ones."""
        self._past_rows = 0.0
        self.views_moved = False
        """Whether views have brought something in the last epoch that others may read now."""
        self._away = 0.0
        self._commit_seconds = 0.0
        self.adaptation = Adaptation()
        self.strict = False
        """Whether an error in adapting is raised (in tests), not only logged."""
        self._common: Common | None = None
        self._system: SysStream | None = None
        self._intake = Intake(
            storage, catalog, state, self._run, self.keys_of, self._prefix, self._dropped
        )
        self.results_retain = RESULTS_RETAIN
        self.gathering = Gathering(state, lambda: self.results_retain, self._prefix)
        self.limits: dict[str, int] = {}
        self.state_limit: int | None = None
        self.stores = Stores(
            state, self.plans, lambda name: name in self.limits or self.state_limit is not None,
            self._run, self._prefix, self.drop_later,
        )  # fmt: skip
        self.apart = self.stores.apart
        self.before_commit.append(self.stores.settle)

    # -- the epoch ---------------------------------------------------------------------------

    def epoch(
        self,
        entries: Sequence[LogEntry],
        *,
        clock: int,
        close: bool = False,
        live: bool = False,
    ) -> EpochReport | None:
        """Consume the entries, advance time, commit. None when there was nothing to do."""
        self._refuse_half_done()
        self._under_way = True
        clock = max(clock, self.state.clock)  # a clock that was set back does not turn time around
        try:
            report = self._epoch(entries, clock, close, live)
            while close and (further := self._epoch([], clock, close, live)) is not None:
                report = further  # queries whose silence has ended
        except BaseException as error:
            self.requests.failed(error)
            raise
        self._under_way = False
        return report

    def _refuse_half_done(self) -> None:
        if self._under_way:
            raise ConfigError(
                "an epoch of this engine failed half-way",
                remedy="create a new engine on the same path; what was committed is all there",
            )

    def _epoch(
        self, entries: Sequence[LogEntry], clock: int, close: bool, live: bool
    ) -> EpochReport | None:
        begun = time.perf_counter()
        self._away = 0.0
        self.views_moved = False
        before = tallies(self.state)
        acted = self.requests.carry_out()
        self._prepare()
        if self._system is None and SYSSTREAM in self.catalog.streams:
            self._system = SysStream(self.state, self.adaptation)  # counts from here on
        taken = self._intake.take(entries, clock)
        frontiers = self._advance(clock, close=close, live=live, busy=bool(entries))
        moving = {n: f for n, f in frontiers.items() if f > self.state.queries[n].frontier}
        number = self.state.epoch + 1
        spoken = self._end_silences(number)
        if not entries and not moving and not acted and not spoken:
            return None
        stepped = time.perf_counter()
        outputs = self._step(number, moving)
        for name, packs in [*spoken.items(), *self._end_silences(number).items()]:
            outputs[name] = [*outputs.get(name, ()), *packs]
        step_seconds = time.perf_counter() - stepped
        if not entries:
            self.pace.learn(self._past_rows, step_seconds)
        self._retain()
        if any(outputs.values()):
            self.state.clocks[str(number)] = clock
        self._forget_results(clock)
        report = EpochReport(
            number,
            taken.rows,
            {q: sum(p.rows for p in ps) for q, ps in outputs.items()},
            taken.late,
            taken.rejected,
            time.perf_counter() - begun,
            step_seconds,
            outputs=outputs,
            state_bytes=state_bytes(self.state),
            **growth(before, tallies(self.state)),
        )
        if taken.rows:  # an epoch over SysStream alone must not cause the next one
            self._publish(report, clock)
        self._commit(number, clock)
        report.commit_seconds = self._commit_seconds
        report.seconds = time.perf_counter() - begun
        report.own_seconds = report.seconds - self._away
        return report

    def _publish(self, report: EpochReport, clock: int) -> None:
        """Add the engine's own properties to SysStream, if somebody reads it."""
        if self._system is None:
            return
        stream = self.state.streams[SYSSTREAM]
        at = max(clock, stream.max_ts + 1, stream.watermark)
        table = self._system.table(report, clock)
        self._intake.publish(SYSSTREAM, table, at, self.state.next_seq - 1, clock)

    def _run(self, batches: Sequence[Sequence[Job]]) -> list[list[Result]]:
        begun = time.perf_counter()
        results = self.executor.run(batches, self.functions)
        self._away += time.perf_counter() - begun
        return results

    def post(self, action: Callable[[], Any]) -> Future[Any]:
        """Let the next epoch begin with a change of names or tables, from any thread."""
        return self.requests.ask(action)

    def _end_silences(self, number: int) -> dict[str, list[PackMeta]]:
        """Queries whose windows have been filled: what they have to say about it."""
        found: dict[str, list[PackMeta]] = {}
        for name, query in self.state.queries.items():
            waits = query.replaces or query.filling
            if not waits or name not in self.plans or query.frontier < query.silent_until:
                continue
            keys = keys_of(self.state.outputs, name)
            put_out = [p for key in keys for p in self.state.outputs[key]]
            prefix = self._prefix(f"q/{quote(name, safe='')}")
            packs, gone = speak(query, self.plans[name], put_out, self.storage, prefix)
            self._dropped += gone
            self._put_out(name, number, packs)
            found[name] = packs
        return found

    def _put_out(self, name: str, number: int, packs: Sequence[PackMeta]) -> None:
        if packs:
            key = key_of(name, number, number)
            if key not in self.state.outputs:
                self.gathering.put_out(name)
            described = [p.to_json() for p in packs]
            self.state.outputs[key] = [*self.state.outputs.get(key, ()), *described]

    # -- running the queries -----------------------------------------------------------------

    def _step(self, number: int, moving: Mapping[str, int]) -> dict[str, list[PackMeta]]:
        batches: list[list[Job]] = [[] for _ in range(self.parts)]
        single = 0
        for name, until in moving.items():
            if self.state.queries[name].mode in ASLEEP:
                continue  # it works when it is invoked
            tasks = self._tasks(name, until, number)
            for i, task in enumerate(tasks):
                place = (single if len(tasks) == 1 else i) % self.parts
                batches[place].append(task)
            single += len(tasks) == 1
        for result in self._aside.finished():
            self._merged(result)
        for i, job in enumerate(self._aside.take(self._upkeep())):
            batches[(i + single) % self.parts].append(job)
        results = self._run([b for b in batches if b])
        outputs = self._apply(number, [r for batch in results for r in batch])
        for name, until in moving.items():
            query = self.state.queries[name]
            query.evicted = {}
            if query.status == RUNNING:
                query.frontier = until
                _close_groups(query)
            if name.startswith(VIEWS):
                self.state.streams[name.removeprefix(VIEWS)].heartbeat = query.frontier
                self.views_moved = True
        limits = {n: limit for n, limit in self.limits.items() if n in self.plans}
        enforce(self.state, self.plans, limits, self.state_limit)
        return outputs

    def _tasks(self, name: str, until: int, number: int) -> list[StepTask]:
        plan, query = self.plans[name], self.state.queries[name]
        packs = tuple(self._visible(plan, i, query) for i in range(len(plan.leaves)))
        if query.start is None:
            query.start = self._start(plan, packs, query, until)
        if query.start is None and query.begun and until == query.silent_until:
            query.start = until - 1  # what came before is not kept, but it was there
        ranges = task_ranges(plan, self.parts)
        state = {slot: tuple(found) for slot, found in query.slots.items()}
        stores = self.stores.content(query)
        state |= {slot: tuple(store.packs) for slot, store in stores.items()}
        shared = tuple((slot, store.frontier) for slot, store in stores.items())
        return [
            StepTask(
                name, plan, query.frontier, until, query.start, packs, state, own, i,
                len(ranges), self._prefix(f"q/{quote(name, safe='')}"), number,
                _floors(plan, query, packs),
                self.adaptation.tactics(name, number, i, len(ranges)),
                self.common,
                self._roll(name),
                shared,
            )
            for i, own in enumerate(ranges)
        ]  # fmt: skip

    def _roll(self, name: str) -> Roll | None:
        query = self.state.queries[name]
        if not query.roll:
            return None
        packs = tuple(PackMeta.from_json(p) for p in query.roll)
        return Roll(packs, tuple(query.struck), tuple(self.rest.get(name, {}).items()))

    def _visible(self, plan: QueryPlan, i: int, query: QueryState) -> tuple[PackMeta, ...]:
        leaf = plan.leaves[i]
        if leaf.is_table:
            return tuple(self.state.tables.get(leaf.relation, ()))
        return tuple(self.state.seen_by(query, leaf.relation))

    def _start(
        self, plan: QueryPlan, packs: Sequence[Sequence[PackMeta]], query: QueryState, until: int
    ) -> int | None:
        found = []
        for i in plan.stream_leaves:
            since = query.floors.get(plan.leaves[i].relation, BEFORE_TIME)
            found.append(first_instant(self.storage, packs[i], since))
        first = min((f for f in found if f is not None), default=until)
        return first if first < until else None

    # -- results -----------------------------------------------------------------------------

    def _apply(self, number: int, results: Sequence[Result]) -> dict[str, list[PackMeta]]:
        outputs: dict[str, list[PackMeta]] = {}
        by_query: dict[str, list[StepResult]] = {}
        for result in results:
            if isinstance(result, StepResult):
                by_query.setdefault(result.query, []).append(result)
            elif isinstance(result, Merged):
                self._merged(result)
            elif isinstance(result, UpkeepFailed):
                log.warning("upkeep failed and is tried again: %s", result.error)
        for name, found in by_query.items():
            outputs[name] = self._apply_query(number, name, found)
        for result in results:
            if isinstance(result, FoldResult):
                self._replace_state(result)
            elif isinstance(result, KeepResult):
                self.stores.apply(result)
        return outputs

    def _apply_query(self, number: int, name: str, results: Sequence[StepResult]) -> list[PackMeta]:
        query = self.state.queries[name]
        failed = next((r.error for r in results if r.error), None)
        if failed is not None:
            query.status, query.error = FAILED, failed
            return []
        replaced = {s for r in results for s in r.state if slots.is_replaced(s)}
        replaced |= {s for s in query.slots if slots.is_replaced(s)}
        for slot in replaced:
            self._dropped += [f for p in query.slots.pop(slot, []) for f in p.files]
        silent = query.frontier < query.silent_until
        packs: list[PackMeta] = []
        for result in results:
            packs += result.outputs
            if silent:
                result.counts.pop("emitted", None)
                result.counts.pop("rejected", None)
                self._dropped += [p.name for p in result.rejects]
            else:
                query.rejects += [p.to_json() for p in result.rejects]
            for slot, pack in result.state.items():
                query.slots.setdefault(slot, []).append(pack)
            for key, count in result.counts.items():
                query.counts[key] = query.counts.get(key, 0) + count
        seen = [o for result in results for o in result.observations]
        self._learn(name, number, seen)
        if silent:
            prefix = self._prefix(f"q/{quote(name, safe='')}")
            self._dropped += swallow(query, self.plans[name], packs, self.storage, prefix)
            return []
        if name.startswith(VIEWS):
            self._intake.add(name.removeprefix(VIEWS), packs)
            return []
        # cohorts of one stream put their output in one place
        self._put_out(name.rsplit(":", 1)[0] if query.roll else name, number, packs)
        return packs

    def _learn(self, name: str, number: int, seen: Sequence[tuple[int, Seen]]) -> None:
        """The plan of the next epoch. Where learning fails, the query goes on without it."""
        try:
            self.plans[name] = self.adaptation.learn(name, self.plans[name], number, seen)
            self.state.queries[name].orders = self.adaptation.orders(name)
        except Exception:
            if self.strict:
                raise
            self.adaptation.forget(name)
            log.exception("query %s stops adapting; its rows are not affected", name)

    # -- committing --------------------------------------------------------------------------

    def _commit(self, number: int, clock: int) -> None:
        self.state.epoch = number
        self.state.clock = clock
        new = self.state.to_json(self.committed)
        begun = time.perf_counter()
        commit_manifest(self.storage, number, self.committed, new)
        self._commit_seconds = time.perf_counter() - begun
        self.committed = new
        self.state.stirred.clear()
        self.requests.committed()
        for name in self._dropped:
            self.storage.delete(name)
        self._dropped.clear()

    def _prepare(self) -> None:
        for prepare in self.before_commit:
            prepare()

    def save(self, clock: int) -> None:
        """Commit registrations (tables, definitions, deliveries) as an epoch of their own."""
        self._refuse_half_done()
        self._prepare()
        if self.state.to_json(self.committed) != self.committed:
            self._commit(self.state.epoch + 1, clock)

    def drop_later(self, name: str) -> None:
        """A file that the next commit makes superfluous."""
        self._dropped.append(name)

    def _prefix(self, folder: str) -> str:
        return f"{folder}/{self.state.incarnation}-{self.state.epoch + 1}-"


def _floors(
    plan: QueryPlan, query: QueryState, packs: Sequence[Sequence[PackMeta]]
) -> tuple[tuple[str, int, int], ...]:
    """Where rows lie below the floor of a stream: what it was before this step, and what it is."""
    return tuple(
        (stream, *query.evicted.get(stream, (floor, floor)))
        for stream, floor in query.floors.items()
        if stream in query.evicted
        or any(
            p.min_ts < floor
            for i in plan.stream_leaves
            if plan.leaves[i].relation == stream
            for p in packs[i]
        )
    )


def _close_groups(query: QueryState) -> None:
    """Groups whose time is over will never change again."""
    for key in [k for k in query.counts if k.startswith(OPENS)]:
        if int(key.removeprefix(OPENS)) <= query.frontier:
            query.counts["closed"] = query.counts.get("closed", 0) + query.counts.pop(key)
