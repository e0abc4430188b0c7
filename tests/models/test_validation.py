"""Tuples against the models in force: against the obvious loop, and each reason by an example."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import Any

import numpy as np
import pytest

from thalweg.models.polynomials import SECOND, value
from thalweg.models.validation import Bound, Segments, Validated, no_segments, validated

S = SECOND
NAN = float("nan")


def line(
    points: list[tuple[float, float, float]], within: float | None = 1.0,
    horizon: int | None = None, content: list[int] | None = None, relative: bool = False,
) -> Validated:  # fmt: skip
    """One key and attribute; points as (seconds, value, slope of the tuple's own model)."""
    n = len(points)
    t, v, slope = (np.array(c, float) for c in zip(*points, strict=True))
    return validated(
        np.zeros(n, np.int64), (t * S).astype(np.int64), v[:, np.newaxis],
        [np.stack([v, slope], axis=1)], np.array(content or [0] * n), [Bound(within, relative)],
        None if horizon is None else horizon * S, no_segments(1, [1]),
    )  # fmt: skip


def counts(found: Validated) -> tuple[int, int, int, int]:
    return found.absorbed, found.violations, found.expirations, found.changes


def test_a_tuple_within_the_bound_is_absorbed() -> None:
    """Up to the bound itself (pulse #21)."""
    found = line([(0, 5, 2), (1, 7, 9), (2, 10, 9), (3, 12.5, 0), (4, 12.5, 0)])
    assert found.begins.tolist() == [True, False, False, True, False]
    assert counts(found) == (3, 1, 0, 0)


def test_a_tuple_behind_the_horizon_begins_anew() -> None:
    found = line([(0, 5, 0), (9, 5, 0), (10, 5, 0), (19, 9, 0), (29, 5, 0)], horizon=10)
    assert found.begins.tolist() == [True, False, True, True, True]
    assert counts(found) == (1, 1, 2, 0)
    assert found.current.until.tolist() == [39 * S]


def test_a_changed_content_begins_anew() -> None:
    found = line([(0, 5, 0), (1, 5, 0), (2, 5, 0), (3, 99, 0)], content=[1, 2, 2, 3])
    assert found.begins.tolist() == [True, True, False, True]
    assert counts(found) == (1, 0, 0, 2)


@pytest.mark.parametrize("missing", [(1, NAN, 0), (1, 5, NAN), (1, float("inf"), 0)])
def test_a_null_ends_the_segment(missing: tuple[float, float, float]) -> None:
    found = line([(0, 5, 0), missing, (2, 5, 0), (3, 5, 0)])
    assert found.begins.tolist() == [True, False, True, False]
    assert found.ends.tolist() == [False, True, False, False]
    assert counts(found) == (1, 0, 0, 0)
    assert not line([(0, 5, 0), missing]).current.alive[0]


def test_relative_bounds_are_of_the_value() -> None:
    found = line([(0, 100, 0), (1, 110, 0), (2, 112, 0), (3, 0, 0)], 10.0, relative=True)
    assert found.begins.tolist() == [True, False, True, True]


def test_within_zero_absorbs_exact_tuples_only() -> None:
    found = line([(0, 5, 1), (1, 6, 0), (2, np.nextafter(7, 8), 0)], 0.0)
    assert found.begins.tolist() == [True, False, True]


def test_without_a_bound_everything_is_absorbed() -> None:
    assert line([(0, 5, 1), (1, 99, 0)], None).begins.tolist() == [True, False]


def test_no_tuples() -> None:
    none = np.empty(0, np.int64)
    found = validated(none, none, np.empty((0, 1)), [np.empty((0, 2))], none, [Bound(1.0)], None,
                      no_segments(0, [1]))  # fmt: skip
    assert (len(found.begins), found.absorbed) == (0, 0)


@pytest.mark.parametrize("within", [-1.0, NAN, float("inf")])
def test_bounds_that_are_none(within: float) -> None:
    with pytest.raises(ValueError, match="bound"):
        line([(0, 5, 0)], within)


@dataclass
class InForce:
    reference: int
    until: float
    content: int
    coefficients: list[np.ndarray]


def plainly(
    key: Any, ts: Any, values: Any, coefficients: Any, content: Any, bounds: Any, horizon: Any
) -> tuple[list[bool], list[bool], tuple[int, int, int, int]]:
    """The obvious loop."""
    state: dict[int, InForce] = {}
    begins, ends = [], []
    absorbed = violations = expirations = changes = 0
    for i in range(len(key)):
        k = int(key[i])
        own = [c[i] for c in coefficients]
        whole = all(map(isfinite, values[i])) and all(isfinite(x) for c in own for x in c)
        begin = False
        if not whole:
            state.pop(k, None)
        elif k not in state:
            begin = True
        else:
            now = state[k]
            x = np.array([(ts[i] - now.reference) / S])
            near = True
            for a, b in enumerate(bounds):
                if b.within is not None:
                    v = values[i, a]
                    e = abs(v) * (b.within / 100) if b.relative else b.within
                    near &= bool(abs(v - value(now.coefficients[a][np.newaxis], x)[0]) <= e)
            if ts[i] >= now.until:
                expirations, begin = expirations + 1, True
            elif content[i] != now.content:
                changes, begin = changes + 1, True
            elif not near:
                violations, begin = violations + 1, True
            else:
                absorbed += 1
        if begin:
            until = float("inf") if horizon is None else ts[i] + horizon
            state[k] = InForce(int(ts[i]), until, int(content[i]), own)
        begins.append(begin)
        ends.append(not whole)
    return begins, ends, (absorbed, violations, expirations, changes)


@pytest.mark.parametrize("seed", range(80))
def test_random_tuples_against_the_obvious_loop(seed: int) -> None:
    """In one batch, and in two with the segments in force between them."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(1, 400)), 1 + seed % 3
    ts = np.sort(rng.integers(0, 60 * S, n) // (S // 8) * (S // 8))
    key = np.sort(rng.integers(0, 5, n))
    ts = ts[np.lexsort((ts, key))]
    values = np.cumsum(rng.normal(size=(n, m)), axis=0)
    degrees = [1] if seed % 2 and m == 1 else rng.integers(0, 4, m).tolist()
    coefficients = [
        np.column_stack([values[:, a], rng.normal(size=(n, d)) / 10]) for a, d in enumerate(degrees)
    ]
    if seed % 4 == 0:
        values[rng.random(n) < 0.05, 0] = NAN
        coefficients[-1][rng.random(n) < 0.05, -1] = np.inf
    content = np.cumsum(rng.random(n) < 0.1) * (seed % 2)
    bounds = [Bound(3.0), Bound(50.0, True), Bound(None), Bound(0.0), Bound(2.0)]
    bounds = [bounds[int(i)] for i in rng.integers(0, 5, m)]
    horizon = [None, 4 * S][seed % 2]
    found = validated(
        key, ts, values, coefficients, content, bounds, horizon, no_segments(len(set(key)), degrees)
    )
    begins, ends, expected = plainly(key, ts, values, coefficients, content, bounds, horizon)
    assert found.begins.tolist() == begins
    assert found.ends.tolist() == ends
    assert counts(found) == expected
    _assert_cut_anywhere(key, ts, values, coefficients, content, bounds, horizon, degrees, found)


def _arrays(segments: Segments) -> list[np.ndarray]:
    return [segments.alive, segments.reference, segments.until, segments.content,
            *segments.coefficients]  # fmt: skip


def _of(segments: Segments, keys: np.ndarray) -> Segments:
    alive, reference, until, content, *coefficients = (a[keys] for a in _arrays(segments))
    return Segments(alive, reference, until, content, tuple(coefficients))


def _assert_cut_anywhere(
    key: Any, ts: Any, values: Any, coefficients: Any, content: Any, bounds: Any, horizon: Any,
    degrees: Any, whole: Validated,
) -> None:  # fmt: skip
    early = ts < 30 * S
    state = no_segments(int(key.max()) + 1, degrees)
    begins = np.zeros(len(ts), np.bool_)
    total = np.zeros(4, int)
    for part in (early, ~early):
        present = np.unique(key[part])
        before = _of(state, present)
        held = [c.copy() for c in before.coefficients]
        found = validated(key[part], ts[part], values[part], [c[part] for c in coefficients],
                          content[part], bounds, horizon, before)  # fmt: skip
        assert all(np.array_equal(a, b) for a, b in zip(held, before.coefficients, strict=True))
        begins[part] = found.begins
        total += counts(found)
        for to, own in zip(_arrays(state), _arrays(found.current), strict=True):
            to[present] = own
    assert begins.tolist() == whole.begins.tolist()
    assert tuple(total) == counts(whole)
