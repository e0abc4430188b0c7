"""Free lines are the fewest that do."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from plain_fitting import FITS_ONE, Interval, all_within

from thalweg.models.fitting.contract import Fit
from thalweg.models.fitting.hull import hull
from thalweg.models.fitting.mid_range import mid_range
from thalweg.models.fitting.pieces import fitted
from thalweg.models.fitting.swing import swing
from thalweg.models.polynomials import SECOND, Floats

DATA = Path(os.environ.get("THALWEG_SHARED_DATA", Path(__file__).parents[4] / "shared/data"))
ADSB = DATA / "adsb/switzerland.parquet"
LONG = 1 << 50


def fewest(ts: list[int], points: list[Interval]) -> int:
    """The fewest lines, over all ways to cut the points."""
    best = [0]
    for end in range(1, len(points) + 1):
        fits = (best[b] + 1 for b in range(end)
                if FITS_ONE["hull"](list(zip(ts[b:end], points[b:end], strict=True))))  # fmt: skip
        best.append(min(fits))
    return best[-1]


@pytest.mark.parametrize("seed", range(150))
def test_no_way_to_cut_needs_fewer_lines(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 22))
    ts = np.cumsum(rng.integers(1, 3 * SECOND, n))
    values = np.cumsum(rng.normal(size=n)) if seed % 2 else rng.normal(size=n)
    within = float(rng.choice([0.05, 0.3, 0.8, 2.0]))
    pieces = fitted(np.zeros(n, np.int64), ts, values[:, np.newaxis], [Fit(1, within)], LONG)
    points = [(v - within, v, v + within) for v in values.tolist()]
    assert len(pieces) == fewest(ts.tolist(), points)


@pytest.mark.parametrize("method", ["swing", "hull", "mid-range"])
@pytest.mark.parametrize("seed", range(60))
def test_a_method_alone_ends_where_nothing_fits(method: str, seed: int) -> None:
    """Without the check of rounding, which would also end what should have ended before."""
    rng = np.random.default_rng(seed)
    ts, v = np.cumsum(rng.integers(1, 3 * SECOND, 30)), np.cumsum(rng.normal(size=30))
    c, start = np.zeros(2), ts[0]
    end = {
        "swing": lambda: swing(ts, v, v, v, 1.5, 0, 30, start, c),
        "hull": lambda: hull(ts, v, v, v, 1.5, 0, 30, start, c, np.empty((4, 30))),
        "mid-range": lambda: mid_range(v, v, 1.5, 0, 30, c),
    }[method]()
    points = [(int(t), (x - 1.5, x, x + 1.5)) for t, x in zip(ts, v.tolist(), strict=True)]
    assert end > 1
    assert FITS_ONE[method](points[:end])
    assert end == 30 or not FITS_ONE[method](points[: end + 1])


@pytest.mark.parametrize("within", [1.0, 10.0, 50.0])
def test_two_ways_to_the_longest_line(within: float) -> None:
    """Exchanges of points, for any degree, end the pieces of a line where hulls do."""
    rng = np.random.default_rng(3)
    n = 100_000
    ts, values = np.cumsum(rng.integers(1, 2000, n)), np.cumsum(rng.normal(size=n))[:, np.newaxis]
    key = np.zeros(n, np.int64)
    hulls, squares = (
        fitted(key, ts, values, [Fit(1, within, False, m)], LONG) for m in ("hull", "least squares")
    )
    assert hulls.start.tolist() == squares.start.tolist()


def latitudes() -> tuple[np.ndarray, np.ndarray, Floats]:
    if not ADSB.exists():
        pytest.skip("the shared ADS-B data is not here")
    table = pq.read_table(ADSB, columns=["icao24", "timestamp", "latitude"])
    table = table.append_column(
        "key", pc.dictionary_encode(table["icao24"].combine_chunks()).indices
    )
    table = table.sort_by([("key", "ascending"), ("timestamp", "ascending")])
    key, ts, latitude = (
        table[c].combine_chunks().cast(t, safe=False).to_numpy(zero_copy_only=False)
        for c, t in (("key", pa.int64()), ("timestamp", pa.int64()), ("latitude", pa.float64()))
    )
    return key, ts, latitude[:, np.newaxis]


def test_fewer_pieces_than_swinging_lines_for_aircraft() -> None:
    key, ts, latitude = latitudes()
    counts = {}
    for method in ("hull", "swing"):
        fits = [Fit(1, 1e-3, False, method)]
        pieces = fitted(key, ts, latitude, fits, LONG)
        counted = np.append((key[1:] != key[:-1]) | (ts[1:] != ts[:-1]), True)
        assert all_within(pieces, key, ts, latitude, fits, counted & np.isfinite(latitude[:, 0]))
        counts[method] = len(pieces)
    assert counts["hull"] <= 0.87 * counts["swing"], counts
