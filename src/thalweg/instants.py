"""Instants and durations: microseconds since 1970 as numbers, as arrays and as text."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
AFTER_TIME = 2**61
BEFORE_TIME = -(2**61)
"""Later and earlier than any instant; far enough from the edges of int64 to add durations."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UNITS = ((86_400_000_000, "d"), (3_600_000_000, "h"), (60_000_000, "min"), (1_000_000, "s"),
          (1_000, "ms"), (1, "µs"))  # fmt: skip


def format_duration(micros: int) -> str:
    """A duration in its largest whole unit."""
    for size, unit in _UNITS:
        if micros and micros % size == 0:
            return f"{micros // size} {unit}"
    return f"{micros} µs"


def format_seconds(seconds: float) -> str:
    """A measured or estimated time, to three digits, in the unit that reads best.

    >>> format_seconds(3.341e-09), format_seconds(0.0145), format_seconds(-2), format_seconds(0)
    ('3.34 ns', '14.5 ms', '-2 s', '0 s')
    >>> format_seconds(9.996e-07), format_seconds(12345)
    ('1 µs', '12,345 s')
    """
    if abs(seconds) >= 1_000:
        return f"{seconds:,.0f} s"
    rounded = float(f"{seconds:.3g}")
    for size, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if not rounded or abs(rounded) >= size:
            return f"{rounded / size:.3g} {unit}"
    return f"{rounded / 1e-9:.3g} ns"


def format_instant(micros: int) -> str:
    moment = _EPOCH + timedelta(microseconds=micros)
    return f"'{moment.replace(tzinfo=None).isoformat(' ')}'"


def instant_of(at: datetime | int) -> int:
    """Microseconds since 1970; a time without a zone is UTC."""
    if isinstance(at, int):
        return at
    zoned = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    return (zoned - _EPOCH) // timedelta(microseconds=1)
