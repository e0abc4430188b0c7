"""Changes of what is registered: at once, or, while a driver runs, as its next epoch begins."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

from thalweg.runtime.epoch.coordinator import Coordinator
from thalweg.runtime.epoch.driver import EpochDriver, LoopEnded
from thalweg.runtime.state.engine_state import EngineState

T = TypeVar("T")
PATIENCE = 0.01


class Changes:
    """Makes changes between two epochs, from any thread. `clock` tells the time of commits that are
    made without a driver; `starting` is held while a driver is being started."""

    def __init__(
        self, coordinator: Coordinator, state: EngineState, clock: Callable[[], int]
    ) -> None:
        self._coordinator = coordinator
        self._state = state
        self._clock = clock
        self.driver: EpochDriver | None = None
        self.starting = threading.RLock()

    @property
    def is_running(self) -> bool:
        return self.driver is not None

    def between_epochs(self, action: Callable[[], T]) -> T:
        """Make a change now, or at the beginning of the next epoch: then this returns when it is
        committed."""
        with self.starting:
            driver = self.driver
            if driver is None:
                return action()
        try:
            return driver.between_epochs(action)
        except LoopEnded:
            with self.starting:  # one after the other
                return action()

    def committed(self, action: Callable[[], T]) -> T:
        """The same, and committed when this returns."""
        result = self.between_epochs(action)
        if not self.is_running:
            self._coordinator.save(self._clock())
        return result

    def commit(self) -> None:
        """Commit what has been changed."""
        self.committed(lambda: None)

    def wait(self) -> bool:
        """Wait a little for the driver's epochs; whether there may be more of them."""
        time.sleep(PATIENCE)
        return self.is_running

    def run_epoch(self) -> bool:
        """Run an epoch without new rows, where there is no driver; whether it did anything."""
        if self._coordinator.epoch([], clock=self._state.clock) is not None:
            return True
        self._coordinator.save(self._state.clock)
        return False
