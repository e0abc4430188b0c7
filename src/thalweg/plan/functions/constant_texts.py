"""Constant texts that stand where another type is wanted: '7' reads as a number, 'abc' does not.

A text that no row could read is refused when the query is bound. The shapes are those of the casts
(`exec/expressions/kernels/parsing.py`) or wider: what passes here may still be rejected there.
"""

from __future__ import annotations

import re

from thalweg.plan.types import BINARY, BOOLEAN, DATE, STRING, TIMESTAMP, DataType

_BLANKS = "".join(map(chr, range(33))) + "\x7f"
_INTEGER = re.compile(r"[+-]?\d+")
_NUMBER = re.compile(r"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[fFdD]?|inf|infinity|nan)", re.I)
_TIME = re.compile(r"[+-]?\d{4,7}(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T].*)?)?)?", re.S)
_TRUTHS = ("t", "true", "y", "yes", "1", "f", "false", "n", "no", "0")


def may_read(text: str, dtype: DataType) -> bool:
    """Whether the text may be a value of the type."""
    text = text.strip(_BLANKS)
    if dtype in (STRING, BINARY):
        return True
    if dtype == BOOLEAN:
        return text.lower() in _TRUTHS
    if dtype in (DATE, TIMESTAMP):
        return _may_be_time(text)
    shape = _INTEGER if dtype.is_integer else _NUMBER
    return not dtype.is_numeric or shape.fullmatch(text) is not None


def _may_be_time(text: str) -> bool:
    found = _TIME.fullmatch(text)
    if found is None:
        return False
    month, day = (1 if part is None else int(part) for part in found.groups())
    return 1 <= month <= 12 and 1 <= day <= 31


def remedy_for(dtype: DataType) -> str:
    """What to write instead of a text that reads as no value of the type."""
    if dtype == BOOLEAN:
        return "write true or false"
    if dtype == DATE:
        return "write a date such as '2024-02-29'"
    if dtype == TIMESTAMP:
        return "write a time such as '2024-02-29 12:00:00'"
    return "write a number, or CAST(... AS STRING) what it is compared with"
