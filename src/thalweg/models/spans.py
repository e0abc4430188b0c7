"""Sets of instants, one for each row: disjoint half-open spans of µs, and their boolean algebra."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from thalweg.instants import Ints

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Spans:
    """The instants start ≤ t < end of rows; rows are in order, and so are the spans of
    a row, which do not touch."""

    row: Ints
    start: Ints
    end: Ints

    def __len__(self) -> int:
        return len(self.row)

    def take(self, chosen: Any) -> Spans:
        return Spans(self.row[chosen], self.start[chosen], self.end[chosen])

    def of_each(self, numbers: Ints) -> Spans:
        """For each number the spans of the row of that number, as those of its own place."""
        first = np.searchsorted(self.row, numbers)
        counts = np.searchsorted(self.row, numbers, "right") - first
        row = np.repeat(np.arange(len(numbers)), counts)
        before = np.cumsum(counts) - counts
        at = np.arange(len(row)) + np.repeat(first - before, counts)
        return Spans(row, self.start[at], self.end[at])


def within(since: Ints, until: Ints, rows: Mask | None = None) -> Spans:
    """All of [since, until), of every row or of some."""
    there = since < until
    chosen = np.flatnonzero(there if rows is None else there & rows)
    return Spans(chosen, since[chosen], until[chosen])


def joined(parts: Sequence[Spans]) -> Spans:
    """One after another."""
    return Spans(
        np.concatenate([p.row for p in parts]),
        np.concatenate([p.start for p in parts]),
        np.concatenate([p.end for p in parts]),
    )


@dataclass(frozen=True, slots=True)
class Not:
    of: Formula


@dataclass(frozen=True, slots=True)
class Both:
    left: Formula
    right: Formula


@dataclass(frozen=True, slots=True)
class Either:
    left: Formula
    right: Formula


Formula = int | Not | Both | Either
"""A boolean expression over sets of instants, each of which it names by its number."""


def combined(formula: Formula, sets: Sequence[Spans], universe: Spans) -> Spans:
    """The instants of the universe at which the formula holds."""
    if isinstance(formula, int) and len(sets) == 1:
        return sets[0]
    every = (*sets, universe)
    row = np.concatenate([x for s in every for x in (s.row, s.row)])
    at = np.concatenate([x for s in every for x in (s.start, s.end)])
    which = np.repeat(np.arange(len(every)), [2 * len(s) for s in every])
    step = np.concatenate([np.repeat([1, -1], len(s)) for s in every])
    order = np.lexsort((at, row))
    row, at, which, step = row[order], at[order], which[order], step[order]
    last = np.flatnonzero(np.append((row[1:] != row[:-1]) | (at[1:] != at[:-1]), len(row) > 0))
    inside = [np.cumsum(np.where(which == i, step, 0))[last] > 0 for i in range(len(every))]
    holds = _holds(formula, inside) & inside[-1]
    # every set ends within its row, so that nothing holds behind the last change of a row
    before = np.concatenate([[False], holds[:-1]]) if len(holds) else holds
    begins, ends = last[holds & ~before], last[~holds & before]
    return Spans(row[begins], at[begins], at[ends])


def _holds(formula: Formula, inside: Sequence[Mask]) -> Mask:
    if isinstance(formula, int):
        return inside[formula]
    if isinstance(formula, Not):
        return ~_holds(formula.of, inside)
    left, right = _holds(formula.left, inside), _holds(formula.right, inside)
    return left & right if isinstance(formula, Both) else left | right
