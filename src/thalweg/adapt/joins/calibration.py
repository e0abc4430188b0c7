"""The cost of cache operations on this machine, measured once per process on synthetic data."""

from __future__ import annotations

from functools import lru_cache
from time import perf_counter

import numpy as np

from thalweg.adapt.operation_costs import JoinCosts
from thalweg.exec.joins.cache.join_cache import Kept
from thalweg.exec.leaves.row_combinations import Combinations
from thalweg.plan.pipeline import Pipeline, Subresult
from thalweg.store import native

_KEYS = 1 << 14
_REPEATS = 3


@lru_cache
def calibrated() -> JoinCosts:
    lookup, made, found, update = (
        min(take() for _ in range(_REPEATS)) for take in (_lookup, _made, _found, _update)
    )
    return JoinCosts(lookup, made, lookup, found, update)


def _made_up(keys: int) -> Combinations:
    rng = np.random.default_rng(1)
    hashes = rng.integers(0, 1 << 63, keys).astype(np.uint64)
    none, places = np.zeros(keys, np.int64), np.zeros(keys, np.int8)
    ends = np.full(keys, 1 << 60, np.int64)
    references = {0: none, 1: none}
    seconds = np.zeros(keys, np.uint64)
    return Combinations(hashes, seconds, none, ends, places, places, references, none).sorted()


def _lookup() -> float:
    part = _made_up(_KEYS)
    asked = np.random.default_rng(2).permutation(part.hashes)
    low, high = np.full(_KEYS, -1, np.int64), np.ones(_KEYS, np.int64)
    begun = perf_counter()
    order = np.argsort(asked)
    native.match_ranges(asked[order], low, high, part.hashes, part.starts)
    return (perf_counter() - begun) / _KEYS


def _made() -> float:
    """Fetch the rows of matches, and copy what was joined before."""
    columns = [np.zeros(_KEYS) for _ in range(6)]
    count = np.ones(_KEYS, np.int64)
    begun = perf_counter()
    which, rows = native.expand_ranges(np.arange(_KEYS), count, _KEYS)
    for column in columns[:3]:
        column[rows]
    for column in columns[3:]:
        column[which]
    return (perf_counter() - begun) / _KEYS


def _found() -> float:
    part = _made_up(_KEYS)
    columns = [np.zeros(_KEYS) for _ in range(4)]
    rows = np.random.default_rng(3).permutation(_KEYS)
    begun = perf_counter()
    alive = (part.ends[rows] > 0) & (part.starts[rows] < 1) & (part.seconds[rows] == 0)
    for column in columns:
        column[rows[np.flatnonzero(alive)]]
    return (perf_counter() - begun) / _KEYS


def _update() -> float:
    kept = Kept(Subresult((0, 1), ("k",), (), Pipeline(-1, ()), False, 2 * _KEYS, 1 << 30), 0)
    part = _made_up(_KEYS)
    kept.create(part.hashes, part.seconds, part)
    begun = perf_counter()
    kept.insert(part)
    kept.settle(1)
    return (perf_counter() - begun) / _KEYS
