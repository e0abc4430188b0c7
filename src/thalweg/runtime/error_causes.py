"""The line of an error that says what happened, where Python's and Java's workers say much."""

from __future__ import annotations

import re

from thalweg.masking import without_credentials

_LEAD = re.compile(r"^(Caused by)?: ")
_ERROR = re.compile(r"[\w.]*(Error|Exception): \S")
_VAGUE = (
    "PythonException", "Py4JJavaError", "Py4JError", "StreamingQueryException", "SocketException",
    "EOFException",
)  # fmt: skip


def cause_of(text: str) -> str:
    """Our own refusal, or the last error, or the first line."""
    lines = [_LEAD.sub("", line.strip()) for line in text.splitlines()]
    ours = [line.split(": ", 1)[1] for line in lines if line.startswith("thalweg.errors.")]
    errors = [line for line in lines if _ERROR.match(line) and not any(v in line for v in _VAGUE)]
    return next(iter([*ours[-1:], *errors[-1:], *lines[:1], "unknown"]))


def told(error: BaseException) -> str:
    """An error in one line."""
    text = without_credentials(str(error))
    if len(text.splitlines()) > 1:
        return cause_of(text)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
