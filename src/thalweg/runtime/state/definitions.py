"""Definitions that outlive the process: texts by the kind of object and its name."""

from __future__ import annotations

from thalweg.runtime.state.engine_state import EngineState


class Definitions:
    """Kept in the state under `kind:name`, the kind in small letters."""

    def __init__(self, state: EngineState) -> None:
        self._state = state

    def put(self, kind: str, name: str, text: str) -> None:
        self._state.definitions[_key(kind, name)] = text

    def get(self, kind: str, name: str) -> str | None:
        return self._state.definitions.get(_key(kind, name))

    def pop(self, kind: str, name: str) -> None:
        self._state.definitions.pop(_key(kind, name), None)

    def of(self, kind: str) -> dict[str, str]:
        """All of a kind, by name."""
        prefix = _key(kind, "")
        found = self._state.definitions.items()
        return {key.removeprefix(prefix): text for key, text in found if key.startswith(prefix)}


def _key(kind: str, name: str) -> str:
    return f"{kind.lower()}:{name}"
