"""Reading from the newest commit of this process, while files are replaced."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import TracebackType

import pyarrow as pa

from thalweg.errors import FileMissing
from thalweg.runtime.results.committed_state import CommittedState
from thalweg.store.manifest import State
from thalweg.store.storage import Storage


class NewestCommit:
    """One attempt after another to read from the newest commit:

        for commit in NewestCommit(storage, committed).attempts():
            with commit:
                return ...

    Another one is made if a file was missing and there is a newer commit, or another file was
    missing than before; what has been read need not be read again."""

    def __init__(self, storage: Storage, committed: Callable[[], State]) -> None:
        self._storage = storage
        self._committed = committed
        self._read: dict[str, pa.Table] = {}
        self._missing = self._missing_before = ""
        self._json: State = {}

    def attempts(self) -> Iterator[NewestCommit]:
        while True:
            self._json, self._missing_before = self._committed(), self._missing
            yield self

    @property
    def state(self) -> CommittedState:
        """What is committed, as of this attempt."""
        return CommittedState(self._json)

    def read_table(self, name: str) -> pa.Table:
        try:
            if name not in self._read:
                self._read[name] = self._storage.read_table(name)
        except FileMissing:
            self._missing = name
            raise
        return self._read[name]

    def __enter__(self) -> NewestCommit:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        if not isinstance(error, FileMissing):
            return False
        is_newest = self._json is self._committed()
        return not is_newest and self._missing != self._missing_before
