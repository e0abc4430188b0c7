"""The clock of the driver: the wall clock, except that it never goes back.

Arrival times, silence and the age of results are told by it. When the machine's clock is set
back, it goes on at the pace of time from where it was.
"""

from __future__ import annotations

import threading
import time

_lock = threading.Lock()
_last = 0
_last_steady = 0


def wall_clock() -> int:
    """Microseconds since 1970."""
    global _last, _last_steady
    with _lock:
        steady = time.monotonic_ns() // 1000
        _last = max(time.time_ns() // 1000, _last + steady - _last_steady if _last else 0)
        _last_steady = steady
        return _last


def not_before(micros: int) -> None:
    """Make the clock continue from a reading that an earlier process recorded."""
    global _last, _last_steady
    with _lock:
        if micros > _last:
            _last, _last_steady = micros, time.monotonic_ns() // 1000
