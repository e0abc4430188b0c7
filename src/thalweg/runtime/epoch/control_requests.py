"""The engine's side of the control log: requests of other processes become changes between epochs.

How a request ended is committed together with what it changed, so that it is carried out once even
if the engine dies before it could answer.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from time import monotonic, time
from typing import Any

from thalweg.errors import ThalwegError
from thalweg.runtime.epoch.change_queue import ChangeQueue
from thalweg.runtime.state.committer import Committer
from thalweg.runtime.state.engine_state import EngineState
from thalweg.store.control import Request, answer, forget_answers, waiting
from thalweg.store.storage import LocalStorage, Storage

log = logging.getLogger("thalweg")
LOOK_SECONDS = 0.2
LOOK_SECONDS_REMOTE = 2.0
ANSWERS_KEPT = 7 * 86_400.0


class ControlInbox:
    """Looks for requests every now and then. `run` carries out a script, or registers a query under
    a name."""

    def __init__(
        self,
        storage: Storage,
        state: EngineState,
        committer: Committer,
        changes: ChangeQueue,
        run: Callable[[str, str | None], Any],
    ) -> None:
        self._storage = storage
        self._state = state
        self._committer = committer
        self._changes = changes
        self._run = run
        self._every = LOOK_SECONDS if isinstance(storage, LocalStorage) else LOOK_SECONDS_REMOTE
        self._due = 0.0
        self._posted: set[str] = set()
        forget_answers(storage, time() - ANSWERS_KEPT)

    def look(self, *, now: bool = False) -> None:
        """Let the next epoch begin with what others ask for, and answer what is committed."""
        if not now and monotonic() < self._due:
            return
        self._due = monotonic() + self._every
        self._answer_committed()
        for request in waiting(self._storage):
            if request.name not in self._state.controlled and request.name not in self._posted:
                self._posted.add(request.name)
                self._changes.ask(partial(self._carry_out, request))

    def _carry_out(self, request: Request) -> None:
        self._posted.discard(request.name)
        self._state.controlled[request.name] = self._outcome(request)

    def _outcome(self, request: Request) -> dict[str, Any]:
        try:
            self._run(request.script, request.query)
        except ThalwegError as error:
            log.warning("a request of another process is refused: %s", error.message)
            place = {"text": error.text, "line": error.line, "column": error.column}
            kind = type(error).__name__
            return {"error": kind, "message": error.message, "remedy": error.remedy, **place}
        except Exception as error:
            return {"error": "ThalwegError", "message": f"{type(error).__name__}: {error}"}
        return {}

    def _answer_committed(self) -> None:
        committed = self._committer.committed.get("controlled", {})
        for name, outcome in committed.items():
            if self._state.controlled.pop(name, None) is not None:
                answer(self._storage, name, outcome)
