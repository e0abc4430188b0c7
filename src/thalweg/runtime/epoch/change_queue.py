"""Changes that wait for the next epoch boundary, from any thread.

Each change has a future. It is resolved after the commit that contains the change, so that what
was answered stays; a change that is refused leaves no trace, and its future gets the error.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any


class ChangeQueue:
    """Asked from anywhere, answered between epochs."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._done: list[tuple[Future[Any], Any]] = []

    def ask(self, action: Callable[[], Any]) -> Future[Any]:
        future: Future[Any] = Future()
        self._waiting.append((future, action))
        return future

    @property
    def are_waiting(self) -> bool:
        return bool(self._waiting)

    def carry_out(self) -> bool:
        """Make the changes that wait; whether there were any."""
        acted = False
        while self._waiting:
            future, action = self._waiting.popleft()
            if not future.set_running_or_notify_cancel():
                continue
            acted = True
            try:
                self._done.append((future, action()))
            except Exception as error:
                future.set_exception(error)
        return acted

    def committed(self) -> None:
        """What was carried out is for good."""
        done, self._done = self._done, []
        for future, result in done:
            future.set_result(result)

    def failed(self, error: BaseException) -> None:
        """There will be no commit."""
        done, self._done = self._done, []
        for future, _ in done:
            future.set_exception(error)
