"""Listeners: any number of callables that get each epoch's report, none of which can do harm."""

from __future__ import annotations

import logging
from collections.abc import Callable

from thalweg.runtime.epoch.report import EpochReport

Listener = Callable[[EpochReport], object]
_log = logging.getLogger("thalweg")


class Listeners:
    """Called one after another, in the engine's thread. One that raises is left out from then on.

    They may be added and removed while the engine runs, from any thread: the list is replaced,
    never changed.
    """

    def __init__(self) -> None:
        self._all: tuple[Listener, ...] = ()

    def add(self, listener: Listener) -> None:
        if listener not in self._all:
            self._all = (*self._all, listener)

    def remove(self, listener: Listener) -> None:
        self._all = tuple(one for one in self._all if one != listener)

    def tell(self, report: EpochReport) -> None:
        for listener in self._all:
            try:
                listener(report)
            except Exception:
                self.remove(listener)
                _log.warning(
                    "listener %r failed at epoch %d and is left out from now on",
                    listener,
                    report.epoch,
                    exc_info=True,
                )
