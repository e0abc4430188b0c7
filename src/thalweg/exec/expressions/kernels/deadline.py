"""A time limit for user code.

An alarm interrupts Python code in the main thread of a process, which is where workers run their
jobs; code that never returns to the interpreter cannot be interrupted.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from thalweg.errors import FunctionTooSlow


class _Alarm(BaseException):
    """Raised by the alarm. Not an Exception: functions that catch every Exception must not catch
    it."""


@contextmanager
def within(seconds: float | None, name: str) -> Iterator[None]:
    """Run the body for at most the given time; the error then names the function `name`."""
    if not seconds or threading.current_thread() is not threading.main_thread():
        yield
        return

    def ring(*_: Any) -> None:
        raise _Alarm

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    except _Alarm:
        raise FunctionTooSlow(
            f"function {name}() did not return within {seconds:g} s",
            remedy="make it faster, or allow more time: Config(user_function_deadline=...)",
        ) from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
