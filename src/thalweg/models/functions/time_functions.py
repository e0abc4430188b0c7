"""Functions of time, one per row: polynomials, or quotients of two, about a reference instant."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from thalweg.columns.vector import Mask
from thalweg.instants import BEFORE_TIME, Ints
from thalweg.models import polynomials
from thalweg.models.polynomials import Floats, aligned, offset


@dataclass(frozen=True, slots=True)
class TimeFunctions:
    """Row i is the polynomial `top[i]`, divided by `bottom[i]` if there is one, in seconds since
    `start[i]`. Constants have no start (`BEFORE_TIME`). Rows without a value are not `valid`."""

    top: Floats
    start: Ints
    bottom: Floats | None = None
    valid: Mask | None = None

    def __len__(self) -> int:
        return len(self.top)

    def about(self, start: Ints) -> TimeFunctions:
        """The same about other instants; constants are the same about any."""
        own = np.where(self.start == BEFORE_TIME, start, self.start)
        bottom = None if self.bottom is None else aligned(self.bottom, own, start)
        return TimeFunctions(aligned(self.top, own, start), start, bottom, self.valid)

    def take(self, rows: Ints) -> TimeFunctions:
        bottom = None if self.bottom is None else self.bottom[rows]
        valid = None if self.valid is None else self.valid[rows]
        return TimeFunctions(self.top[rows], self.start[rows], bottom, valid)

    def at(self, instants: Ints) -> Floats:
        """The value of each at an instant of its own."""
        start = np.where(self.start == BEFORE_TIME, instants, self.start)
        seconds = offset(start, instants)
        found = polynomials.value(self.top, seconds)
        if self.bottom is None:
            return found
        with np.errstate(all="ignore"):
            return found / polynomials.value(self.bottom, seconds)

    def negative(self) -> TimeFunctions:
        return TimeFunctions(-self.top, self.start, self.bottom, self.valid)

    def plus(self, other: TimeFunctions) -> TimeFunctions:
        """The sum, about the later of the two instants."""
        left, right = _together(self, other)
        if left.bottom is None and right.bottom is None:
            top, bottom = polynomials.added(left.top, right.top), None
        else:
            under = (_bottom(left), _bottom(right))
            top = polynomials.added(
                polynomials.multiplied(left.top, under[1]),
                polynomials.multiplied(right.top, under[0]),
            )
            bottom = polynomials.multiplied(*under)
        return TimeFunctions(top, left.start, bottom, both(left.valid, right.valid))

    def minus(self, other: TimeFunctions) -> TimeFunctions:
        return self.plus(other.negative())

    def times(self, other: TimeFunctions) -> TimeFunctions:
        left, right = _together(self, other)
        bottom = None
        if left.bottom is not None or right.bottom is not None:
            bottom = polynomials.multiplied(_bottom(left), _bottom(right))
        top = polynomials.multiplied(left.top, right.top)
        return TimeFunctions(top, left.start, bottom, both(left.valid, right.valid))

    def derivative(self) -> TimeFunctions:
        """By seconds."""
        top = polynomials.derivative(self.top)
        if self.bottom is None:
            return TimeFunctions(top, self.start, None, self.valid)
        up = polynomials.multiplied(top, self.bottom)
        down = polynomials.multiplied(self.top, polynomials.derivative(self.bottom))
        square = polynomials.multiplied(self.bottom, self.bottom)
        return TimeFunctions(polynomials.added(up, -down), self.start, square, self.valid)


def constants(values: Floats, valid: Mask | None = None) -> TimeFunctions:
    start = np.full(len(values), BEFORE_TIME, np.int64)
    return TimeFunctions(np.asarray(values, np.float64)[:, np.newaxis], start, None, valid)


def _together(left: TimeFunctions, right: TimeFunctions) -> tuple[TimeFunctions, TimeFunctions]:
    start = np.maximum(left.start, right.start)
    return left.about(start), right.about(start)


def _bottom(one: TimeFunctions) -> Floats:
    return np.ones((len(one), 1)) if one.bottom is None else one.bottom


def both(left: Mask | None, right: Mask | None) -> Mask | None:
    if left is None or right is None:
        return right if left is None else left
    found: Mask = left & right
    return found
