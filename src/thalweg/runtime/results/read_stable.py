"""Reading what is committed while an engine at work replaces files.

A file that is gone went after a newer commit, which does not name it: reading again from what is
committed by then succeeds.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from thalweg.errors import PathError

T = TypeVar("T")
ATTEMPTS = 20
PAUSE_SECONDS = 0.01


class NotThere(RuntimeError):
    """What is to be read has changed, or is not committed yet: read again."""


def read_stable(
    read: Callable[[], T],
    *,
    attempts: int = ATTEMPTS,
    again: Callable[[], object] | None = None,
) -> T:
    """What `read` gives, as soon as nothing goes from under it; `again` is done before another
    attempt, by default a little while is waited."""
    for attempt in range(attempts - 1):
        try:
            return read()
        except (PathError, NotThere):
            if again is None:
                time.sleep(PAUSE_SECONDS * attempt)
            else:
                again()
    return read()
