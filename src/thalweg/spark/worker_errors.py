"""Errors of Python's and Java's workers as refusals with a remedy."""

from __future__ import annotations

import errno
import re

from thalweg.errors import PathError, SourceError

_LEAD = re.compile(r"^(Caused by)?: ")
_ERROR = re.compile(r"[\w.]*(Error|Exception): \S")
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


def cause_of(text: str) -> str:
    """The line of a Spark error that says what happened: our own refusal, or the last error."""
    lines = [_LEAD.sub("", line.strip()) for line in text.splitlines()]
    ours = [line.split(": ", 1)[1] for line in lines if line.startswith("thalweg.errors.")]
    vague = (
        "PythonException", "Py4JJavaError", "Py4JError", "StreamingQueryException",
        "SocketException", "EOFException",
    )  # fmt: skip
    errors = [line for line in lines if _ERROR.match(line) and not any(v in line for v in vague)]
    return next(iter([*ours[-1:], *errors[-1:], *lines[:1], "unknown"]))
