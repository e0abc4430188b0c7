"""Which tuples a model in force absorbs, and which begin a new one: many keys at once.

The cheap path of predictions: a tuple within the bounds of its key's segment changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from numba import njit

from thalweg.instants import AFTER_TIME, Ints
from thalweg.models.polynomials import SECOND, Floats

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Bound:
    """How far values may be from a model, or how many percent of |value|; None: not bounded, any
    value is absorbed."""

    within: float | None
    relative: bool = False


@dataclass(frozen=True, slots=True)
class Segments:
    """The segment in force of each key, in the order in which a batch has the keys."""

    alive: Mask
    """Whether there is one; the other fields mean nothing where there is none."""
    reference: Ints
    """The instant from which the polynomials count seconds."""
    until: Ints
    content: Ints
    """A code of the unmodeled columns."""
    coefficients: tuple[Floats, ...]
    """Of each attribute, ascending."""


@dataclass(frozen=True, slots=True)
class Validated:
    """What became of the tuples. Each is absorbed, or begins a segment, or ends one."""

    begins: Mask
    ends: Mask
    """Tuples without a value or a coefficient: the segment in force ends there."""
    absorbed: int
    violations: int
    """Tuples that begin a segment because they are outside the bound of one still valid."""
    expirations: int
    """Tuples that begin one because the one before was valid no longer."""
    changes: int
    """Tuples that begin one because unmodeled columns have changed."""
    current: Segments
    """In force behind the batch."""


def no_segments(keys: int, degrees: Sequence[int]) -> Segments:
    """Nothing in force."""
    reference, until, content = np.zeros((3, keys), np.int64)
    coefficients = tuple(np.zeros((keys, d + 1)) for d in degrees)
    return Segments(np.zeros(keys, np.bool_), reference, until, content, coefficients)


def validated(
    key: Ints,
    ts: Ints,
    values: Floats,
    coefficients: Sequence[Floats],
    content: Ints,
    bounds: Sequence[Bound],
    horizon: int | None,
    current: Segments,
) -> Validated:
    """Follow tuples sorted by (key, ts, stream order); equal neighbours in `key` are one key.

    `values` has a column for each attribute, `coefficients` an array [n, degree + 1] for each: the
    model a tuple begins if it is not absorbed, in seconds since it and valid for the horizon. A
    tuple is absorbed by the segment in force if it is before its end, has its content and every
    bounded attribute is within its bound of the polynomial.
    """
    for bound in bounds:
        if bound.within is not None and not (0 <= bound.within < np.inf):
            raise ValueError(f"bound {bound.within}: must be zero or more, and finite")
    if not len(coefficients) == len(bounds) == values.shape[1]:
        raise ValueError("values, coefficients and bounds are of different attributes")
    columns = np.concatenate([[0], np.cumsum([c.shape[1] for c in coefficients])])
    shares = [0.0 if b.within is None else b.within / (100 if b.relative else 1) for b in bounds]
    state = (current.alive.copy(), current.reference.copy(), current.until.copy(),
             current.content.copy(), _joined(current.coefficients).copy())  # fmt: skip
    begins, ends = np.zeros(len(ts), np.bool_), np.zeros(len(ts), np.bool_)
    counts = np.zeros(4, np.int64)
    _follow(
        key, ts, np.ascontiguousarray(values), _joined(coefficients), content, columns,
        np.array([b.within is not None for b in bounds], np.bool_), np.array(shares, np.float64),
        np.array([b.relative for b in bounds], np.bool_),
        AFTER_TIME if horizon is None else horizon, *state, begins, ends, counts,
    )  # fmt: skip
    parts = tuple(state[4][:, columns[a] : columns[a + 1]] for a in range(len(bounds)))
    absorbed, violations, expirations, changes = counts.tolist()
    return Validated(begins, ends, absorbed, violations, expirations, changes,
                     Segments(*state[:4], parts))  # fmt: skip


def _joined(coefficients: Sequence[Floats]) -> Floats:
    """Side by side; of one attribute the very same array."""
    if len(coefficients) == 1:
        return np.ascontiguousarray(coefficients[0], np.float64)
    return np.concatenate(coefficients, axis=1)


@njit(cache=True, nogil=True)
def _follow(  # type: ignore[no-untyped-def]
    key, ts, values, given, content, columns, bounded, share, relative, horizon, alive, reference,
    until, contents, coefficients, begins, ends, counts,
):  # fmt: skip
    absorbed = violations = expirations = changes = 0
    begin, n, k = 0, len(ts), 0
    plain = len(bounded) == 1 and bounded[0] and not relative[0] and columns[1] == 2
    c = np.empty(columns[-1])
    while begin < n:
        here, since, last, kind = alive[k], reference[k], until[k], contents[k]
        c[:] = coefficients[k]
        i = begin
        while i < n and key[i] == key[begin]:
            if here and plain:
                j = _absorbed_by_line(
                    key, ts, values, given, content, key[begin], i, since, last, kind, c[0], c[1],
                    share[0],
                )  # fmt: skip
                absorbed += j - i
                i = j
                if i == n or key[i] != key[begin]:
                    break
            if not _whole(values, given, i):
                ends[i] = True
                here = False
                i += 1
                continue
            if here:
                if ts[i] >= last:
                    expirations += 1
                elif content[i] != kind:
                    changes += 1
                elif _within(values, columns, bounded, share, relative, i, ts[i] - since, c):
                    absorbed += 1
                    i += 1
                    continue
                else:
                    violations += 1
            begins[i] = True
            here, since, kind = True, ts[i], content[i]
            last = ts[i] + horizon if horizon < AFTER_TIME else AFTER_TIME
            for q in range(len(c)):
                c[q] = given[i, q]
            i += 1
        alive[k], reference[k], until[k], contents[k] = here, since, last, kind
        coefficients[k] = c
        begin = i
        k += 1
    counts[0], counts[1], counts[2], counts[3] = absorbed, violations, expirations, changes


@njit(cache=True, nogil=True)
def _absorbed_by_line(  # type: ignore[no-untyped-def]
    key, ts, values, given, content, this, first, since, last, kind, base, slope, bound
):
    """The first tuple from `first` on that is another key's or that a line does not absorb."""
    for i in range(first, len(ts)):
        found = slope * ((ts[i] - since) / SECOND) + base
        rest = given[i, 0] - given[i, 0] + (given[i, 1] - given[i, 1])  # NaN unless both finite
        if not (
            abs(values[i, 0] - found) + rest <= bound
            and ts[i] < last and content[i] == kind and key[i] == this
        ):  # fmt: skip
            return i
    return len(ts)


@njit(cache=True, nogil=True)
def _whole(values, given, i):  # type: ignore[no-untyped-def]
    for a in range(values.shape[1]):
        if not np.isfinite(values[i, a]):
            return False
    for q in range(given.shape[1]):  # noqa: SIM110
        if not np.isfinite(given[i, q]):
            return False
    return True


@njit(cache=True, nogil=True)
def _within(values, columns, bounded, share, relative, i, ticks, c):  # type: ignore[no-untyped-def]
    """Whether every bounded value is within its bound of the polynomials, evaluated as
    `polynomials.value` does."""
    x = ticks / SECOND
    for a in range(len(bounded)):
        if not bounded[a]:
            continue
        found = c[columns[a + 1] - 1]
        for q in range(columns[a + 1] - 2, columns[a] - 1, -1):
            found = found * x + c[q]
        v = values[i, a]
        bound = abs(v) * share[a] if relative[a] else share[a]
        if not abs(v - found) <= bound:
            return False
    return True
