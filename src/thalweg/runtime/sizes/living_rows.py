"""The rows that live in tables and windows at the present frontier, as INVOKE would count them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from hashlib import blake2b

import numpy as np
import pyarrow as pa
from cachetools import LRUCache

from thalweg.columns.sort_codes import numbered_rows
from thalweg.columns.vector import arrow_vector
from thalweg.estimate.keys.keyed_table import KeyedTable
from thalweg.exec.evaluate_once import EvaluateOnce
from thalweg.exec.expressions.evaluate import UserFunction
from thalweg.exec.leaves.versioned_table import SINCE, UNTIL
from thalweg.exec.relations.emit import SIGN
from thalweg.instants import AFTER_TIME, BEFORE_TIME
from thalweg.plan.bound_query import BoundQuery, QueryOptions
from thalweg.plan.catalog import Catalog
from thalweg.plan.logical import Emit, EmitKind, Node, Scan, Window
from thalweg.plan.planner import plan_query
from thalweg.plan.types import to_arrow
from thalweg.runtime.state.engine_state import EngineState
from thalweg.store import native
from thalweg.store.pack_cache import PackCache
from thalweg.store.packs import TIME, Pack, PackMeta
from thalweg.store.storage import Storage
from thalweg.windows.protocol import TimeWindow

NEVER = BEFORE_TIME
"""The frontier of a stream that has had no rows."""
MOST_ROWS = 8_000_000
"""Rows of sources whose hashed keys are remembered."""


class LivingRows:
    """Reads the content of tables and windows; of a source that has not changed since, the hashes
    of its keys are remembered."""

    def __init__(
        self,
        catalog: Catalog,
        state: EngineState,
        storage: Storage,
        functions: Mapping[str, UserFunction],
        fetch: Callable[[str], None] = lambda name: None,
    ) -> None:
        """`fetch` collects the rows of a table that has not been read yet."""
        self._catalog = catalog
        self._fetch = fetch
        self._state = state
        self._storage = storage
        self._functions = functions
        self._known: LRUCache[tuple[object, ...], KeyedTable] = LRUCache(
            MOST_ROWS, getsizeof=lambda t: max(len(t), 1)
        )

    def frontier(self, sources: Iterable[Node]) -> int:
        """How far all streams among some sources have come: rows before it are there for good."""
        streams = [s for s in map(scan_of, sources) if not s.is_table]
        known = (self._state.streams.get(s.relation) for s in streams)
        return min((NEVER if s is None else s.watermark for s in known), default=0)

    def version(self, source: Node) -> str:
        """Which rows a table or stream has: the same text for the same rows."""
        scan = scan_of(source)
        names = "\n".join(p.name for p in self._packs(scan)).encode()
        return f"{blake2b(names, digest_size=8).hexdigest()} {self._kept_since(scan)}"

    def count(self, source: Node) -> int:
        """How many rows of a table or stream are there."""
        scan = scan_of(source)
        if scan.is_table:
            return len(self.of(scan, NEVER))
        return self._rows_since(scan, self._kept_since(scan))

    def is_complete(self, source: Node, frontier: int) -> bool:
        """Whether all rows that live are at hand. Of a stream without RETAIN only those are kept
        that windows over time of running queries reach; windows over its order keep their own."""
        scan = scan_of(source)
        if scan.is_table or frontier == NEVER:
            return True
        stream = self._state.streams[scan.relation]
        kept = self._rows_since(scan, stream.kept_since)
        if kept == stream.rows or not isinstance(source, Window):
            return kept == stream.rows
        begins = source.window.complete_from(frontier - 1)
        if begins is not None:
            return begins >= stream.kept_since
        most = source.window.most_rows
        return most is not None and self._rows_since(scan, stream.kept_since, frontier) >= most

    def _rows_since(self, scan: Scan, since: int, until: int = AFTER_TIME) -> int:
        cache, found = PackCache(self._storage), 0
        for meta in self._packs(scan):
            whole = meta.min_ts >= since and meta.max_ts < until
            found += meta.rows if whole else _between(cache.open(meta.name), since, until)
        return found

    def of(self, source: Node, frontier: int) -> KeyedTable:
        """The rows of a table, of a stream so far, or of a window just before the frontier."""
        scan = scan_of(source)
        if scan.is_table:
            self._fetch(scan.relation)
        packs = tuple(self._packs(scan)) if scan.is_table or frontier != NEVER else ()
        since = 0 if scan_of(source).is_table else self._kept_since(scan_of(source))
        instant = 0 if scan_of(source).is_table else frontier
        key = (source, tuple(p.name for p in packs), since, instant)
        if key not in self._known:
            found = KeyedTable(self._read(source, packs, frontier))
            if len(found) > MOST_ROWS:
                return found
            self._known[key] = found
        return self._known[key]

    def _packs(self, scan: Scan) -> Iterable[PackMeta]:
        if scan.is_table:
            return self._state.tables.get(scan.relation, ())
        stream = self._state.streams.get(scan.relation)
        return () if stream is None else stream.packs

    def _kept_since(self, scan: Scan) -> int:
        stream = self._state.streams.get(scan.relation)
        return BEFORE_TIME if stream is None else stream.kept_since

    def _read(self, source: Node, packs: tuple[PackMeta, ...], frontier: int) -> pa.Table:
        scan = scan_of(source)
        names = _names(scan)
        if scan.is_table:
            return _together(scan, [_current(self._storage.read_table(p.name)) for p in packs])
        low, high = self._kept_since(scan), frontier
        if isinstance(source, Window):
            if not isinstance(source.window, TimeWindow):
                return self._ordered(source, packs, frontier)
            first, last = source.window.alive_at(frontier - 1)
            low, high = max(low, first), min(last, high)
        cache, found = PackCache(self._storage), []
        for meta in packs:
            if meta.max_ts >= low and meta.min_ts < high:
                pack = cache.open(meta.name)
                rows = native.rows_between(pack.ts, low, high)
                found.append(_some_of(pack.table, names).take(pa.array(rows)))
        return _together(scan, found)

    def _ordered(self, source: Window, packs: tuple[PackMeta, ...], frontier: int) -> pa.Table:
        """The content of a window over the order of a stream, by its changes up to the frontier."""
        root = Emit(source, EmitKind.RELATION)
        plan = plan_query(BoundQuery(root, QueryOptions(unbounded=True), ""), self._catalog)
        start = min((p.min_ts for p in packs), default=0)
        once = EvaluateOnce(PackCache(self._storage), self._functions, start)
        changes = once.answer(plan, [packs], frontier)
        scan = scan_of(source)
        if changes is None:
            return _together(scan, [])
        content, names = changes.drop_columns([TIME, SIGN]), _names(scan)
        if not names:
            return pa.table({"rows": pa.nulls(sum(changes.column(SIGN).to_pylist()))})
        vectors = [arrow_vector(content, n) for n in content.column_names]
        number, first = numbered_rows(vectors, content.num_rows)
        times = np.bincount(number, changes.column(SIGN).to_numpy()).astype(np.int64)
        rows = content.take(pa.array(np.repeat(first, np.maximum(times, 0))))
        return rows.rename_columns(names)


def scan_of(source: Node) -> Scan:
    found = source.input if isinstance(source, Window) else source
    assert isinstance(found, Scan)
    return found


def _names(scan: Scan) -> list[str]:
    """The columns that are read, as the relation calls them."""
    return [f.name.split(".", 1)[1] for f in scan.fields]


def _current(table: pa.Table) -> pa.Table:
    """The newest version of a table."""
    if UNTIL not in table.column_names:
        return table
    standing = np.flatnonzero(table.column(UNTIL).to_numpy() == AFTER_TIME)
    return table.take(pa.array(standing)).drop_columns([SINCE, UNTIL])


def _some_of(table: pa.Table, names: list[str]) -> pa.Table:
    """Some columns, or any one: a table without columns does not know how many rows it has."""
    return table.select(names or table.column_names[:1])


def _between(pack: Pack, since: int, until: int) -> int:
    return len(native.rows_between(pack.ts, since, until))


def _together(scan: Scan, tables: list[pa.Table]) -> pa.Table:
    names = _names(scan)
    if tables:
        return pa.concat_tables([_some_of(t, names) for t in tables]).combine_chunks()
    types = [to_arrow(f.type) for f in scan.fields]
    return pa.schema(list(zip(names, types, strict=True))).empty_table()
