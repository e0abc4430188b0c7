"""Tuples per second and core of the fitters and of validation, each from arrays to pieces.

A random walk of one key, a tuple a millisecond, in cells of a minute. Rates depend on how many
tuples share a piece, so each method is measured at bounds that give long and short ones, and the
real positions of aircraft show what sparse data costs. Process time, median of some runs after one
that compiles; the spread is half of what lies between the fastest and the slowest.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from common.harness import Report
from thalweg.instants import Ints
from thalweg.models.fitting.contract import Fit
from thalweg.models.fitting.pieces import fitted
from thalweg.models.polynomials import Floats
from thalweg.models.validation import Bound, no_segments, validated

MINUTE = 60_000_000
TUPLES, QUICK = 4_000_000, 400_000
REPEATS = 5
LONG, SHORT = 10.0, 1.0
"""Bounds, in steps of the walk: lines of about 290 tuples or of 6."""


@dataclass(frozen=True)
class Tuples:
    key: Ints
    ts: Ints
    values: Floats


@dataclass(frozen=True)
class Rate:
    """What one case did; `pieces` are the segments begun where nothing is fitted."""

    tuples: int
    pieces: int
    seconds: float
    spread: float

    @property
    def rate(self) -> float:
        return self.tuples / self.seconds / 1e6


@dataclass(frozen=True)
class Case:
    name: str
    fit: Fit | None
    """None: validation of lines."""
    within: float
    goal: float | None = None


def _case(name: str, degree: int, method: str, within: float, goal: float | None = None) -> Case:
    return Case(name, Fit(degree, within, False, method), within, goal)


CASES = (
    Case("validate, long segments", None, 30.0, 50.0),
    Case("validate, short segments", None, 3.0),
    _case("swing, long pieces", 1, "swing", LONG, 150.0),
    _case("swing, short pieces", 1, "swing", SHORT),
    _case("hull, long pieces", 1, "hull", LONG, 30.0),
    _case("hull, short pieces", 1, "hull", SHORT),
    _case("mid-range, long pieces", 0, "mid-range", LONG),
    _case("mid-range, short pieces", 0, "mid-range", SHORT),
    _case("least squares 2, long pieces", 2, "least squares", LONG),
    _case("least squares 2, short pieces", 2, "least squares", SHORT),
)


def declare(report: Report) -> None:
    for case in CASES:
        if case.goal is not None:
            report.declare(f"{case.name}: M tuples/s", at_least=case.goal, unit="M/s")


def run(report: Report, quick: bool = False, folder: Path | None = None) -> None:
    """Measure everything; `folder` holds the shared data, without it aircraft are left out."""
    walk = random_walk(QUICK if quick else TUPLES)
    for case in CASES:
        report.progress(case.name)
        found = measure(case, walk)
        _rows(report, case.name, found)
        if case.goal is not None:
            report.measure(f"{case.name}: M tuples/s", found.rate)
    tuples = aircraft(folder) if folder else None
    if tuples is None:
        report.progress("aircraft: skipped, the shared data is not here")
        return
    for name, degree, method in (("swing", 1, "swing"), ("hull", 1, "hull"),
                                 ("least squares 2", 2, "least squares")):  # fmt: skip
        report.progress(f"aircraft: {name}")
        _rows(report, f"aircraft, {name}", measure(_case(name, degree, method, 1e-3), tuples))


def _rows(report: Report, name: str, found: Rate) -> None:
    report.row(name, "thalweg", "tuples/s per core", "M/s", found.rate)
    report.row(name, "thalweg", "spread", "±%", found.spread)
    report.row(name, "thalweg", "tuples per piece", "", found.tuples / found.pieces)


def measure(case: Case, tuples: Tuples, repeats: int = REPEATS) -> Rate:
    """The median of some runs after a first."""
    call = _fits(case.fit, tuples) if case.fit is not None else _validates(case.within, tuples)
    pieces = call()
    times = []
    for _ in range(repeats):
        begun = time.process_time()
        call()
        times.append(time.process_time() - begun)
    middle = statistics.median(times)
    spread = 100 * (max(times) - min(times)) / 2 / middle
    return Rate(len(tuples.ts), pieces, middle, spread)


def _fits(fit: Fit, tuples: Tuples) -> Callable[[], int]:
    return lambda: len(fitted(tuples.key, tuples.ts, tuples.values, [fit], MINUTE))


def _validates(within: float, tuples: Tuples) -> Callable[[], int]:
    """Lines that begin at a tuple with the slope there; nothing else changes."""
    slope = np.zeros(len(tuples.ts))
    coefficients = [np.stack([tuples.values[:, 0], slope], axis=1)]
    content = np.zeros(len(tuples.ts), np.int64)
    keys = int(np.count_nonzero(np.diff(tuples.key))) + 1
    return lambda: int(np.count_nonzero(validated(
        tuples.key, tuples.ts, tuples.values, coefficients, content, [Bound(within)], None,
        no_segments(keys, [1]),
    ).begins))  # fmt: skip


def random_walk(n: int, seed: int = 0) -> Tuples:
    rng = np.random.default_rng(seed)
    ts = np.cumsum(rng.integers(1, 2000, n))
    return Tuples(np.zeros(n, np.int64), ts, np.cumsum(rng.normal(size=n))[:, np.newaxis])


def aircraft(folder: Path) -> Tuples | None:
    """Latitudes by aircraft and time, or None where the data is not here."""
    path = folder / "adsb/switzerland.parquet"
    if not path.exists():
        return None
    table = pq.read_table(path, columns=["icao24", "timestamp", "latitude"])
    codes = pc.dictionary_encode(table["icao24"].combine_chunks()).indices
    table = table.append_column("key", codes.cast(pa.int64()))
    table = table.sort_by([("key", "ascending"), ("timestamp", "ascending")])
    ts = table["timestamp"].cast(pa.timestamp("us")).cast(pa.int64())
    latitude = table["latitude"].to_numpy()[:, np.newaxis]
    return Tuples(table["key"].to_numpy(), ts.to_numpy(), latitude)
