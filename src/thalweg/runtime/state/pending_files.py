"""Files between two commits: how new ones are called, and which the next one makes superfluous."""

from __future__ import annotations

from collections.abc import Iterable

from thalweg.runtime.state.engine_state import EngineState
from thalweg.store.file_names import file_name_of
from thalweg.store.storage import Storage


class PendingFiles:
    """Names carry the incarnation and the epoch that will refer to them. A file is deleted only
    after the commit that no longer names it."""

    def __init__(self, state: EngineState) -> None:
        self._state = state
        self._dropped: list[str] = []

    def prefix(self, folder: str) -> str:
        """How names of new files in a folder begin."""
        return f"{folder}/{self._state.incarnation}-{self._state.epoch + 1}-"

    def prefix_of(self, query: str) -> str:
        """The same for files of one query."""
        return self.prefix(f"q/{file_name_of(query)}")

    def drop(self, names: Iterable[str]) -> None:
        """The next commit makes these superfluous."""
        self._dropped += names

    def delete_dropped(self, storage: Storage) -> None:
        for name in self._dropped:
            storage.delete(name)
        self._dropped.clear()
