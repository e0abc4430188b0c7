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


def format_instant(micros: int) -> str:
    moment = _EPOCH + timedelta(microseconds=micros)
    return f"'{moment.replace(tzinfo=None).isoformat(' ')}'"


def instant_of(at: datetime | int) -> int:
    """Microseconds since 1970; a time without a zone is UTC."""
    if isinstance(at, int):
        return at
    zoned = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    return (zoned - _EPOCH) // timedelta(microseconds=1)
