"""Streams that Python feeds: generators, Arrow readers, and tables replayed at a chosen speed.

Items have positions. The position of what is in the log is remembered there, so that after a
restart feeding goes on behind it: each item is taken in once.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa

from thalweg.errors import SourceError
from thalweg.instants import Ints, instant_of
from thalweg.plan.catalog import StreamDef
from thalweg.runtime.error_causes import told
from thalweg.runtime.sources.given_rows import as_records
from thalweg.runtime.sources.log_writer import LogWriter
from thalweg.runtime.sources.pack_rows import IngestPlan, event_times, ingest_table
from thalweg.runtime.state.clock import wall_clock
from thalweg.store.packs import Key
from thalweg.store.storage import Storage

CHUNK_ROWS = 50_000
PACE_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """What a source yields to say that no row before this time (or µs since 1970) will come."""

    at: datetime | int


Feed = Callable[[int], Iterator[tuple[int, Any]]]
"""Given the position reached before, yields (position, item): positions rise."""


def from_items(items: Iterable[Any] | Callable[[], Iterable[Any]]) -> Feed:
    """Items by their number. In one process they are taken from one iterator, however often
    feeding stops and starts; after a restart a callable is called again and what was taken in
    before is skipped, so it must give the same items again."""
    return _Items(items).after


class _Items:
    def __init__(self, items: Iterable[Any] | Callable[[], Iterable[Any]]) -> None:
        self._items = items
        self._numbered: Iterator[tuple[int, Any]] | None = None
        self._handed: tuple[int, Any] | None = None  # the last one, in case nobody took it in

    def after(self, position: int) -> Iterator[tuple[int, Any]]:
        if self._numbered is None:
            found = self._items() if callable(self._items) else self._items
            self._numbered = iter(enumerate(found, 1))
        if self._handed is not None and self._handed[0] > position:
            yield self._handed
        try:
            for item in self._numbered:
                self._handed = item
                if item[0] > position:
                    yield item
        except GeneratorExit:
            raise  # feeding stops; it goes on with the same iterator
        except BaseException:
            self._start_over()
            raise
        self._start_over()

    def _start_over(self) -> None:
        """What has ended, or failed, is asked for anew next time, if it can be."""
        if callable(self._items):
            self._numbered = self._handed = None


def from_table(definition: StreamDef, table: pa.Table, speed: float | None) -> Feed:
    """The rows of a table in the order of their event time, positions being rows; with a speed,
    so many times as fast as they happened."""
    ts, _ = event_times(definition, table, 0)
    order = np.argsort(ts, kind="stable")
    ordered, ts = table.take(pa.array(order)), ts[order]

    def feed(after: int) -> Iterator[tuple[int, Any]]:
        if speed is not None:
            yield from _paced(ordered, ts, after, speed)
            return
        for begin in range(after, len(ts), CHUNK_ROWS):
            chunk = ordered.slice(begin, CHUNK_ROWS)
            yield begin + chunk.num_rows, chunk

    return feed


def _paced(table: pa.Table, ts: Ints, after: int, speed: float) -> Iterator[tuple[int, Any]]:
    begun = time.monotonic()
    first = int(ts[after]) if after < len(ts) else 0
    while after < len(ts):
        now = first + int((time.monotonic() - begun) * speed * 1_000_000)
        until = int(np.searchsorted(ts, now, "right"))
        if until > after:
            yield until, table.slice(after, until - after)
            after = until
        if after < len(ts):
            wait = (int(ts[after]) - now) / speed / 1_000_000
            time.sleep(min(max(wait, 0.001), PACE_SECONDS))


@dataclass(frozen=True, slots=True)
class PushInput:
    definition: StreamDef
    feed: Feed


class Pusher:
    """Feeds one stream in a thread of its own."""

    def __init__(
        self,
        given: PushInput,
        log: LogWriter,
        storage: Storage,
        keys_of: Callable[[str], tuple[Key, ...]],
    ) -> None:
        self.given = given
        self.log = log
        self.storage = storage
        self.keys_of = keys_of
        self.failure: SourceError | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(
            target=self._run, name=f"thalweg-{given.definition.name}", daemon=True
        )

    @property
    def source(self) -> str:
        return f"push:{self.given.definition.name}"

    def start(self) -> None:
        self._thread.start()

    @property
    def is_active(self) -> bool:
        return self._thread.is_alive()

    def give_up(self) -> None:
        """Take nothing in any more, without waiting for the source."""
        self._stopping.set()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(timeout=5)

    def _run(self) -> None:
        name = self.given.definition.name
        try:
            for position, item in self.given.feed(max(self.log.last_batch(self.source), 0)):
                if self._stopping.is_set():
                    return
                self.log.wait_for_room()
                if self._stopping.is_set():
                    return
                self._take_in(position, item)
        except Exception as error:
            self.failure = SourceError(
                f"the source of stream {name} failed: {told(error)}",
                remedy="mend it; the log holds everything given so far and a new start goes on "
                "from there",
            )

    def _take_in(self, position: int, item: Any) -> None:
        stream = self.given.definition
        clock = wall_clock()
        if isinstance(item, Heartbeat):
            beats = {stream.name: instant_of(item.at)}
            self.log.append(0, (self.source, position), {}, {}, clock, heartbeats=beats)
            return
        records = as_records(item, stream.fields)
        keys = self.keys_of(stream.name)
        plan = IngestPlan(stream, keys, clock, f"log/p-{stream.name}-{position}-", 0)
        found = ingest_table(plan, records.table, self.storage, records.malformed)
        packs, rejects = {stream.name: found.packs}, {stream.name: found.rejects}
        self.log.append(0, (self.source, position), packs, rejects, clock)
