"""Estimates from samples: the join of samples, scaled by the chance to keep a result."""

from __future__ import annotations

import numpy as np

from thalweg.estimate.exact_count import ExactCounts
from thalweg.estimate.figure import UNKNOWN, Figure, Kind
from thalweg.estimate.join_rows import JoinRows
from thalweg.estimate.reduction import replace_passing
from thalweg.instants import Ints
from thalweg.store import native


def bernoulli(rows: JoinRows, share: float, seed: int = 0) -> Figure:
    """Each row is kept with probability `share`, independently: the size of the join of samples
    times |R_j| / |sample_j| for each input."""
    rng = np.random.default_rng(seed)
    kept = [np.flatnonzero(rng.random(rows.size(i)) < share) for i in _all(rows)]
    scale = 1.0
    for i, sample in enumerate(kept):
        if not len(sample):
            return Figure(0, Kind.ESTIMATE)
        scale *= rows.size(i) / len(sample)
    return _scaled(_sampled(rows, kept), scale)


def correlated(rows: JoinRows, share: float, seed: int = 0) -> Figure:
    """A row is kept iff the hash of *every* of its join keys lies in a part of `share`; a result is
    kept iff all n keys of it do, so the join of samples is scaled by share^-n.

    The variant that keeps rows with *any* key in the part has no such factor: samples of several
    relations share hashes, and whether they keep a result depends on all of them together.
    """
    kept = []
    for i in _all(rows):
        inside = np.ones(rows.size(i), np.bool_)
        for a in rows.graph.edges[i]:
            inside &= hashed_fractions(rows, i, a, seed) < share
        kept.append(np.flatnonzero(inside))
    return _scaled(_sampled(rows, kept), share ** -len(rows.graph.attributes))


def hashed_fractions(rows: JoinRows, one: int, attribute: str, seed: int) -> np.ndarray:
    """Per row a number in [0, 1) made of its key: the same for equal keys of all inputs, and
    independent between attributes."""
    number = rows.graph.attributes.index(attribute) + 1
    salt = np.uint64((seed * 0x9E3779B97F4A7C15 + number * 0xD6E8FEB86659FD93) % 2**64)
    mixed = native.mix(rows.hashes(one, attribute) ^ salt)
    fractions: np.ndarray = mixed.astype(np.float64) / 2.0**64
    return fractions


def _all(rows: JoinRows) -> range:
    return range(len(rows.graph.edges))


def _sampled(rows: JoinRows, kept: list[Ints]) -> Figure | None:
    passing = tuple(
        sample if before is None else before[sample]
        for sample, before in zip(kept, rows.passing, strict=True)
    )
    return ExactCounts(replace_passing(rows, passing)).count(rows.graph.whole)


def _scaled(found: Figure | None, scale: float) -> Figure:
    """Samples of cyclic joins are not joined here."""
    if found is None or found.rows is None:
        return UNKNOWN
    return Figure.of(round(found.rows * scale), Kind.ESTIMATE)
