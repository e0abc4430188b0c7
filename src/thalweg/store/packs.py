"""Packs: immutable columnar files of rows with their times and key indexes.

A pack holds the columns of its rows, `__ts` (µs), and for each key an *index*: the key's hash and
the time of every row, sorted by (hash, time), with the row each entry stands for. Rows themselves
lie in the order of the first index, so its entries are the rows. Buckets are the top bits of the
hash: a bucket, or a range of them, is one slice of an index.
"""

from __future__ import annotations

import json
import uuid
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from thalweg.store import native
from thalweg.store.hashing import Hashes, hash_columns
from thalweg.store.storage import COLD, Storage

TIME = "__ts"
BY_TIME = "__by_time"  # in packs worth it: their rows in the order of time
WAS = "__was"  # in merged packs: where a row was in the old ones, laid end to end
TIME_INDEXED = 1 << 18
K = TypeVar("K")
V = TypeVar("V")
Key = tuple[str, ...]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class PackMeta:
    """The driver's description of a pack; `seq` is the log entry (or epoch) that wrote it. `cuts`
    are times that part its rows into pieces of equally many, for packs of a stream with many."""

    name: str
    rows: int
    bytes: int
    min_ts: int
    max_ts: int
    seq: int = 0
    cuts: tuple[int, ...] = ()

    @property
    def is_cold(self) -> bool:
        """Whether it is written compactly, so that opening it takes a while."""
        return self.name.endswith(COLD)

    def to_json(self) -> list[Any]:
        found = [self.name, self.rows, self.bytes, self.min_ts, self.max_ts, self.seq]
        return [*found, list(self.cuts)] if self.cuts else found

    @staticmethod
    def from_json(values: Sequence[Any]) -> PackMeta:
        return PackMeta(*values[:6], *(tuple(cuts) for cuts in values[6:]))

    def rows_before(self, instant: int) -> float:
        """About how many rows have an earlier time: as if those of a piece were spread evenly."""
        if instant <= self.min_ts:
            return 0.0
        if instant > self.max_ts:
            return self.rows
        edges = (self.min_ts, *self.cuts, self.max_ts + 1)
        piece = bisect_left(edges, instant, 1) - 1
        low, high = edges[piece], edges[piece + 1]
        within = (instant - low) / (high - low) if high > low else 0.0
        return self.rows * (piece + within) / (len(edges) - 1)


@dataclass(frozen=True, slots=True)
class KeyIndex:
    """(hash, time) of every row in sorted order; `rows` None means the rows lie in that order."""

    hashes: Hashes
    ts: Ints
    rows: Ints | None

    def within(self, low: int, high: int) -> KeyIndex:
        """The slice of hashes in [low, high]."""
        if low == 0 and high == FULL_RANGE[1]:
            return self
        a = int(np.searchsorted(self.hashes, np.uint64(low), "left"))
        b = int(np.searchsorted(self.hashes, np.uint64(high), "right"))
        rows = np.arange(a, b) if self.rows is None else self.rows[a:b]
        return KeyIndex(self.hashes[a:b], self.ts[a:b], rows)


FULL_RANGE = (0, 2**64 - 1)


def hash_ranges(parts: int) -> list[tuple[int, int]]:
    """The hash space cut into `parts` runs of whole buckets (256 in all)."""
    parts = max(1, min(parts, 256))
    cuts = [round(i * 256 / parts) << 56 for i in range(parts + 1)]
    return [(a, b - 1) for a, b in pairwise(cuts)]


class Pack:
    """An open pack."""

    __slots__ = ("_in_time", "_indexes", "_keys", "_nulls", "asked", "name", "table", "ts")

    def __init__(self, name: str, table: pa.Table) -> None:
        self.name = name
        self.table = table
        self.ts: Ints = _plain(table, TIME)
        described = enumerate(_metadata(table).get("keys", []))
        # metadata of a table is inherited by selections of its columns: look which are there
        self._keys = {tuple(k): i for i, k in described if f"__h{i}" in table.column_names}
        self._indexes: dict[Key, KeyIndex] = {}
        self._nulls: dict[str, bool] = {}
        self._in_time: tuple[Ints, Ints] | None = None
        self.asked: Counter[str] = Counter()
        """How often rows were looked up by one value of a column without an index."""

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def column(self, name: str) -> pa.Array:
        column = self.table.column(name)
        return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()

    def has_nulls(self, name: str) -> bool:
        if name not in self._nulls:
            self._nulls[name] = bool(self.column(name).null_count)
        return self._nulls[name]

    def moved(self) -> dict[str, Ints]:
        """Of a merged pack: per old pack the new row of each old row, -1 where it was left out."""
        sizes: list[tuple[str, int]] = _metadata(self.table).get("was", [])
        if not sizes:
            return {}
        rows = np.full(sum(n for _, n in sizes), -1, np.int64)
        rows[_plain(self.table, WAS)] = np.arange(len(self))
        cuts = np.cumsum([n for _, n in sizes])[:-1]
        return dict(zip((name for name, _ in sizes), np.split(rows, cuts), strict=True))

    @property
    def has_time_index(self) -> bool:
        return BY_TIME in self.table.column_names

    def rows_between(self, low: int, high: int) -> Ints:
        """Rows with low ≤ time < high, ascending, without scanning the others."""
        a, b = self._span(low, high)
        return np.sort(self._by_time()[0][a:b]).astype(np.int64)

    def count_between(self, low: int, high: int) -> int:
        a, b = self._span(low, high)
        return b - a

    def _span(self, low: int, high: int) -> tuple[int, int]:
        a, b = np.searchsorted(self._by_time()[1], (low, high))
        return int(a), int(b)

    def _by_time(self) -> tuple[Ints, Ints]:
        """Its rows in the order of time, and the times."""
        if self._in_time is None:
            rows = _plain(self.table, BY_TIME)
            self._in_time = rows, self.ts[rows]
        return self._in_time

    @property
    def known_keys(self) -> Sequence[Key]:
        """Keys whose indexes lie in the pack, or have been built."""
        return [*self._keys, *(k for k in self._indexes if k not in self._keys)]

    def index(self, key: Key) -> KeyIndex:
        found = self._indexes.get(key)
        if found is None:
            found = self._stored(key) if key in self._keys else self._built(key)
            self._indexes[key] = found
        return found

    def _stored(self, key: Key) -> KeyIndex:
        i = self._keys[key]
        hashes = _plain(self.table, f"__h{i}").view(np.uint64)
        if i == 0:
            return KeyIndex(hashes, self.ts, None)
        return KeyIndex(hashes, _plain(self.table, f"__t{i}"), _plain(self.table, f"__r{i}"))

    def _built(self, key: Key) -> KeyIndex:
        hashes = hash_columns([self.column(c) for c in key], len(self))
        order = native.key_time_order(hashes, self.ts)
        return KeyIndex(hashes[order], self.ts[order], order)


