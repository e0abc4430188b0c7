"""The obvious, slow fitter: tuple by tuple, with every pair of points compared; and what pieces say
of tuples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import combinations, groupby
from math import isfinite

import numpy as np
import numpy.typing as npt

from thalweg.instants import Ints
from thalweg.models.fitting.contract import Fit
from thalweg.models.fitting.pieces import Pieces
from thalweg.models.polynomials import Floats, value_at

Interval = tuple[float, float, float]  # lower end, value, upper end
Span = tuple[int, int, int, int, int, bool]  # row, key, start, end, tuples, reaches


@dataclass
class Plain:
    spans: list[Span] = field(default_factory=list)
    conflicts: int = 0
    missing: int = 0
    gaps: list[tuple[int, int]] = field(default_factory=list)


@dataclass
class Point:
    row: int
    ts: int
    tuples: int
    intervals: list[Interval]
    fresh: bool
    broken: float = float("inf")


def constant_fits(points: Sequence[tuple[int, Interval]]) -> bool:
    return max(p[0] for _, p in points) <= min(p[2] for _, p in points)


def line_through_first_fits(points: Sequence[tuple[int, Interval]]) -> bool:
    (t0, (_, v0, _)), rest = points[0], points[1:]
    least = max(((low - v0) / (t - t0) for t, (low, _, _) in rest), default=0)
    most = min(((high - v0) / (t - t0) for t, (_, _, high) in rest), default=0)
    return least <= most


def line_fits(points: Sequence[tuple[int, Interval]]) -> bool:
    slopes = [((b[2] - a[0]) / (u - t), (b[0] - a[2]) / (u - t))
              for (t, a), (u, b) in combinations(points, 2)]  # fmt: skip
    return min((s for s, _ in slopes), default=0) >= max((s for _, s in slopes), default=0)


FITS_ONE: dict[str, Callable[[Sequence[tuple[int, Interval]]], bool]] = {
    "mid-range": constant_fits, "swing": line_through_first_fits, "hull": line_fits,
}  # fmt: skip


def plainly_fitted(
    key: Ints, ts: Ints, values: Floats, fits: Sequence[Fit], every: int,
    continues: Sequence[bool], horizon: int = 0,
) -> Plain:  # fmt: skip
    found = Plain()
    keys = groupby(range(len(key)), key=lambda i: key[i])
    for carried, (k, rows) in zip(continues, keys, strict=True):
        points = _points(k, list(rows), ts, values, fits, found)
        _spans(int(k), points, fits, every, bool(carried), horizon, found)
    return found


def _points(
    key: int, rows: list[int], ts: Ints, values: Floats, fits: Sequence[Fit], found: Plain
) -> list[Point]:
    points: list[Point] = []
    fresh = noted = False
    for at, group in groupby(rows, key=lambda i: ts[i]):
        alike: list[int] = []
        silent = False
        for i in group:
            if all(isfinite(v) for v in values[i]):
                alike.append(i)
            else:
                found.conflicts += len(alike)
                found.missing += 1
                alike = []
                silent = True
        if silent:
            fresh = True
            if points:
                points[-1].broken = min(points[-1].broken, at)
            elif not noted:
                found.gaps.append((int(key), int(at)))
                noted = True
        if not alike:
            continue
        met = _met(alike, values, fits)
        if met is None:
            found.conflicts += len(alike) - 1
            alike = alike[-1:]
            met = _met(alike, values, fits)
            assert met is not None
        points.append(Point(alike[0], int(at), len(alike), met, fresh))
        fresh = False
    return points


def _met(rows: list[int], values: Floats, fits: Sequence[Fit]) -> list[Interval] | None:
    found = []
    for a, fit in enumerate(fits):
        own = [float(values[i, a]) for i in rows]
        bounds = [abs(v) * fit.within / 100 if fit.relative else fit.within for v in own]
        low = max(v - e for v, e in zip(own, bounds, strict=True))
        high = min(v + e for v, e in zip(own, bounds, strict=True))
        if low > high:
            return None
        found.append((low, min(max((min(own) + max(own)) / 2, low), high), high))
    return found


def _spans(
    key: int, points: list[Point], fits: Sequence[Fit], every: int, carried: bool, horizon: int,
    found: Plain,
) -> None:  # fmt: skip
    i, previous = 0, None  # the cell of the point before
    while i < len(points):
        cell = points[i].ts // every
        goes_on = (carried if previous is None else previous == cell - 1) and not points[i].fresh
        start = cell * every if goes_on else points[i].ts
        stop = i + 1
        while stop < len(points) and points[stop].ts // every == cell and not points[stop].fresh:
            stop += 1
        begins = _cuts(points[i:stop], fits)
        edge = (cell + 1) * every
        broken = points[stop - 1].broken
        end = min(edge + horizon, broken)
        if stop < len(points):
            following = points[stop]
            joined = following.ts // every == cell + 1 and not following.fresh
            end = min(end, edge if joined else following.ts)
        for b, nxt in zip(begins, [*begins[1:], stop - i], strict=True):
            own = points[i + b : i + nxt]
            last = nxt == stop - i
            found.spans.append((
                own[0].row, key, start if b == 0 else own[0].ts,
                int(end) if last else points[i + nxt].ts, sum(p.tuples for p in own),
                bool(last and broken >= edge),
            ))  # fmt: skip
        previous = cell
        i = stop


def _cuts(points: list[Point], fits: Sequence[Fit]) -> list[int]:
    begins, begin = [0], 0
    for end in range(1, len(points)):
        tried = points[begin : end + 1]
        if not all(FITS_ONE[str(f.method)]([(p.ts, p.intervals[a]) for p in tried])
                   for a, f in enumerate(fits)):  # fmt: skip
            begin = end
            begins.append(begin)
    return begins


def spans_of(pieces: Pieces) -> list[Span]:
    return list(zip(pieces.row.tolist(), pieces.key.tolist(), pieces.start.tolist(),
                    pieces.end.tolist(), pieces.tuples.tolist(), pieces.reaches.tolist(),
                    strict=True))  # fmt: skip


def piece_of(pieces: Pieces, key: Ints, ts: Ints) -> Ints:
    """The piece valid at each instant of a key, or -1."""
    found = np.full(len(ts), -1)
    for k in np.unique(key):
        own = np.flatnonzero(pieces.key == k)
        rows = np.flatnonzero(key == k)
        if not len(own):
            continue
        at = np.searchsorted(pieces.start[own], ts[rows], side="right") - 1
        there = (at >= 0) & (ts[rows] < pieces.end[own[np.maximum(at, 0)]])
        found[rows[there]] = own[at[there]]
    return found


def errors(pieces: Pieces, attribute: int, key: Ints, ts: Ints, v: Floats) -> Floats:
    """|v - p(t)| of tuples, NaN where nothing is valid."""
    piece = piece_of(pieces, key, ts)
    c = pieces.coefficients[attribute]
    found = np.abs(v - value_at(c[piece], pieces.start[piece], ts))
    return np.where(piece < 0, np.nan, found)


def all_within(
    pieces: Pieces, key: Ints, ts: Ints, values: Floats, fits: Sequence[Fit],
    rows: npt.NDArray[np.bool_] | None = None,
) -> bool:  # fmt: skip
    """Whether every tuple, or each of some, is within its bound of the piece valid then."""
    chosen = np.ones(len(ts), np.bool_) if rows is None else rows
    key, ts, values = key[chosen], ts[chosen], values[chosen]
    for a, fit in enumerate(fits):
        v = values[:, a]
        bound = np.abs(v) * (fit.within / 100) if fit.relative else fit.within
        if not (errors(pieces, a, key, ts, v) <= bound).all():
            return False
    return True
