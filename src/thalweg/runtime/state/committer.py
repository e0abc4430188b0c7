"""Committing the state: the difference to what is on disk, as one manifest."""

from __future__ import annotations

import time

from thalweg.runtime.state.engine_state import EngineState
from thalweg.runtime.state.pending_files import PendingFiles
from thalweg.store.manifest import State, commit_manifest
from thalweg.store.storage import Storage


class Committer:
    """`committed` is the state after the last commit, for readers in any thread: it is replaced,
    never changed. On disk it may stand in an earlier layout until the next one."""

    def __init__(self, storage: Storage, state: EngineState, files: PendingFiles) -> None:
        self._storage = storage
        self._state = state
        self._files = files
        self._on_disk, state.on_disk = state.on_disk, {}
        self.committed: State = {}
        self.seconds = 0.0
        """How long writing the last manifest took."""
        self._next: State = {}
        """The state as it was last written down, committed or not: queries know it again."""
        if state.epoch:  # by the incarnation before this one
            self.committed = {**state.to_json(), "incarnation": state.incarnation - 1}
            self._next = self.committed

    def has_changes(self) -> bool:
        """Whether the state differs from what was last committed."""
        self._next = self._state.to_json(self._next)
        return self._next != self.committed

    def commit(self, epoch: int, clock: int) -> None:
        """Make the state the current one, as that of an epoch."""
        self._state.epoch, self._state.clock = epoch, clock
        new = self._next = self._state.to_json(self._next)
        begun = time.perf_counter()
        commit_manifest(self._storage, epoch, self._on_disk, new)
        self.seconds = time.perf_counter() - begun
        self.committed = self._on_disk = new
        self._state.dormant_changed.clear()

    def delete_dropped(self) -> None:
        """Delete what the last commit has made superfluous."""
        self._files.delete_dropped(self._storage)