def _plain(table: pa.Table, name: str) -> Any:
    column = table.column(name)
    if column.num_chunks == 0:
        return np.empty(0, np.int64)
    array = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    return array.to_numpy(zero_copy_only=False)


def _metadata(table: pa.Table) -> dict[str, Any]:
    raw = (table.schema.metadata or {}).get(b"thalweg")
    return json.loads(raw) if raw else {}


def arrange(
    table: pa.Table, ts: Ints, keys: Sequence[Key], was: Sequence[tuple[str, int]] = ()
) -> pa.Table:
    """The table as a pack: sorted by the first key (by time if there is none), indexes added.
    `was` are the packs it was merged from and their sizes."""
    hashes = hash_columns([table.column(c) for c in keys[0]], len(ts)) if keys else None
    order = native.time_order(ts) if hashes is None else native.key_time_order(hashes, ts)
    sorted_table = table.take(pa.array(order)).combine_chunks()
    ts = ts[order]
    columns: dict[str, Any] = {name: sorted_table.column(name) for name in table.column_names}
    columns[TIME] = pa.array(ts)
    if hashes is not None:
        columns["__h0"] = pa.array(hashes[order].view(np.int64))
        if len(ts) >= TIME_INDEXED:
            columns[BY_TIME] = pa.array(native.time_order(ts).astype(np.int32))
    for i, key in enumerate(keys[1:], 1):
        _add_index(columns, i, key, ts)
    out = pa.table(columns)
    described = json.dumps({"keys": [list(k) for k in keys]} | ({"was": list(was)} if was else {}))
    return out.replace_schema_metadata({b"thalweg": described.encode()})


def _add_index(columns: dict[str, Any], i: int, key: Key, ts: Ints) -> None:
    hashes = hash_columns([columns[c] for c in key], len(ts))
    order = native.key_time_order(hashes, ts)
    columns[f"__h{i}"] = pa.array(hashes[order].view(np.int64))
    columns[f"__t{i}"] = pa.array(ts[order])
    columns[f"__r{i}"] = pa.array(order)


def with_times(table: pa.Table) -> pa.Table:
    """A pack's rows with their event times as timestamps, for display."""
    stamps = table.column(TIME).cast(pa.timestamp("us")).cast(pa.timestamp("us", "UTC"))
    return table.set_column(table.schema.get_field_index(TIME), TIME, stamps)


def fresh_name(prefix: str, kind: str, ending: str = ".arrow") -> str:
    """A name that no other file has."""
    return f"{prefix}{kind}-{uuid.uuid4().hex[:16]}{ending}"


def write_pack(
    storage: Storage, name: str, table: pa.Table, seq: int = 0, *, cut: bool = False
) -> PackMeta:
    """Write an arranged table (anything with `__ts`) and describe it, with `cut` also how its rows
    are spread over time."""
    ts = _plain(table, TIME)
    size = storage.write_table(name, table)
    low, high = (int(ts.min()), int(ts.max())) if len(ts) else (0, -1)
    return PackMeta(name, table.num_rows, size, low, high, seq, _cuts(ts) if cut else ())


PIECE_ROWS, MOST_PIECES = 1 << 12, 64
"""Packs of streams are described in pieces of at least so many rows, and in at most so many."""


def _cuts(ts: Ints) -> tuple[int, ...]:
    pieces = min(len(ts) // PIECE_ROWS, MOST_PIECES)
    ranks = [len(ts) * i // pieces for i in range(1, pieces)]
    return tuple(np.partition(ts, ranks)[ranks].tolist()) if ranks else ()
