"""Bag differences: what appears and vanishes at one instant was never there."""

from __future__ import annotations

import numpy as np

from thalweg.exec.frame import Changes, Ints
from thalweg.exec.leaf import InstantSet
from thalweg.exec.ordering import order_codes, row_codes
from thalweg.exec.vector import Mask, Vector


def net(changes: Changes) -> Changes:
    """Cancel equal rows of opposite sign at equal instants."""
    plus = changes.signs > 0
    if plus.all() or not plus.any():
        return changes
    ups, downs = InstantSet(changes.ts[plus]), InstantSet(changes.ts[~plus])
    suspect = np.flatnonzero(
        np.where(plus, downs.might_hold(changes.ts), ups.might_hold(changes.ts))
    )
    if not len(suspect):
        return changes
    keep = np.ones(len(changes), np.bool_)
    keep[suspect] = _survivors(changes.take(suspect))
    return changes.take(np.flatnonzero(keep))


def _survivors(changes: Changes) -> Mask:
    columns = list(changes.frame.columns.values())
    content = row_codes(columns, len(changes))
    _, code = np.unique(np.stack([content, changes.ts]), axis=1, return_inverse=True)
    code = code.reshape(-1)
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
        x, y = order_codes([a, b])
        valid_a = np.ones(length, np.bool_) if a.valid is None else a.valid
        valid_b = np.ones(length, np.bool_) if b.valid is None else b.valid
        same &= (valid_a == valid_b) & ((x == y) | ~valid_a)
    return same
