"""Bag differences: cancellation of rows that appear and vanish at one instant."""

from __future__ import annotations

import numpy as np

from thalweg.columns.frame import Changes
from thalweg.columns.instant_set import InstantSet
from thalweg.columns.sort_codes import numbered_rows, order_codes
from thalweg.columns.vector import Mask, Vector
from thalweg.instants import Ints
from thalweg.plan.types import BIGINT
from thalweg.store import native
from thalweg.store.hashing import hash_columns

_FEW = 4_096
"""Rows that are compared at once; of more, those are left out first whose hashes differ."""


def net(changes: Changes) -> Changes:
    """Cancel equal rows of opposite sign at equal instants."""
    plus = changes.signs > 0
    if plus.all() or not plus.any():
        return changes
    ups, downs = InstantSet(changes.ts[plus]), InstantSet(changes.ts[~plus])
    suspect = np.flatnonzero(
        np.where(plus, downs.might_hold(changes.ts), ups.might_hold(changes.ts))
    )
    if len(suspect) > _FEW:
        suspect = suspect[_alike(changes.take(suspect))]
    if not len(suspect):
        return changes
    keep = np.ones(len(changes), np.bool_)
    keep[suspect] = _survivors(changes.take(suspect))
    return changes.take(np.flatnonzero(keep))


def _alike(changes: Changes) -> Mask:
    """Rows whose hash of instant and content also occurs with the other sign."""
    columns = [v.to_arrow() for v in changes.frame.columns.values()]
    hashes = native.combine(
        hash_columns(columns, len(changes)), native.mix(changes.ts.view(np.uint64))
    ).view(np.int64)
    plus = changes.signs > 0
    ups, downs = InstantSet(hashes[plus]), InstantSet(hashes[~plus])
    found: Mask = np.where(plus, downs.might_hold(hashes), ups.might_hold(hashes))
    return found


def _survivors(changes: Changes) -> Mask:
    columns = [*changes.frame.columns.values(), Vector(BIGINT, changes.ts)]
    code, _ = numbered_rows(columns, len(changes))
    plus = changes.signs > 0
    ups = np.bincount(code, plus)
    downs = np.bincount(code, ~plus)
    cancelled = np.minimum(ups, downs).astype(np.int64)
    return _rank(code, plus) >= cancelled[code]


def _rank(code: Ints, plus: Mask) -> Ints:
    """Position of each row among the rows of its code and sign."""
    order = np.lexsort((plus, code))
    new = np.ones(len(code), np.bool_)
    new[1:] = (code[order][1:] != code[order][:-1]) | (plus[order][1:] != plus[order][:-1])
    starts = np.flatnonzero(new)
    rank = np.empty(len(code), np.int64)
    rank[order] = np.arange(len(code)) - np.repeat(starts, np.diff(np.append(starts, len(code))))
    return rank


def same_rows(left: list[Vector], right: list[Vector], length: int) -> Mask:
    """Row by row equality of two equally long lists of columns."""
    same = np.ones(length, np.bool_)
    for a, b in zip(left, right, strict=True):
        equal = _same_values(a, b)
        if a.valid is not None or b.valid is not None:
            valid_a, valid_b = _mask(a, length), _mask(b, length)
            equal = (valid_a == valid_b) & (equal | ~valid_a)
        same &= equal
    return same


def _same_values(a: Vector, b: Vector) -> Mask:
    if isinstance(a.data, np.ndarray):
        equal: Mask = a.data == b.data
        if a.type.is_float:
            equal |= np.isnan(a.data) & np.isnan(b.data)
        return equal
    x, y = order_codes([a, b])
    return np.equal(x, y)


def _mask(vector: Vector, length: int) -> Mask:
    return np.ones(length, np.bool_) if vector.valid is None else vector.valid
