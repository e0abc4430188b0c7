"""Dates and timestamps, always in UTC."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from thalweg.columns.vector import BAD_DATE, OVERFLOW
from thalweg.exec.expressions.kernels.calendar import (
    DAY,
    HOUR,
    MINUTE,
    SECOND,
    civil,
    days_from_civil,
    exists,
)
from thalweg.exec.expressions.kernels.maths import saturated
from thalweg.exec.expressions.kernels.registry import Outcome, both, failing, strict
from thalweg.plan.expr import Call

_INT64 = np.iinfo(np.int64)


def _year_start(days: Any) -> Any:
    return days_from_civil(civil(days)[0], 1, 1)


def _day_of_year(days: Any) -> Any:
    return days - _year_start(days) + 1


def _week_of_year(days: Any) -> Any:
    """ISO: the week belongs to the year of its Thursday."""
    thursday = days - _weekday(days) + 3
    return (thursday - _year_start(thursday)) // 7 + 1


def _weekday(days: Any) -> Any:
    """0 is Monday."""
    return (days.astype(np.int64) + 3) % 7


_OF_DATE: dict[str, Callable[[Any], Any]] = {
    "year": lambda d: civil(d)[0],
    "month": lambda d: civil(d)[1],
    "dayofmonth": lambda d: civil(d)[2],
    "quarter": lambda d: (civil(d)[1] + 2) // 3,
    "dayofyear": _day_of_year,
    "weekofyear": _week_of_year,
    "dayofweek": lambda d: (_weekday(d) + 1) % 7 + 1,
}


# Arrow is ten times faster, but its years have 16 bits.
_OF_NEAR_DATE = {
    "year": pc.year,
    "month": pc.month,
    "dayofmonth": pc.day,
    "quarter": pc.quarter,
    "dayofyear": pc.day_of_year,
}
_NEAR = 10_000_000


@strict(*_OF_DATE)
def _of_date(call: Call, days: Any) -> Any:
    fast = _OF_NEAR_DATE.get(call.function)
    if fast is not None and len(days) and days.min() > -_NEAR and days.max() < _NEAR:
        dates = pa.array(days, pa.int32()).cast(pa.date32())
        return fast(dates).to_numpy(zero_copy_only=False).astype(np.int32)
    return _OF_DATE[call.function](days.astype(np.int64)).astype(np.int32)


_OF_CLOCK = {"hour": (HOUR, 24), "minute": (MINUTE, 60), "second": (SECOND, 60)}


@strict(*_OF_CLOCK)
def _of_clock(call: Call, micros: Any) -> Any:
    unit, cycle = _OF_CLOCK[call.function]
    return (micros // unit % cycle).astype(np.int32)


_SINCE_1970 = {"unix_seconds": SECOND, "unix_millis": 1_000}


@strict(*_SINCE_1970)
def _since_1970(call: Call, micros: Any) -> Any:
    return micros // _SINCE_1970[call.function]


@strict("unix_timestamp")
def _unix_timestamp(call: Call, micros: Any) -> Any:
    return (micros - np.fmod(micros, SECOND)) // SECOND  # towards zero, unlike unix_seconds


@strict("unix_micros", "timestamp_micros")
def _as_is(call: Call, ticks: Any) -> Any:
    return ticks


@strict("timestamp_millis")
def _timestamp_millis(call: Call, millis: Any) -> Any:
    return scaled(millis, 1_000)


@strict("timestamp_seconds")
def _timestamp_seconds(call: Call, seconds: Any) -> Any:
    if seconds.dtype.kind == "i":
        return scaled(seconds, SECOND)
    return Outcome(saturated(seconds * SECOND), valid=np.isfinite(seconds))


def scaled(ticks: Any, factor: int) -> Outcome:
    """Ticks of a coarser unit converted to microseconds."""
    ticks = ticks.astype(np.int64)
    beyond = (ticks > _INT64.max // factor) | (ticks < -(-_INT64.min // factor))
    return Outcome(ticks * factor, failing(beyond, OVERFLOW))


@strict("date_add")
def _date_add(call: Call, days: Any, more: Any) -> Any:
    return _date(days.astype(np.int64) + more)


@strict("date_sub")
def _date_sub(call: Call, days: Any, fewer: Any) -> Any:
    return _date(days.astype(np.int64) - fewer)


@strict("datediff")
def _datediff(call: Call, end: Any, start: Any) -> Any:
    return _date(end.astype(np.int64) - start)


def _date(days: Any) -> Outcome:
    found = days.astype(np.int32)
    return Outcome(found, failing(found != days, OVERFLOW))


@strict("make_date")
def _make_date(call: Call, year: Any, month: Any, day: Any) -> Any:
    year, month, day = (np.asarray(x, np.int64) for x in (year, month, day))
    good = exists(year, month, day)
    days = days_from_civil(year, np.where(good, month, 1), np.where(good, day, 1))
    found = days.astype(np.int32)
    return Outcome(found, failing(~good | (found != days), BAD_DATE))


_FIXED_UNITS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": SECOND,
    "minute": MINUTE,
    "hour": HOUR,
    "day": DAY,
    "dd": DAY,
}
_UNIT_NAMES = {
    "year": "year", "yyyy": "year", "yy": "year", "quarter": "quarter", "month": "month",
    "mon": "month", "mm": "month", "week": "week",
}  # fmt: skip


def _truncate_days(unit: str, days: Any) -> Any:
    if unit == "week":
        return days - _weekday(days)
    year, month, _ = civil(days)
    first = {"year": np.ones_like(month), "quarter": (month - 1) // 3 * 3 + 1, "month": month}
    return days_from_civil(year, first[unit], 1)


def _truncate(unit: str, micros: Any) -> Outcome | None:
    name = unit.lower()
    if name in _FIXED_UNITS:
        found = micros // _FIXED_UNITS[name] * _FIXED_UNITS[name]
        return Outcome(found, failing(found > micros, OVERFLOW))  # wrapped at the lower end
    if name not in _UNIT_NAMES:
        return None
    return scaled(_truncate_days(_UNIT_NAMES[name], micros // DAY), DAY)


@strict("date_trunc")
def _date_trunc(call: Call, unit: Any, micros: Any) -> Any:
    if isinstance(unit, pa.Scalar) or len(unit) == 1:
        single = unit if isinstance(unit, pa.Scalar) else unit[0]
        found = _truncate(single.as_py() or "", micros)
        return found or Outcome(micros, valid=np.zeros(len(micros), np.bool_))
    return _by_unit(unit, micros)


def _by_unit(units: pa.Array, micros: Any) -> Outcome:
    micros = np.broadcast_to(micros, len(units))
    codes = units.fill_null("").dictionary_encode()
    data, valid = micros.copy(), np.zeros(len(micros), np.bool_)
    errors = np.zeros(len(micros), np.uint8)
    for code, unit in enumerate(codes.dictionary.to_pylist()):
        rows = codes.indices.to_numpy() == code
        found = _truncate(unit, micros[rows])
        if found is not None:
            data[rows], valid[rows] = found.data, True
            errors[rows] = 0 if found.errors is None else found.errors
    return Outcome(data, errors if errors.any() else None, both([valid]))
