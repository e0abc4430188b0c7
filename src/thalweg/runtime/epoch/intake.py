"""Taking log entries in: which packs streams have, which rows are late, what was rejected."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from thalweg.exec.upkeep.merge_packs import CleanResult, CleanTask
from thalweg.plan.catalog import REJECTS, Catalog
from thalweg.runtime.executor import JobRunner
from thalweg.runtime.lifecycle.plan_table import PlanTable
from thalweg.runtime.state.engine_state import EngineState
from thalweg.runtime.state.pending_files import PendingFiles
from thalweg.runtime.state.stream_state import StreamState
from thalweg.store.log import LogEntry, entry_name
from thalweg.store.packs import PackMeta, arrange, write_pack
from thalweg.store.storage import Storage


@dataclass(slots=True)
class Taken:
    """Rows of some log entries, and how many of them were late or rejected."""

    rows: int = 0
    late: int = 0
    rejected: int = 0


@dataclass(slots=True)
class Intake:
    """The part of an epoch before time advances."""

    storage: Storage
    catalog: Catalog
    state: EngineState
    plans: PlanTable
    runner: JobRunner
    files: PendingFiles

    def take(self, entries: Sequence[LogEntry], clock: int) -> Taken:
        taken = Taken()
        dirty: list[CleanTask] = []
        for entry in entries:
            for name, packs in entry.packs.items():
                if self._is_dropped(name, entry.seq):
                    self.files.drop(p.name for p in packs)
                    continue
                taken.rows += sum(p.rows for p in packs)
                dirty += self._take_packs(name, packs, clock)
            for name, packs in entry.rejects.items():
                if self._is_dropped(name, entry.seq):
                    self.files.drop(p.name for p in packs)
                    continue
                taken.rejected += sum(p.rows for p in packs)
                self._take_rejects(name, packs, clock)
            for name, at in entry.heartbeats.items():
                if not self._is_dropped(name, entry.seq):
                    state = self._stream(name)
                    state.heartbeat = max(state.heartbeat, at)
            self.state.next_seq = entry.seq + 1
            self.state.sources[entry.source[0]] = entry.source[1]
            if str(entry.group) in self.state.groups:
                self.state.groups[str(entry.group)]["query_id"] = entry.source[0]
            self.files.drop([entry_name(entry.seq)])
        if self.state.dropped:
            seq, dropped = self.state.next_seq, self.state.dropped
            self.state.dropped = {n: until for n, until in dropped.items() if until > seq}
        taken.late = self._clean(dirty, clock)
        return taken

    def publish(self, stream: str, table: pa.Table, at: int, seq: int, clock: int) -> None:
        """Rows that the engine itself adds to a stream, all at one instant."""
        arranged = arrange(table, np.full(table.num_rows, at, np.int64), self.plans.keys_of(stream))
        name = f"{self.files.prefix('log')}own-{uuid.uuid4().hex[:12]}.arrow"
        meta = write_pack(self.storage, name, arranged, seq)
        self._add_pack(self.state.streams[stream], meta, clock)

    def add(self, stream: str, packs: Sequence[PackMeta]) -> None:
        """Packs that a view has brought."""
        state = self._stream(stream)
        for pack in packs:
            self._add_pack(state, replace(pack, seq=self.state.next_seq), self.state.clock)

    def _is_dropped(self, stream: str, seq: int) -> bool:
        """Whether rows were read for a stream that has been dropped since."""
        return seq < self.state.dropped.get(stream, 0)

    def _stream(self, name: str) -> StreamState:
        return self.state.streams.setdefault(name, StreamState())

    def _take_packs(self, name: str, packs: Sequence[PackMeta], clock: int) -> list[CleanTask]:
        state = self._stream(name)
        dirty = []
        for pack in packs:
            if pack.rows and pack.min_ts < state.watermark:
                columns = tuple(f.name for f in self.catalog.streams[name].fields)
                dirty.append(
                    CleanTask(
                        name, pack, state.watermark, columns, self.plans.keys_of(name),
                        self.files.prefix("late"),
                    )
                )  # fmt: skip
            elif pack.rows:
                self._add_pack(state, pack, clock)
        return dirty

    def _add_pack(self, state: StreamState, pack: PackMeta, clock: int) -> None:
        state.packs.append(pack)
        state.max_ts = max(state.max_ts, pack.max_ts)
        state.last_clock = max(state.last_clock, clock)
        state.rows += pack.rows

    def _take_rejects(self, name: str, packs: Sequence[PackMeta], clock: int) -> None:
        state = self._stream(name)
        state.rejects += [p.to_json() for p in packs]
        state.rejected += sum(p.rows for p in packs)
        self._stream_rejects(name, packs, clock)

    def _stream_rejects(self, name: str, packs: Sequence[PackMeta], clock: int) -> None:
        """Rejects are a stream as well, for queries that read it."""
        stream = f"{name}{REJECTS}"
        if stream not in self.state.streams or stream not in self.catalog.streams:
            return
        definition = self.catalog.streams[stream]
        reason = definition.fields[-1].name
        for pack in packs:
            table = self.storage.read_table(pack.name)
            table = table.append_column(reason, table.column("__reason"))
            table = table.select([f.name for f in definition.fields])
            at = max(clock, self.state.streams[stream].watermark)
            self.publish(stream, table, at, pack.seq, clock)

    def _clean(self, tasks: list[CleanTask], clock: int) -> int:
        if not tasks:
            return 0
        late = 0
        for (result,) in self.runner.run([[t] for t in tasks]):
            assert isinstance(result, CleanResult)
            state = self.state.streams[result.stream]
            if result.kept is not None:
                self._add_pack(state, result.kept, clock)
            state.rejects.append(result.late.to_json())
            self._stream_rejects(result.stream, [result.late], clock)
            state.late += result.late.rows
            late += result.late.rows
            self.files.drop([result.old])
        return late
