"""The log as ingest sees it: append a batch once, hand it to the epoch loop in order."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from thalweg.errors import ConfigError
from thalweg.store.log import LogEntry, commit_entry, entries_from
from thalweg.store.packs import PackMeta
from thalweg.store.storage import Storage

MOST_PENDING = 4


class LogWriter:
    """Appends entries under one lock; a batch that is in the log already is not appended again."""

    def __init__(self, storage: Storage, next_seq: int, sources: Mapping[str, int]) -> None:
        self.storage = storage
        self._sources = dict(sources)
        self._changed = threading.Condition()
        self._pending: deque[LogEntry] = deque()
        self._stopped = False
        self._under_way = 0
        self.was_quiet = True
        self._own_seconds = 0.0
        self._ingest_seconds: dict[int, float] = {}
        self._taken_seconds = 0.0
        self._failed = False
        self.next_seq = next_seq
        for entry in entries_from(storage, next_seq):
            self._pending.append(entry)
            self._sources[entry.source[0]] = entry.source[1]
            self.next_seq = entry.seq + 1

    def groups_seen(self) -> dict[int, str]:
        """Ingest query ids of entries that no epoch has taken in yet."""
        return {e.group: e.source[0] for e in self._pending}

    def has(self, query_id: str, batch: int) -> bool:
        return self.last_batch(query_id) >= batch

    def last_batch(self, query_id: str) -> int:
        """The last batch of an ingest query that is in the log, -1 if there is none."""
        return self._sources.get(query_id, -1)

    def forget(self, query_id: str) -> None:
        """Nothing is read from a source any more: another of its name begins anew."""
        self._sources.pop(query_id, None)

    def append(
        self,
        group: int,
        source: tuple[str, int],
        packs: Mapping[str, list[PackMeta]],
        rejects: Mapping[str, list[PackMeta]],
        clock: int,
        begun: float | None = None,
        heartbeats: Mapping[str, int] | None = None,
    ) -> None:
        """Add a batch; `begun` is when reading it began (`time.perf_counter`)."""
        with self._changed:
            seq = self.next_seq
            entry = LogEntry(
                seq, group, source, _numbered(packs, seq), _numbered(rejects, seq), clock,
                dict(heartbeats or {}),
            )  # fmt: skip
            commit_entry(self.storage, entry)
            self.next_seq = seq + 1
            self._sources[source[0]] = source[1]
            self._pending.append(entry)
            if begun is not None:
                self._ingest_seconds[seq] = time.perf_counter() - begun
            self._changed.notify_all()

    @contextmanager
    def batch_under_way(self) -> Iterator[None]:
        """While a batch is being read its streams are not silent, however long it takes."""
        with self._changed:
            self._under_way += 1
        try:
            yield
        finally:
            with self._changed:
                self._under_way -= 1

    def wait_for_room(self) -> None:
        """Keep ingest from running far ahead of the epochs."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._pending) < MOST_PENDING or self._stopped)
            if self._failed:
                raise ConfigError(
                    "the epochs have failed, so ingest stops too",
                    remedy="stop the engine and start it again on its path",
                )

    def take(self, timeout: float) -> list[LogEntry]:
        """All pending entries, waiting for the first for at most `timeout` seconds.

        `was_quiet` then tells whether no batch was under way at that moment.
        """
        with self._changed:
            self._changed.wait_for(lambda: bool(self._pending) or self._stopped, timeout)
            found = list(self._pending)
            self.was_quiet = self._under_way == 0
            self._taken_seconds += sum(self._ingest_seconds.pop(e.seq, 0.0) for e in found)
            self._pending.clear()
            self._changed.notify_all()
            return found

    def note_own_seconds(self, seconds: float) -> None:
        """Time a batch spent in our driver code, outside Spark's job."""
        with self._changed:
            self._own_seconds += seconds

    def taken_own_seconds(self) -> float:
        with self._changed:
            found, self._own_seconds = self._own_seconds, 0.0
            return found

    def taken_ingest_seconds(self) -> float:
        """How long reading took, of the batches taken since the last time this was asked."""
        with self._changed:
            found, self._taken_seconds = self._taken_seconds, 0.0
            return found

    def stop(self) -> None:
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def fail(self) -> None:
        """The epochs have ended with an error: let ingest end as well instead of running on."""
        with self._changed:
            self._failed = True
            self._stopped = True
            self._changed.notify_all()

    def resume(self) -> None:
        with self._changed:
            self._stopped = False
            self._failed = False


def _numbered(packs: Mapping[str, list[PackMeta]], seq: int) -> dict[str, tuple[PackMeta, ...]]:
    return {s: tuple(replace(p, seq=seq) for p in ps) for s, ps in packs.items() if ps}
