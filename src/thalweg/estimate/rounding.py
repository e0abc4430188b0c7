"""Doubles as numbers of rows: upwards, and never below the truth."""

from __future__ import annotations

import math

from thalweg.estimate.figure import MOST, UNKNOWN, Figure, Kind

SLACK = 1e-9
"""More than the relative error of any sum of products here: of some 2^20 cells and 60 inputs."""
_WHOLE_IN_A_DOUBLE = 2.0**53
_SMALL = 1e8


def rounded_up(value: float, kind: Kind = Kind.BOUND) -> Figure:
    """The least number of rows that a bound computed in doubles allows, above it where it is
    uncertain; unknown above DECIMAL(38, 0).

    Whole numbers below 2^53 came about without an error. Of small fractions what lies within the
    error above a whole number is that number: the truth is whole.
    """
    if not value * (1 + SLACK) <= MOST:  # NaN included
        return UNKNOWN
    if value < _WHOLE_IN_A_DOUBLE and value.is_integer():
        return Figure.of(int(value), kind)
    if value < _SMALL:
        return Figure.of(math.ceil(value * (1 - SLACK)), kind)
    return Figure.of(math.ceil(value * (1 + SLACK)), kind)
