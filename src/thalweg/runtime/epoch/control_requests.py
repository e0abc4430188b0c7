"""The engine's side of the control log: requests of other processes become changes between epochs.

How a request ended is committed together with what it changed, so that it is carried out once even
if the engine dies before it could answer.
"""

from __future__ import annotations

from functools import partial
from time import monotonic, time
from typing import Any

from thalweg.errors import ThalwegError
from thalweg.runtime.session.session import Session
from thalweg.store.control import Request, answer, forget_answers, waiting
from thalweg.store.storage import LocalStorage, Storage

LOOK_SECONDS = 0.2
LOOK_SECONDS_REMOTE = 2.0
ANSWERS_KEPT = 7 * 86_400.0


class Control:
    """Looks for requests every now and then."""

    def __init__(self, session: Session, storage: Storage) -> None:
        self.session = session
        self.storage = storage
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
        outcomes = self.session.coordinator.state.controlled
        for request in waiting(self.storage):
            if request.name not in outcomes and request.name not in self._posted:
                self._posted.add(request.name)
                self.session.coordinator.post(partial(self._carry_out, request))

    def _carry_out(self, request: Request) -> None:
        self._posted.discard(request.name)
        self.session.coordinator.state.controlled[request.name] = self._outcome(request)

    def _outcome(self, request: Request) -> dict[str, Any]:
        try:
            if request.query is not None:
                self.session.query(request.script, request.query)
            else:
                self.session.sql(request.script)
        except ThalwegError as error:
            place = {"text": error.text, "line": error.line, "column": error.column}
            kind = type(error).__name__
            return {"error": kind, "message": error.message, "remedy": error.remedy, **place}
        except Exception as error:
            return {"error": "ThalwegError", "message": f"{type(error).__name__}: {error}"}
        return {}

    def _answer_committed(self) -> None:
        committed = self.session.coordinator.committed.get("controlled", {})
        for name, outcome in committed.items():
            if self.session.coordinator.state.controlled.pop(name, None) is not None:
                answer(self.storage, name, outcome)
