"""The grid, gaps, nulls, equal stamps and horizons: against the obvious slow fitter."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
from plain_fitting import all_within, plainly_fitted, spans_of

from thalweg.instants import Ints
from thalweg.models.fitting.contract import Fit
from thalweg.models.fitting.pieces import Pieces, fitted
from thalweg.models.polynomials import Floats

S = 1_000_000
CELL = 10 * S
NAN = float("nan")


def pieces(
    points: list[tuple[float, float]], fit: Fit | None = None, continues: bool = False,
    horizon: float = 0,
) -> Pieces:  # fmt: skip
    """Of one key, points as (seconds, value), in cells of ten seconds."""
    ts = np.array([round(t * S) for t, _ in points], np.int64)
    values = np.array([[v] for _, v in points])
    key = np.full(len(points), 7, np.int64)
    fits = [fit or Fit(0, 1.0)]
    return fitted(key, ts, values, fits, CELL, np.array([continues]), round(horizon * S))


def spans(found: Pieces) -> list[tuple[float, float]]:
    return [(a / S, b / S) for a, b in zip(found.start, found.end, strict=True)]


def constants(found: Pieces) -> list[float]:
    return found.coefficients[0][:, 0].tolist()


def test_a_piece_ends_with_its_cell() -> None:
    found = pieces([(3, 5), (9, 5), (12, 5)])
    assert spans(found) == [(3, 10), (10, 20)]
    assert found.reaches.tolist() == [True, True]
    assert found.row.tolist() == [0, 2]
    assert found.tuples.tolist() == [2, 1]


def test_nothing_is_valid_in_a_silent_cell() -> None:
    assert spans(pieces([(3, 5), (22, 5), (31, 5)])) == [(3, 10), (22, 30), (30, 40)]


def test_cells_are_multiples_since_1970_and_before() -> None:
    assert spans(pieces([(-13, 5), (-3, 5), (4, 5)])) == [(-13, -10), (-10, 0), (0, 10)]
    assert spans(pieces([(-20, 5), (-10.000001, 5)])) == [(-20, -10)]


def test_a_key_that_continues_begins_with_its_cell() -> None:
    assert spans(pieces([(13, 5), (15, 9)], continues=True)) == [(10, 15), (15, 20)]
    assert spans(pieces([(13, 5), (15, 9)])) == [(13, 15), (15, 20)]


@pytest.mark.parametrize("method", ["swing", "hull"])
def test_lines_are_told_from_their_start(method: str) -> None:
    """Three points of 3 + 2t, from one second before them."""
    found = pieces([(11, 5), (12, 7), (14, 11)], Fit(1, 0.1, False, method), continues=True)
    assert spans(found) == [(10, 20)]
    assert found.coefficients[0][0] == pytest.approx([3.0, 2.0])


@pytest.mark.parametrize("null", [NAN, float("inf"), -float("inf")])
def test_a_null_ends_the_piece(null: float) -> None:
    found = pieces([(3, 5), (4, null), (6, 5), (13, 5)])
    assert spans(found) == [(3, 4), (6, 10), (10, 20)]
    assert found.reaches.tolist() == [False, True, True]
    assert found.missing == 1
    assert found.conflicts == 0


def test_a_null_at_the_end_of_a_cell_or_the_start_of_the_next() -> None:
    assert spans(pieces([(3, 5), (8, NAN), (13, 5)])) == [(3, 8), (13, 20)]
    assert spans(pieces([(3, 5), (12, NAN), (13, 5)])) == [(3, 10), (13, 20)]
    found = pieces([(12, NAN), (13, 5)], continues=True)
    assert spans(found) == [(13, 20)]
    assert (found.gap_key.tolist(), found.gap_start.tolist()) == ([7], [12 * S])


def test_equal_stamps_are_their_midpoint_within_twice_the_bound() -> None:
    found = pieces([(3, 5), (3, 7), (4, 6)])
    assert constants(found) == [6.0]
    assert found.tuples.tolist() == [3]
    assert found.conflicts == 0


def test_of_equal_stamps_too_far_apart_the_last_counts() -> None:
    found = pieces([(3, 5), (3, 8), (3, 7.5), (4, 7)])
    assert constants(found) == [7.25]
    assert found.tuples.tolist() == [2]
    assert found.row.tolist() == [2]
    assert found.conflicts == 2


def test_a_null_among_equal_stamps() -> None:
    """What is before it in the stream does not count, what is behind begins a piece."""
    found = pieces([(2, 5), (3, 5), (3, NAN), (3, 6)])
    assert spans(found) == [(2, 3), (3, 10)]
    assert found.row.tolist() == [0, 3]
    assert (found.conflicts, found.missing) == (1, 1)
    assert spans(pieces([(2, 5), (3, NAN), (3, 6), (3, NAN)])) == [(2, 3)]


@pytest.mark.parametrize("fit", [Fit(0, 5.0), Fit(0, 50.0, True)])
def test_equal_stamps_of_two_keys_are_two_tuples(fit: Fit) -> None:
    found = fitted(np.array([1, 2]), np.array([3, 3]), np.array([[5.0], [9.0]]), [fit], CELL)
    assert found.key.tolist() == [1, 2]
    assert constants(found) == pytest.approx([5.0, 9.0])


def test_a_horizon_lets_the_last_piece_of_a_cell_live_on() -> None:
    points = [(3, 5), (4, 9), (22, 5), (33, 5)]
    assert spans(pieces(points, horizon=4)) == [(3, 4), (4, 14), (22, 30), (30, 44)]
    assert spans(pieces(points, horizon=40)) == [(3, 4), (4, 22), (22, 30), (30, 80)]
    assert pieces(points, horizon=40).reaches.tolist() == [False, True, True, True]


def test_a_null_ends_what_a_horizon_keeps_alive() -> None:
    points = [(3, 5), (24, NAN), (33, 5), (34, NAN)]
    assert spans(pieces(points, horizon=50)) == [(3, 24), (33, 34)]


def random_batch(seed: int, attributes: int, whole: bool) -> tuple[Ints, Ints, Floats]:
    """Some keys over some cells, with silence, ties, and nulls; values are whole numbers or not."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 150))
    key = np.sort(rng.integers(0, 4, n)) * 11 - 8
    ts = rng.integers(-5 * CELL, 5 * CELL, n) // (S // 4) * (S // 4)
    ts = ts[np.lexsort((ts, key))]
    values = np.cumsum(rng.normal(size=(n, attributes)), axis=0)
    if whole:
        values = np.round(values * 2)
    if seed % 3:
        values[rng.random(n) < 0.06, rng.integers(0, attributes)] = rng.choice([NAN, np.inf])
    return key, ts, values


