"""The content of a path, read without changing it: for people, programs and tests.

No lock is taken and nothing is created, so it works beside a running engine. Files are listed
before the state is read; a reading that an epoch has overtaken meanwhile is repeated. Beside a
running engine "unreferenced" therefore includes what it is writing for its next commit.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np

from thalweg.errors import FileMissing, PathError
from thalweg.exec.aggregate.group_state import StatePack
from thalweg.instants import AFTER_TIME, BEFORE_TIME
from thalweg.masking import masked
from thalweg.plan import state_slots
from thalweg.runtime.results.read_stable import NotThere, read_stable
from thalweg.runtime.state.engine_state import EngineState
from thalweg.runtime.state.failures import QUERY, STREAM
from thalweg.runtime.state.open_path import (
    PACK_FOLDERS,
    committed_state,
    leftovers,
    owner,
    refuse_foreign,
)
from thalweg.runtime.state.output_keys import epochs_of, keys_of
from thalweg.runtime.state.query_state import QueryState
from thalweg.runtime.state.stream_state import StreamState
from thalweg.store import manifest
from thalweg.store.log import LogEntry, entries_from
from thalweg.store.packs import PackMeta
from thalweg.store.storage import DRAFTS, Storage, where

CHECKPOINTS = "checkpoints"
ATTEMPTS = 5
Sizes = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Kept:
    """Packs with their rows and bytes."""

    packs: int = 0
    rows: int = 0
    bytes: int = 0

    @staticmethod
    def of(packs: Iterable[PackMeta]) -> Kept:
        found = list(packs)
        return Kept(len(found), sum(p.rows for p in found), sum(p.bytes for p in found))


@dataclass(frozen=True, slots=True)
class Files:
    """Files with their bytes."""

    files: int = 0
    bytes: int = 0

    @staticmethod
    def of(names: Iterable[str], sizes: Sizes) -> Files:
        found = list(names)
        return Files(len(found), sum(sizes.get(n, 0) for n in found))


@dataclass(frozen=True, slots=True)
class StreamView:
    """`first` and `last` are the event times that the packs kept cover; `error` is what its source
    fails with."""

    name: str
    kept: Kept
    first: int | None
    last: int | None
    watermark: int | None
    rows: int
    late: int
    rejected: int
    rejects: Kept
    error: str | None


@dataclass(frozen=True, slots=True)
class SlotView:
    """One piece of a query's state; bytes count its side files too."""

    name: str
    holds: str
    kept: Kept


@dataclass(frozen=True, slots=True)
class QueryView:
    """`error` is why it has failed, or what its sinks fail with."""

    name: str
    text: str
    status: str
    error: str | None
    frontier: int | None
    emitted: int
    rejected: int
    state: tuple[SlotView, ...]
    result_epochs: tuple[int, int] | None
    results: Kept
    rejects: Kept


@dataclass(frozen=True, slots=True)
class TableView:
    name: str
    kept: Kept


@dataclass(frozen=True, slots=True)
class GroupView:
    """An ingest group: its streams, its source, and the last batch ingested."""

    number: int
    streams: tuple[tuple[str, str], ...]
    query_id: str | None
    last_batch: int | None


