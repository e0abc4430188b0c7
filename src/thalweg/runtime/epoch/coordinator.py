"""The order of an epoch: new log entries in, one committed manifest out.

Everything an epoch decides (watermarks, frontiers, which packs exist) is decided on the driver,
from the log and the recorded clock; workers only compute. Nothing leaves an epoch before its
manifest is committed.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Protocol

from thalweg.errors import ConfigError
from thalweg.runtime.epoch.apply_results import ApplyResults, Put
from thalweg.runtime.epoch.change_queue import ChangeQueue
from thalweg.runtime.epoch.frontiers import Close, Frontiers
from thalweg.runtime.epoch.intake import Intake, Taken
from thalweg.runtime.epoch.report import EpochReport as EpochReport
from thalweg.runtime.epoch.report import Growth, growth, state_bytes, tallies
from thalweg.runtime.epoch.scheduler import Scheduler
from thalweg.runtime.epoch.step_tasks import StepTasks
from thalweg.runtime.epoch.system_stream import SystemStream
from thalweg.runtime.executor import JobRunner
from thalweg.runtime.lifecycle.plan_table import PlanTable
from thalweg.runtime.lifecycle.state_limits import enforce
from thalweg.runtime.settings import Settings
from thalweg.runtime.state.committer import Committer
from thalweg.runtime.state.engine_state import EngineState
from thalweg.runtime.upkeep.upkeep import Upkeep
from thalweg.store.log import LogEntry


class Settler(Protocol):
    """Brings what is shared in order between two epochs."""

    def settle(self) -> None: ...


class Coordinator:
    """Advances the engine epoch by epoch; the parts do the work. `settlers` are asked in order
    before each step and each commit."""

    def __init__(
        self,
        state: EngineState,
        plans: PlanTable,
        settings: Settings,
        runner: JobRunner,
        changes: ChangeQueue,
        settlers: Sequence[Settler],
        intake: Intake,
        frontiers: Frontiers,
        scheduler: Scheduler,
        tasks: StepTasks,
        upkeep: Upkeep,
        results: ApplyResults,
        committer: Committer,
        system: SystemStream,
    ) -> None:
        self._state = state
        self._plans = plans
        self._settings = settings
        self._runner = runner
        self._changes = changes
        self._settlers = settlers
        self._intake = intake
        self._frontiers = frontiers
        self._scheduler = scheduler
        self._tasks = tasks
        self._upkeep = upkeep
        self._results = results
        self._committer = committer
        self._system = system
        self._under_way = False
        self.views_moved = False
        """Whether views have brought something in the last epoch that others may read now."""

    def epoch(
        self,
        entries: Sequence[LogEntry],
        *,
        clock: int,
        close: Close | None = None,
        live: bool = False,
    ) -> EpochReport | None:
        """Consume the entries, advance time, commit. None when there was nothing to do."""
        self._refuse_half_done()
        self._under_way = True
        clock = max(clock, self._state.clock)  # a clock that was set back does not turn time around
        try:
            report = self._epoch(entries, clock, close, live)
            while (
                close is not None and (further := self._epoch([], clock, close, live)) is not None
            ):
                report = further  # queries whose windows have been filled
        except BaseException as error:
            self._changes.failed(error)
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
        self, entries: Sequence[LogEntry], clock: int, close: Close | None, live: bool
    ) -> EpochReport | None:
        begun = time.perf_counter()
        self._runner.seconds = 0.0
        self.views_moved = False
        before = tallies(self._state)
        acted = self._changes.carry_out()
        self._settle()
        self._system.begin()
        taken = self._intake.take(entries, clock)
        moving = self._frontiers.advance(clock, close=close, live=live, busy=bool(entries))
        number = self._state.epoch + 1
        told = self._results.end_silences(number)
        if not entries and not moving and not acted and not told:
            return None
        stepped = time.perf_counter()
        outputs = self._step(number, moving)
        for name, packs in [*told.items(), *self._results.end_silences(number).items()]:
            outputs[name] = [*outputs.get(name, ()), *packs]
        step_seconds = time.perf_counter() - stepped
        if not entries:
            self._scheduler.learn(step_seconds)
        self._forget(number, outputs, clock)
        grown = growth(before, tallies(self._state))
        report = self._report(number, taken, outputs, grown, begun, step_seconds)
        if taken.rows:  # an epoch over SysStream alone must not cause the next one
            self._system.publish(report, clock)
        self._commit(number, clock)
        report.commit_seconds = self._committer.seconds
        report.seconds = time.perf_counter() - begun
        report.own_seconds = report.seconds - self._runner.seconds
        return report

    def _settle(self) -> None:
        for settler in self._settlers:
            settler.settle()

    def _step(self, number: int, moving: Mapping[str, int]) -> Put:
        """Run the queries that move, and upkeep beside them."""
        tasks = self._tasks.tasks(number, moving)
        outputs: Put = {}
        for batches in self._tasks.levels(tasks, self._upkeep.jobs()):
            results = self._runner.run(batches)
            outputs |= self._results.apply(number, [r for batch in results for r in batch])
        self.views_moved = self._results.advance(moving)
        limits = {n: limit for n, limit in self._plans.limits.items() if n in self._plans}
        enforce(self._state, self._plans, limits, self._settings.state_limit)
        return outputs

    def _forget(self, number: int, outputs: Put, clock: int) -> None:
        self._upkeep.forget_rows()
        if any(outputs.values()):
            self._state.clocks[str(number)] = clock
        self._upkeep.forget_results(clock)

    def _report(
        self,
        number: int,
        taken: Taken,
        outputs: Put,
        grown: Growth,
        begun: float,
        step_seconds: float,
    ) -> EpochReport:
        return EpochReport(
            number,
            taken.rows,
            {q: sum(p.rows for p in ps) for q, ps in outputs.items()},
            taken.late,
            taken.rejected,
            time.perf_counter() - begun,
            step_seconds,
            outputs=outputs,
            state_bytes=state_bytes(self._state),
            **grown,
        )

    # -- committing --------------------------------------------------------------------------

    def _commit(self, number: int, clock: int) -> None:
        self._committer.commit(number, clock)
        self._changes.committed()
        self._committer.delete_dropped()

    def save(self, clock: int) -> None:
        """Commit registrations (tables, definitions, deliveries) as an epoch of their own."""
        self._refuse_half_done()
        self._settle()
        if self._committer.has_changes():
            self._commit(self._state.epoch + 1, clock)