def kinds(seed: int, attributes: int, methods: tuple[str, ...]) -> list[Fit]:
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(attributes):
        method = str(rng.choice(methods))
        relative = bool(rng.random() < 0.3)
        within = float(rng.choice([20, 60, 130] if relative else [0.5, 1, 3]))
        found.append(Fit(0 if method == "mid-range" else 1, within, relative, method))
    return found


@pytest.mark.parametrize("seed", range(300))
def test_random_batches_against_the_slow_fitter(seed: int) -> None:
    attributes = 1 + seed % 3
    whole = seed % 2 == 0  # constants are exact with whole numbers, so that bounds may be just met
    key, ts, values = random_batch(seed, attributes, whole)
    methods = ("mid-range",) if whole else ("mid-range", "swing", "hull")
    fits = kinds(seed, attributes, methods)
    if whole:
        fits = [Fit(f.degree, 1.5, False, f.method) for f in fits]
    rng = np.random.default_rng(seed + 1000)
    continues = rng.random(len(np.unique(key))) < 0.5
    horizon = int(rng.choice([0, 3 * S, 25 * S]))
    found = fitted(key, ts, values, fits, CELL, continues, horizon)
    slow = plainly_fitted(key, ts, values, fits, CELL, continues.tolist(), horizon)
    assert spans_of(found) == slow.spans
    assert (found.conflicts, found.missing) == (slow.conflicts, slow.missing)
    assert list(zip(found.gap_key.tolist(), found.gap_start.tolist(), strict=True)) == slow.gaps
    assert found.tuples.sum() + found.conflicts + found.missing == len(ts)
    if found.conflicts == 0:
        good = np.isfinite(values).all(axis=1)
        assert all_within(found, key, ts, values, fits, good)


