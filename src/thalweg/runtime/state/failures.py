"""What fails around the engine while it goes on: sinks of queries, sources of streams."""

from __future__ import annotations

from collections.abc import Container

from thalweg.runtime.state.engine_state import EngineState

QUERY, STREAM = "query", "stream"


class Failures:
    """The last error of what fails now, in one line, by kind and name. It is part of the state, so
    that other processes see it; `is_news` says that it is to be committed."""

    def __init__(self, state: EngineState) -> None:
        self._state = state
        self.is_news = False

    def put(self, kind: str, name: str, error: str | None) -> None:
        """The error; None: it works."""
        if self._state.failure(kind, name) == error:
            return
        self.is_news = True
        if error is None:
            self._state.failures.pop(f"{kind}:{name}", None)
        else:
            self._state.failures[f"{kind}:{name}"] = error

    def keep_only(self, kind: str, names: Container[str]) -> None:
        """Forget what is no longer there."""
        for key in list(self._state.failures):
            found, name = key.split(":", 1)
            if found == kind and name not in names:
                self.put(kind, name, None)
