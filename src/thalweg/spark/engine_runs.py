"""Runs of an engine: to the end of its sources, or in the background until it is stopped."""

from __future__ import annotations

from typing import Any

from thalweg.config import Config
from thalweg.errors import ConfigError
from thalweg.runtime.epoch.driver import EpochDriver
from thalweg.runtime.epoch.frontiers import Close
from thalweg.runtime.epoch.listeners import Listeners
from thalweg.runtime.session.core import EngineCore
from thalweg.runtime.session.session import Session
from thalweg.runtime.sources.log_writer import LogWriter
from thalweg.spark.ingest_groups import IngestGroups
from thalweg.spark.worker_errors import explained


class EngineRuns:
    """Starts and stops ingest and epochs together."""

    def __init__(
        self,
        core: EngineCore,
        session: Session,
        ingest: IngestGroups,
        log: LogWriter,
        listeners: Listeners,
        config: Config,
        path: str,
        *,
        is_temporary: bool,
    ) -> None:
        self._core = core
        self._changes = core.changes
        self._session = session
        self._ingest = ingest
        self._log = log
        self._listeners = listeners
        self._config = config
        self._path = path
        self._is_temporary = is_temporary
        self.is_closed = False

    def run(self, progress: Any, final: bool | None) -> None:
        to_the_end = self._is_temporary if final is None else final
        driver = self._started(available_now=True, progress=progress)
        try:
            driver.drain(self._ingest.are_finished)
            driver.close(Close.FINAL if to_the_end else Close.SETTLED)
            self._ingest.raise_failure()  # what others have brought is answered first
        except BaseException as error:
            self._log.fail()  # ingest may be waiting for room
            raise explained(error, self._path) from error.__cause__
        finally:
            self._changes.driver = None
            driver.end()
            self._ingest.stop()

    def start(self, progress: Any = None) -> None:
        driver = self._started(available_now=False, progress=progress)
        driver.run_in_background(self._ingest.are_ready)

    def stop(self) -> None:
        driver = self._changes.driver
        self._log.stop()
        self._ingest.stop()
        if driver is not None:
            driver.stop()
            self._changes.driver = None  # only now may changes be made without it
            self._ingest.stop()  # what the last epoch may have started
        self._log.resume()
        if driver is not None and driver.failure is not None:
            raise explained(driver.failure, self._path)
        if driver is not None:
            self._ingest.raise_failure()

    @property
    def failure(self) -> BaseException | None:
        """What stopped a background run, if something did."""
        driver = self._changes.driver
        if driver is not None and driver.failure is not None:
            return explained(driver.failure, self._path)
        return self._ingest.failure

    def _started(self, *, available_now: bool, progress: Any) -> EpochDriver:
        with self._changes.starting:  # a stream that comes meanwhile waits, and is then taken up
            self._refuse_to_start()
            for stream in list(self._core.streams.restored.values()):
                self._session.services.sources.create_stream(stream)
            self._session.resume()
            self._ingest.form()
            self._log.resume()
            driver = self._driver(progress)
            driver.save_definitions()
            try:
                self._ingest.start(available_now)
            except BaseException as error:
                self._ingest.stop()
                raise explained(error, self._path) from error.__cause__
            self._changes.driver = driver
        return driver

    def _refuse_to_start(self) -> None:
        if self._changes.is_running:
            raise ConfigError(
                "cannot start again while the engine runs", remedy="call stop() first"
            )
        if self.is_closed:
            raise ConfigError("the engine is closed", remedy="create a new one on the same path")

    def _driver(self, progress: Any) -> EpochDriver:
        driver = self._core.driver(
            self._log,
            self._carry_out,
            progress,
            listeners=self._listeners,
            poll_seconds=self._config.poll_seconds,
            tick_seconds=self._config.tick_seconds,
        )
        driver.after_epoch = self._after_epoch
        driver.look_at_sources = lambda: self._ingest.note_failures(self._core.failures)
        return driver

    def _after_epoch(self) -> None:
        if self._changes.is_running:
            self._ingest.start_new()

    def _carry_out(self, script: str, query: str | None) -> None:
        """A request of another process: a script, or a query under a name."""
        if query is None:
            self._session.sql(script)
        else:
            self._session.query(script, query)
