"""Errors of Python's and Java's workers as refusals with a remedy."""

from __future__ import annotations

import errno

from thalweg.errors import PathError, SourceError
from thalweg.runtime.error_causes import cause_of

_NO_SPACE = "No space left on device"


def explained(error: BaseException, path: str) -> BaseException:
    """The same error, or one that says what to do where Python's or Java's does not."""
    text = str(error)
    if getattr(error, "errno", None) == errno.ENOSPC or _NO_SPACE in text:
        return PathError(
            f"the disk that holds {path} is full",
            remedy="make space and start again: what is committed is there, and the rest is read "
            "again",
        )
    if not type(error).__module__.startswith(("py4j", "pyspark")):
        return error
    return SourceError(
        f"Spark's workers failed: {cause_of(text)}",
        remedy="see Spark's log; a new start goes on from what is committed",
    )
