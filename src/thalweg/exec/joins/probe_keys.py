"""Keys of the rows of a probe."""

from __future__ import annotations

import numpy as np

from thalweg.columns.frame import Frame
from thalweg.columns.vector import Mask
from thalweg.instants import Ints
from thalweg.store import native
from thalweg.store.hashing import Hashes, hash_columns

_SORT_NEEDLES = 20_000


def keyed_rows(
    frame: Frame, instants: Ints, among: Mask | None, source: tuple[str, ...]
) -> tuple[Ints, Hashes]:
    """Rows that may have a partner (NULL joins nothing) with the hashes of their keys, in an order
    that makes the look-up a merge where that pays."""
    usable = has_keys(frame, source)
    rows = np.flatnonzero(usable if among is None else usable & among)
    hashes = hash_columns([frame.columns[c].take(rows).to_arrow() for c in source], len(rows))
    order = _helpful_order(hashes, instants[rows])
    return (rows, hashes) if order is None else (rows[order], hashes[order])


def has_keys(frame: Frame, source: tuple[str, ...]) -> Mask:
    """The rows without NULL among their keys."""
    keep = np.ones(frame.length, np.bool_)
    for column in source:
        valid = frame.columns[column].valid
        if valid is not None:
            keep &= valid
    return keep


def _helpful_order(hashes: Hashes, ts: Ints) -> Ints | None:
    """Sort needles, so that random look-ups become a merge; runs that are sorted already are
    left."""
    if len(hashes) < _SORT_NEEDLES:
        return None
    falls = int(np.count_nonzero(hashes[1:] < hashes[:-1]))
    if falls < len(hashes) // 1000 + 16:
        return None
    return native.key_time_order(hashes, ts)  # type: ignore[no-any-return]
