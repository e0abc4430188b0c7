"""The star shape of the join benchmarks: up to seven streams that share one key.

    a(k, ts, x)  b(k, ts, y)  c(k, ts, z)  ...     a.k = b.k = c.k = ...

Keys are uniform over `window * rate` values: a row finds one partner per stream, on the mean, in
the window behind it, so there is about one result per row however many streams are joined.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

STAR: dict[str, tuple[str, ...]] = {
    stream: ("k", "ts", value) for stream, value in zip("abcdefg", "xyzuvpq", strict=True)
}


def star_columns(ways: int) -> dict[str, tuple[str, ...]]:
    """The columns of the first `ways` streams."""
    return dict(list(STAR.items())[:ways])


def count_star(parts: Sequence[dict[str, np.ndarray]], window_ms: int) -> int:
    """Combinations of one row per part, equal in k and within one window, exactly.

    A combination belongs to its latest row (of rows at one instant: to that of the first part).
    Then the others lie in the window behind that row and are independent of each other, so that
    their numbers are multiplied and no combination is ever made.
    """
    bits = max(int(p["ts"].max()) for p in parts).bit_length()
    # in the order of keys, so that neighbours search neighbouring places; a key's gap of one bit
    # keeps times before zero out of the key before it
    codes = [np.sort((p["k"] << (bits + 1)) + (p["ts"] + (1 << bits))) for p in parts]
    total = 0
    for i, latest in enumerate(codes):
        found = np.ones(len(latest), np.int64)
        for j, others in enumerate(codes):
            if j != i:
                found *= _behind(others, latest, min(window_ms, 1 << bits), until=j > i)
        total += int(found.sum())
    return total


def _behind(others: np.ndarray, latest: np.ndarray, window_ms: int, until: bool) -> np.ndarray:
    """How many of `others` lie in the window before each of `latest`, or `until` that instant."""
    start = np.searchsorted(others, latest - window_ms, "left")
    end = np.searchsorted(others, latest, "right" if until else "left")
    size: np.ndarray = end - start
    return size
