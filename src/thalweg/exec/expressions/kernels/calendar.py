"""The proleptic Gregorian calendar on arrays of days and microseconds since 1970 UTC."""

from __future__ import annotations

from typing import Any

import numpy as np

SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR


def civil(days: Any) -> tuple[Any, Any, Any]:
    """Year, month and day; years are counted from March so that leap days come last."""
    shifted = days.astype(np.int64) + 719_468
    era, day_of_era = np.divmod(shifted, 146_097)
    leaps = day_of_era // 1_460 - day_of_era // 36_524 + day_of_era // 146_096
    year_of_era = (day_of_era - leaps) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    slot = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * slot + 2) // 5 + 1
    month = np.where(slot < 10, slot + 3, slot - 9)
    return year_of_era + era * 400 + (month <= 2), month, day


def days_from_civil(year: Any, month: Any, day: Any) -> Any:
    """Days since 1970 of a valid date."""
    year = year - (month <= 2)
    era, year_of_era = np.divmod(year, 400)
    day_of_year = (153 * (month + np.where(month > 2, -3, 9)) + 2) // 5 + day - 1
    day_of_era = year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year
    return era * 146_097 + day_of_era - 719_468


_MONTH_DAYS = np.array([0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])


def exists(year: Any, month: Any, day: Any) -> Any:
    """Whether the date is valid in the calendar."""
    known = (month >= 1) & (month <= 12)
    leap = (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))
    last = _MONTH_DAYS[np.where(known, month, 0)] + ((month == 2) & leap)
    return known & (day >= 1) & (day <= last)
