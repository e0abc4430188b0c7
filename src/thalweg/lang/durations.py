"""Durations as text: `5 MINUTES`, `1.5 s`, `INTERVAL 1 DAY`."""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal

from thalweg.errors import ParseError

_UNITS = {
    "microsecond": 1,
    "us": 1,
    "µs": 1,
    "millisecond": 1_000,
    "ms": 1_000,
    "second": 1_000_000,
    "sec": 1_000_000,
    "s": 1_000_000,
    "minute": 60_000_000,
    "min": 60_000_000,
    "hour": 3_600_000_000,
    "h": 3_600_000_000,
    "day": 86_400_000_000,
    "d": 86_400_000_000,
    "week": 604_800_000_000,
    "w": 604_800_000_000,
}
_SHAPE = re.compile(r"\s*(?:interval\s+)?'?\s*(\d+(?:\.\d+)?)\s*'?\s*([a-zµ]+)\s*'?\s*", re.I)
_REMEDY = "write a number and a unit, such as 5 MINUTES, 500 ms or INTERVAL 1 DAY"
LONGEST = 2**60


def unit_micros(unit: str) -> int | None:
    """Microseconds in one unit, None if it is not a unit of fixed length."""
    word = unit.lower()
    return _UNITS.get(word) or _UNITS.get(word.removesuffix("s"))


def to_micros(amount: str, unit: str) -> int:
    size = unit_micros(unit)
    if size is None:
        raise ParseError(f"{unit} is not a unit of time of fixed length", remedy=_REMEDY)
    micros = Decimal(amount) * size
    if micros != int(micros):
        raise ParseError(f"{amount} {unit} is not a whole number of microseconds", remedy=_REMEDY)
    if micros > LONGEST:
        raise ParseError(f"{amount} {unit} is too long", remedy=_REMEDY)
    return int(micros)


def parse_duration(text: str | int | timedelta) -> int:
    """Microseconds of a duration given as text, as a timedelta, or already in microseconds."""
    if isinstance(text, timedelta):
        return (text.days * 86_400 + text.seconds) * 1_000_000 + text.microseconds
    if isinstance(text, int):
        return text
    found = _SHAPE.fullmatch(text)
    if found is None:
        raise ParseError(f"{text!r} is not a duration", remedy=_REMEDY)
    return to_micros(found[1], found[2])
