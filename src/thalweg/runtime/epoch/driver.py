"""The driver's loop: take what ingest brought, run an epoch, tell listeners."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

from thalweg.config import POLL_SECONDS, TICK_SECONDS
from thalweg.runtime.epoch.change_queue import ChangeQueue
from thalweg.runtime.epoch.control_requests import ControlInbox
from thalweg.runtime.epoch.coordinator import Coordinator, EpochReport
from thalweg.runtime.epoch.delivery import Delivery
from thalweg.runtime.epoch.frontiers import Close, Frontiers
from thalweg.runtime.epoch.listeners import Listeners
from thalweg.runtime.epoch.scheduler import Scheduler
from thalweg.runtime.lifecycle.query_registry import QueryRegistry
from thalweg.runtime.sources.log_writer import LogWriter
from thalweg.runtime.state.clock import wall_clock
from thalweg.runtime.state.failures import Failures

Progress = Callable[[EpochReport], object]
T = TypeVar("T")
PATIENCE = 0.2


class LoopEnded(RuntimeError):
    """No epoch follows that could begin with a change."""


class EpochDriver:
    """Runs epochs in this thread (`drain`) or in the background."""

    def __init__(
        self,
        coordinator: Coordinator,
        changes: ChangeQueue,
        frontiers: Frontiers,
        scheduler: Scheduler,
        registry: QueryRegistry,
        delivery: Delivery,
        control: ControlInbox,
        log: LogWriter,
        progress: Progress | None,
        failures: Failures,
        *,
        listeners: Listeners | None = None,
        poll_seconds: float = POLL_SECONDS,
        tick_seconds: float = TICK_SECONDS,
    ) -> None:
        self._coordinator = coordinator
        self._changes = changes
        self._frontiers = frontiers
        self._scheduler = scheduler
        self._registry = registry
        self._delivery = delivery
        self._control = control
        self.log = log
        self.progress = progress
        self._failures = failures
        self.listeners = listeners or Listeners()
        self.poll_seconds = poll_seconds
        self.tick_seconds = tick_seconds
        self.failure: BaseException | None = None
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._last_tick = 0.0
        self._ready: Callable[[], bool] = lambda: True
        self._awake = False
        self._runs_in: threading.Thread | None = threading.current_thread()
        self._ended = threading.Event()
        self.after_epoch: Callable[[], None] = lambda: None
        """What is to be done once an epoch is committed and everybody has been told."""
        self.look_at_sources: Callable[[], None] = lambda: None
        """Notes which sources fail."""

    def _note_failures(self) -> None:
        """Commit what fails now, or works again: there need not be another epoch."""
        self.look_at_sources()
        if self._failures.is_news:
            self._coordinator.save(wall_clock())
            self._failures.is_news = False

    def save_definitions(self) -> None:
        self._delivery.deliver(insist=True)
        self._coordinator.save(wall_clock())

    def drain(self, finished: Callable[[], bool]) -> None:
        """Epochs until ingest has finished and the log is consumed."""
        while True:
            done = finished()
            self._control.look(now=done)
            entries = self.log.take(timeout=0.0 if done else 0.02)
            if entries or self._has_own_work:
                self._epoch(self._coordinator.epoch(entries, clock=wall_clock()))
            elif done:
                break

    @property
    def _has_own_work(self) -> bool:
        """Whether an epoch is due though no rows have arrived."""
        coordinator = self._coordinator
        due = self._changes.are_waiting or self._scheduler.is_short
        return due or self._registry.is_behind or coordinator.views_moved

    def between_epochs(self, action: Callable[[], T]) -> T:
        """Let the next epoch begin with a change, and wait for its commit. In the loop's own
        thread the change is made at once. If no epoch follows, nothing has been done."""
        if threading.current_thread() is self._runs_in:
            return action()
        future = self._changes.ask(action)
        while True:
            try:
                found: T = future.result(PATIENCE)
                return found
            except TimeoutError:
                if self._ended.is_set() and future.cancel():
                    raise LoopEnded from None

    def close(self, how: Close = Close.SETTLED) -> None:
        """Time moves just past the largest timestamp seen, or until windows are empty."""
        self._note_failures()
        self._epoch(self._coordinator.epoch([], clock=wall_clock(), close=how))
        self._delivery.deliver(insist=True)
        self._coordinator.save(wall_clock())
        self._control.look(now=True)
        self._delivery.raise_trouble()

    def run_in_background(self, ready: Callable[[], bool]) -> None:
        """Epochs and ticks until `stop()`; time passes by itself once every source is `ready`."""
        self._ready = ready
        self._thread = threading.Thread(target=self._background, name="thalweg", daemon=True)
        self._runs_in = self._thread
        self._thread.start()

    def _background(self) -> None:
        try:
            while not self._stopping.is_set():
                self._once()
            self._delivery.deliver(insist=True)
            self._coordinator.save(wall_clock())
            self._control.look(now=True)
        except BaseException as error:
            self.failure = error
            self.log.fail()
        finally:
            self._ended.set()

    def _once(self) -> None:
        self._control.look()
        self._note_failures()
        entries = self.log.take(0.0 if self._has_own_work else self.poll_seconds)
        now = time.monotonic()
        due = now - self._last_tick >= self.tick_seconds
        if not entries and not due and not self._has_own_work:
            return
        self._last_tick = now
        clock = wall_clock()
        live = self._listens(clock) and self.log.was_quiet
        report = self._coordinator.epoch(entries, clock=clock, live=live)
        if report is None:
            self._delivery.deliver()  # a sink that failed may be due again
        self._epoch(report)

    def _listens(self, clock: int) -> bool:
        """Silence means something only after the sources have been asked once."""
        if not self._awake and self._ready():
            self._awake = True
            self._frontiers.awake_since = clock
        return self._awake

    def end(self) -> None:
        """No epoch follows."""
        self._ended.set()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()

    # -- after the commit --------------------------------------------------------------------

    def _epoch(self, report: EpochReport | None) -> None:
        if report is None:
            return
        report.own_seconds += self.log.taken_own_seconds()
        report.ingest_seconds = self.log.taken_ingest_seconds()
        self._delivery.deliver()
        if self.progress is not None:
            self.progress(report)
        self.listeners.tell(report)
        self.after_epoch()