@dataclass(frozen=True, slots=True)
class Totals:
    """The bytes of a path by use. `unreferenced` is what nothing refers to, `missing` what is
    referred to but not there."""

    streams: Files
    state: Files
    results: Files
    rejects: Files
    tables: Files
    waiting: Files
    manifests: Files
    checkpoints: Files
    unreferenced: Files
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PathView:
    """A path as it stands after its last committed epoch (`clock` is when that was).

    `waiting` counts log entries that no epoch has processed; `owner` is the process that seems to
    have the path open.
    """

    path: str
    format: int
    epoch: int
    clock: int | None
    incarnation: int
    owner: int | None
    streams: tuple[StreamView, ...]
    queries: tuple[QueryView, ...]
    tables: tuple[TableView, ...]
    groups: tuple[GroupView, ...]
    waiting: Kept
    totals: Totals

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types; instants as ISO text."""
        found: dict[str, Any] = _plain(self)
        return found


def inspect(storage: Storage) -> PathView:
    """The inspection of a path, from its last committed epoch."""
    found_format = refuse_foreign(storage)
    with contextlib.suppress(PathError, NotThere):
        return read_stable(lambda: _undisturbed(storage, found_format), attempts=ATTEMPTS - 1)
    return _read(storage, found_format)


def instant(micros: int | None) -> str | None:
    """An instant as ISO text in UTC, whatever the year.

    >>> instant(1_500_000), instant(0), instant(None)
    ('1970-01-01T00:00:01.5Z', '1970-01-01T00:00:00Z', None)
    """
    if micros is None:
        return None
    return str(np.datetime64(micros, "us")).rstrip("0").rstrip(".") + "Z"


# -- reading -----------------------------------------------------------------------------------


def _undisturbed(storage: Storage, found_format: int) -> PathView:
    """A reading that no epoch has overtaken."""
    found = _read(storage, found_format)
    if found.totals.missing and manifest.load(storage)[0] != found.epoch:
        raise NotThere(found.totals.missing[0])
    return found


def _read(storage: Storage, found_format: int) -> PathView:
    sizes = _sizes(storage)
    state = committed_state(storage)
    waiting = list(entries_from(storage, state.next_seq))
    arrivals = [p for e in waiting for ps in e.packs.values() for p in ps]
    return PathView(
        path=where(storage),
        format=found_format,
        epoch=state.epoch,
        clock=state.clock or None,
        incarnation=state.incarnation,
        owner=owner(storage),
        streams=tuple(_stream(n, s, state) for n, s in state.streams.items()),
        queries=tuple(_query(n, q, state) for n, q in state.queries.items())
        + tuple(_query(n, state.dormant_as_awake(n), state) for n in state.dormant),
        tables=tuple(TableView(n, Kept.of(ps)) for n, ps in state.tables.items()),
        groups=tuple(_group(int(n), g, state) for n, g in state.groups.items()),
        waiting=Kept.of(arrivals),
        totals=_totals(storage, state, waiting, sizes),
    )


def _sizes(storage: Storage) -> dict[str, int]:
    found: dict[str, int] = {}
    for folder in (*PACK_FOLDERS, DRAFTS, manifest.FOLDER, CHECKPOINTS):
        for name in storage.listing(folder):
            with contextlib.suppress(FileMissing):  # deleted since it was listed
                found[name] = storage.size(name)
    return found


def _stream(name: str, stream: StreamState, state: EngineState) -> StreamView:
    return StreamView(
        name,
        Kept.of(stream.packs),
        min((p.min_ts for p in stream.packs), default=None),
        max((p.max_ts for p in stream.packs), default=None),
        _known(stream.watermark),
        stream.rows,
        stream.late,
        stream.rejected,
        Kept.of(PackMeta.from_json(p) for p in stream.rejects),
        state.failure(STREAM, name),
    )


def _query(name: str, query: QueryState, state: EngineState) -> QueryView:
    results = keys_of(state.outputs, name) if not query.definition.mode else []
    return QueryView(
        name,
        masked(query.definition.text),
        query.lifecycle.status,
        query.lifecycle.error.splitlines()[0]
        if query.lifecycle.error
        else state.failure(QUERY, name),
        _known(query.progress.frontier),
        query.operators.counts.get("emitted", 0),
        query.operators.counts.get("rejected", 0),
        tuple(_slot(slot, packs) for slot, packs in query.operators.slots.items() if packs)
        + tuple(
            _stub(slot, state.window_stores[key].packs)
            for slot, key in query.operators.shared_slots.items()
        ),
        (epochs_of(results[0])[0], epochs_of(results[-1])[1]) if results else None,
        Kept.of(PackMeta.from_json(p) for key in results for p in state.outputs[key]),
        Kept.of(PackMeta.from_json(p) for p in query.output.rejects),
    )


def _slot(name: str, packs: Sequence[StatePack]) -> SlotView:
    return SlotView(name, state_slots.kind_of(name).words, Kept.of(p.meta for p in packs))


def _stub(name: str, packs: Sequence[StatePack]) -> SlotView:
    return SlotView(name, "content of a row window, shared", Kept.of(p.meta for p in packs))


def _group(number: int, group: Mapping[str, Any], state: EngineState) -> GroupView:
    streams = tuple((s["stream"], s["source"]) for s in group.get("streams", ()))
    query_id = group.get("query_id")
    return GroupView(number, streams, query_id, state.sources.get(query_id or ""))


def _totals(storage: Storage, state: EngineState, waiting: list[LogEntry], sizes: Sizes) -> Totals:
    streams, queries = state.streams.values(), state.queries.values()
    rejects = [p[0] for s in streams for p in s.rejects]
    rejects += [p[0] for q in queries for p in q.output.rejects]
    held = [
        f for q in queries for slot in q.operators.slots.values() for p in slot for f in p.files
    ]
    held += [f for store in state.window_stores.values() for p in store.packs for f in p.files]
    arrived = {f for entry in waiting for f in entry.files()}
    ours = [n for n in sizes if not n.startswith((f"{manifest.FOLDER}/", f"{CHECKPOINTS}/"))]
    wanted = state.files() | arrived
    return Totals(
        streams=Files.of((p.name for s in streams for p in s.packs), sizes),
        state=Files.of(held, sizes),
        results=Files.of((p[0] for ps in state.outputs.values() for p in ps), sizes),
        rejects=Files.of(rejects, sizes),
        tables=Files.of((p.name for ps in state.tables.values() for p in ps), sizes),
        waiting=Files.of(arrived, sizes),
        manifests=_under(manifest.FOLDER, sizes),
        checkpoints=_under(CHECKPOINTS, sizes),
        unreferenced=Files.of(leftovers(ours, state, waiting), sizes),
        missing=tuple(sorted(n for n in wanted if n not in sizes and not storage.exists(n))),
    )


def _under(folder: str, sizes: Sizes) -> Files:
    return Files.of((n for n in sizes if n.startswith(f"{folder}/")), sizes)


def _known(micros: int) -> int | None:
    return micros if BEFORE_TIME < micros < AFTER_TIME else None


# -- as JSON -----------------------------------------------------------------------------------

INSTANTS = {"clock", "first", "last", "watermark", "frontier"}


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return {
            f.name: instant(getattr(value, f.name))
            if f.name in INSTANTS
            else _plain(getattr(value, f.name))
            for f in fields(value)
        }
    return [_plain(v) for v in value] if isinstance(value, tuple) else value