ALL = [Fit(0, 1.0), Fit(1, 1.0, False, "swing"), Fit(1, 1.0), Fit(2, 1.0), Fit(4, 1.0),
       Fit(0, 0.0), Fit(1, 0.0), Fit(1, 30.0, True), Fit(3, 0.0),
       Fit(0, 1.0, False, "least squares")]  # fmt: skip


@pytest.mark.parametrize("fit", ALL, ids=str)
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("horizon", [0, 25 * S])
def test_a_batch_may_be_cut_at_any_cell(fit: Fit, seed: int, horizon: int) -> None:
    """Bit for bit, if each key is said to continue whose last piece reaches the cell, and what a
    horizon keeps alive is clipped by the first piece or gap behind."""
    key, ts, values = random_batch(seed, 1 + seed % 2, seed % 4 == 0)
    fits = [fit] * values.shape[1]
    whole = fitted(key, ts, values, fits, CELL, None, horizon)
    cells = ts // CELL
    for cut in range(int(cells.min()), int(cells.max()) + 2):
        early = cells < cut
        left = fitted(key[early], ts[early], values[early], fits, CELL, None, horizon)
        right = fitted(
            key[~early], ts[~early], values[~early], fits, CELL,
            continued(left, key[~early], ts[~early]), horizon,
        )  # fmt: skip
        assert_same(whole, left, right, early)


def continued(before: Pieces, key: Ints, ts: Ints) -> np.ndarray:
    """Of each key of a batch: whether its last piece so far reaches the cell of its first tuple."""
    first = np.flatnonzero(np.diff(key, prepend=key[0] - 1)) if len(key) else np.empty(0, int)
    edges = (before.start // CELL + 1) * CELL
    reached = set(zip(before.key[before.reaches].tolist(), edges[before.reaches].tolist(),
                      strict=True))  # fmt: skip
    return np.array([(int(key[i]), int(ts[i] // CELL * CELL)) in reached for i in first], np.bool_)


def assert_same(whole: Pieces, left: Pieces, right: Pieces, early: np.ndarray) -> None:
    rows = (np.flatnonzero(early)[left.row], np.flatnonzero(~early)[right.row])
    order = np.lexsort((np.append(left.start, right.start), np.append(left.key, right.key)))
    assert np.concatenate(rows)[order].tolist() == whole.row.tolist()
    gaps = dict(zip(right.gap_key.tolist(), right.gap_start.tolist(), strict=True))
    clipped = [min(e, gaps.get(k, e)) for k, e in zip(left.key.tolist(), left.end, strict=True)]
    ends = np.append(clipped, right.end)[order]
    following = np.append(np.where(np.diff(whole.key) == 0, whole.start[1:], 1 << 60), 1 << 60)
    assert np.minimum(ends, following).tolist() == whole.end.tolist()
    for name in ("key", "start", "tuples", "reaches"):
        both = np.append(getattr(left, name), getattr(right, name))
        assert both[order].tolist() == getattr(whole, name).tolist(), name
    for a, c in enumerate(whole.coefficients):
        both = np.concatenate([left.coefficients[a], right.coefficients[a]])
        assert both[order].tobytes() == c.tobytes()
    assert left.conflicts + right.conflicts == whole.conflicts
    assert left.missing + right.missing == whole.missing


def test_the_parts_of_a_batch_are_its_pieces() -> None:
    """Every array of Pieces has one entry per piece, but the gaps."""
    found = pieces([(3, 5), (12, 5), (33, 9), (34, 2)])
    own = [getattr(found, f.name) for f in fields(Pieces) if not f.name.startswith("gap")]
    assert {len(a) for a in own if isinstance(a, np.ndarray)} == {len(found)}
