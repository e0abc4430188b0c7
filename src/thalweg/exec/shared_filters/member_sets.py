"""Sets of members beside rows: for each row, which members want it.

Rows wanted by the same members share a set: the column is a dictionary of sets, and a row has the
number of one. A set is a list of members or, where that takes less room, a bitmap over the members
that occur in the table (these are in the field's metadata).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from thalweg.exec.shared_filters.predicate_index import Matches
from thalweg.instants import Ints
from thalweg.store import native

WANTED = "__queries"
LISTS, BITMAPS, SMALLER = "lists", "bitmaps", "smaller"
LAYOUT = SMALLER
_MEMBERS = b"thalweg.members"
Ids = npt.NDArray[np.int32]


def with_sets(table: pa.Table, matches: Matches, rows: Ints) -> pa.Table:
    """A table of some rows with the sets of the members that want them."""
    kinds, place = np.unique(matches.kind[rows], return_inverse=True)
    count = np.diff(matches.begin)[kinds]
    _, at = native.expand_ranges(matches.begin[:-1][kinds], count, int(count.sum()))
    sets, members = _laid_out(count, matches.queries[at].astype(np.int32))
    column = pa.DictionaryArray.from_arrays(pa.array(place.astype(np.int32)), sets)
    told = None if members is None else {_MEMBERS: members.tobytes()}
    return table.append_column(pa.field(WANTED, column.type, metadata=told), column)


def _laid_out(count: Ints, queries: Ids) -> tuple[pa.Array, Ids | None]:
    """Sets one after another; for bitmaps also the member that each bit stands for."""
    members, place = _distinct(queries)
    width = -(-len(members) // 8)
    smaller = width * len(count) + members.nbytes < queries.nbytes
    if LAYOUT == BITMAPS or (LAYOUT == SMALLER and smaller):
        bits = np.zeros((len(count), width * 8), np.bool_)
        bits[np.repeat(np.arange(len(count)), count), place] = True
        packed = np.packbits(bits, axis=1, bitorder="little")
        buffer = pa.py_buffer(packed.tobytes())
        kind = pa.binary(width)
        return pa.FixedSizeBinaryArray.from_buffers(kind, len(count), [None, buffer]), members
    offsets = np.concatenate([[0], np.cumsum(count)]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(queries)), None


def _distinct(ids: Ids) -> tuple[Ids, Ints]:
    """The distinct values, in order, and per occurrence the place of its own. Members are numbered
    one after another, so mostly a mark for each suffices, without sorting."""
    low, high = (int(ids.min()), int(ids.max())) if len(ids) else (0, 0)
    if high - low > 4 * len(ids):
        members, place = np.unique(ids, return_inverse=True)
        return members, place
    occurs = np.zeros(high - low + 1, np.bool_)
    occurs[ids - low] = True
    members = (np.flatnonzero(occurs) + low).astype(np.int32)
    return members, (np.cumsum(occurs) - 1)[ids - low]


def wanted_by(table: pa.Table, member: int) -> Ints:
    """Places of the rows that a member wants."""
    found = []
    for first, kind, offsets, members in sets_of(table):
        at = np.flatnonzero(members == member)
        if len(at):
            wanted = np.zeros(len(offsets) - 1, np.bool_)
            wanted[np.searchsorted(offsets, at, "right") - 1] = True
            found.append(first + np.flatnonzero(wanted[kind]))
    return np.concatenate(found) if found else np.empty(0, np.int64)


def by_member(table: pa.Table) -> tuple[Ints, Ints]:
    """(member, row) of all rows, by member."""
    members, rows = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for first, kind, offsets, every in sets_of(table):
        count = np.diff(offsets)[kind]
        row, at = native.expand_ranges(offsets[:-1][kind], count, int(count.sum()))
        members.append(every[at].astype(np.int64))
        rows.append(row + first)
    whose, where = np.concatenate(members), np.concatenate(rows)
    order = np.argsort(whose, kind="stable")
    return whose[order], where[order]


def sets_of(table: pa.Table) -> Iterator[tuple[int, Ids, Ints, Ids]]:
    """Chunk by chunk its first row, per row the number of its set, where each set begins, and the
    members of all sets."""
    told = (table.field(WANTED).metadata or {}).get(_MEMBERS)
    first = 0
    for chunk in table.column(WANTED).chunks:
        sets, kind = chunk.dictionary, chunk.indices.to_numpy()
        if told is None:
            offsets, members = sets.offsets.to_numpy().astype(np.int64), sets.values.to_numpy()
        else:
            universe = np.frombuffer(told, np.int32)
            offsets, members = _unpacked(sets, universe)
        yield first, kind, offsets, members
        first += len(chunk)


def _unpacked(sets: pa.FixedSizeBinaryArray, universe: Ids) -> tuple[Ints, Ids]:
    width = sets.type.byte_width
    raw = np.frombuffer(sets.buffers()[1], np.uint8, len(sets) * width, sets.offset * width)
    bits = np.unpackbits(raw.reshape(len(sets), width), axis=1, bitorder="little")
    whose, member = np.nonzero(bits[:, : len(universe)])
    count = np.bincount(whose, minlength=len(sets))
    return np.concatenate([[0], np.cumsum(count)]), universe[member]
