"""Tables and their versions: which rows are there between which instants.

A version holds from an instant of event time on, by default the first that no query has answered
yet. It is written at once and becomes part of the state with the next commit.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from thalweg.errors import ConfigError
from thalweg.exec.leaves.versioned_table import SINCE, first_version, next_version
from thalweg.instants import AFTER_TIME, BEFORE_TIME, format_instant
from thalweg.runtime.state.clock import wall_clock
from thalweg.runtime.state.engine_state import EngineState
from thalweg.runtime.state.pending_files import PendingFiles
from thalweg.store.packs import PackMeta, arrange, write_pack
from thalweg.store.storage import Storage


@dataclass(frozen=True, slots=True)
class TableVersions:
    """The content of tables in the state."""

    storage: Storage
    state: EngineState
    files: PendingFiles

    def put(self, name: str, rows: pa.Table, at: int | None = None) -> None:
        """The content of a table from an instant on; the same content again changes nothing."""
        state = self.state
        known = state.tables.get(name)
        if known is None:
            self._write(name, rows)
            state.versions[name] = [[BEFORE_TIME, wall_clock()]]
            return
        frontiers = [q.progress.frontier for q in state.queries.values()]
        first = max([*frontiers, state.versions.get(name, [[BEFORE_TIME]])[-1][0]])
        since = first if at is None else at
        if since < first:
            raise ConfigError(
                f"table {name} cannot change at an instant that is past: queries have answered it, "
                "or a later version is known",
                remedy=f"give it from {format_instant(first)} on, or say no instant",
            )
        old = self.storage.read_table(known[0].name).drop_columns(["__ts"])
        old = old if SINCE in old.column_names else first_version(old)
        found = next_version(old, rows, since, min(frontiers, default=BEFORE_TIME))
        if found is None:
            return
        if since == BEFORE_TIME and not self.changes(name):
            self._write(name, rows)  # nobody has seen the old one
        else:
            self._write(name, found)
            state.versions.setdefault(name, []).append([since, wall_clock()])
        self.files.drop([known[0].name])

    def changes(self, name: str) -> bool:
        return len(self.state.versions.get(name, ())) > 1

    def drop(self, name: str) -> None:
        """Forget a table."""
        self.files.drop(pack.name for pack in self.state.tables.pop(name, ()))
        self.state.versions.pop(name, None)

    def _write(self, name: str, table: pa.Table) -> None:
        arranged = arrange(table, np.zeros(table.num_rows, np.int64), [])
        # a name of its own: workers remember packs by name, and a path may be deleted and reused
        pack = f"tables/{name}-{uuid.uuid4().hex[:16]}.arrow"
        meta = write_pack(self.storage, pack, arranged)
        # packs are chosen by their times: a table is to be chosen always
        self.state.tables[name] = [
            PackMeta(meta.name, meta.rows, meta.bytes, BEFORE_TIME, AFTER_TIME)
        ]
