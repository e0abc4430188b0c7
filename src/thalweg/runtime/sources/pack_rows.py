"""Rows to packs: the event time read, hopeless rows put aside, the rest sorted and written."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from thalweg.columns.valid_text import not_utf8, readable
from thalweg.instants import Ints
from thalweg.plan.catalog import StreamDef
from thalweg.store.packs import TIME, Key, PackMeta, arrange, write_pack
from thalweg.store.storage import Storage

FARTHEST = 2**60


@dataclass(frozen=True, slots=True)
class IngestPlan:
    """How the rows of one stream become packs in one batch."""

    stream: StreamDef
    keys: tuple[Key, ...]
    clock: int
    prefix: str
    seq: int


@dataclass(slots=True)
class Ingested:
    packs: list[PackMeta] = field(default_factory=list)
    rejects: list[PackMeta] = field(default_factory=list)


def ingest_table(
    plan: IngestPlan, table: pa.Table, storage: Storage, malformed: pa.Array | None = None
) -> Ingested:
    """Write the rows (already of the stream's types) as one pack, plus one of rejects.

    `malformed` says, for records that could not be read as rows, why."""
    found = Ingested()
    unreadable = unreadable_text(table)
    if unreadable is not None:
        table = _with_readable_text(table)
    ts, reasons = event_times(plan.stream, table, plan.clock)
    if unreadable is not None:
        reasons = unreadable if reasons is None else np.where(reasons == "", unreadable, reasons)
    if malformed is not None and malformed.null_count < len(malformed):
        why = malformed.to_numpy(zero_copy_only=False)
        reasons = np.full(len(ts), "", object) if reasons is None else reasons
        reasons = np.where(malformed.is_valid().to_numpy(zero_copy_only=False), why, reasons)
    if reasons is not None:
        bad = np.flatnonzero(reasons != "")
        rejected = table.take(pa.array(bad))
        rejected = rejected.append_column("__reason", pa.array(reasons[bad].tolist(), pa.string()))
        rejected = rejected.append_column(
            TIME, pa.array(np.where(reasons == "", ts, plan.clock)[bad])
        )
        found.rejects.append(write_pack(storage, _name(plan, "rejects"), rejected, plan.seq))
        good = np.flatnonzero(reasons == "")
        table, ts = table.take(pa.array(good)), ts[good]
    if table.num_rows:
        packed = arrange(table, ts, plan.keys)
        found.packs.append(write_pack(storage, _name(plan, "pack"), packed, plan.seq, cut=True))
    return found


def unreadable_text(table: pa.Table) -> np.ndarray | None:
    """Why a row cannot be taken: text that is no UTF-8, as sources may hand over what they were
    given; None if there is none."""
    reasons = None
    for name, column in zip(table.column_names, table.columns, strict=True):
        bad = not_utf8(_whole(column)) if pa.types.is_string(column.type) else None
        if bad is not None:
            reasons = np.full(table.num_rows, "", object) if reasons is None else reasons
            reasons[bad & (reasons == "")] = f"{name} is no UTF-8 text"
    return reasons


def _with_readable_text(table: pa.Table) -> pa.Table:
    for i, column in enumerate(table.columns):
        if pa.types.is_string(column.type) and not_utf8(_whole(column)) is not None:
            table = table.set_column(i, table.field(i), readable(_whole(column)))
    return table


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)


def _name(plan: IngestPlan, kind: str) -> str:
    return f"{plan.prefix}{kind}-{uuid.uuid4().hex[:16]}.arrow"


def event_times(stream: StreamDef, table: pa.Table, clock: int) -> tuple[Ints, np.ndarray | None]:
    """Event time of each row in µs, and, if any row has no usable one, why (else empty text)."""
    if stream.timestamp is None:
        return np.full(table.num_rows, clock, np.int64), None
    column = table.column(stream.timestamp)
    missing = column.is_null().to_numpy() if column.null_count else None
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    if missing is not None:
        column = pc.fill_null(column, 0)
    ts = column.to_numpy().astype(np.int64, copy=False)
    limit = FARTHEST // stream.unit
    outside = (ts > limit) | (ts < -limit)
    ahead = None
    if stream.ahead is not None:
        ahead = ts > (clock + stream.ahead) // stream.unit
    if missing is None and ahead is None and not outside.any():
        return ts * stream.unit if stream.unit != 1 else ts, None
    reasons = np.full(len(ts), "", object)
    if ahead is not None:
        reasons[ahead] = "too far ahead"
    reasons[outside] = "time out of range"
    if missing is not None:
        reasons[missing] = "no timestamp"
    scaled = np.where(outside, 0, ts) * stream.unit
    return scaled, reasons if (reasons != "").any() else None
