"""Which of the objects follow each other: those whose mean distance over ten minutes is below a
kilometre, asked every ten seconds of all pairs, as the original prints it.

The mean of a distance is not that of samples: over models it has a closed form, over tuples it is
the mean of their distances. Tuples are joined twice: every tuple with those of the last ten
seconds, as the original does, and with the newest of every other object only, which is cheaper.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from common.harness import Report
from models.aircraft import ABSENT, positions, shared_data
from models.moving_objects import BOUND, moving_objects
from models.timed_runs import Stream, ran, turns
from models.trades import SECOND

LEAST = 10.0
NEAR = 1_000
DISTANCE = "sqrt(pow(a.x - b.x, 2) + pow(a.y - b.y, 2))"
OVER = "[RANGE {w} SECONDS SLIDE 10 SECONDS]"
AIRCRAFT_BOUND = 100.0
BASES = {
    "every tuple of 10 s": "[RANGE 10 SECONDS]",
    "the newest of each": "[PARTITION BY id ROWS 1]",
}


def goal(data: str, base: str) -> str:
    return f"following, {data}: times our tuple engine joining {base}"


def declare(report: Report) -> None:
    for data in ("generated", "aircraft"):
        for base in BASES:
            report.declare(goal(data, base), at_least=LEAST)


def over_models(within: float, window: int, every: int) -> str:
    fit = (
        f"MODEL (FIT x DEGREE 1 WITHIN {within} EVERY {every} SECONDS, FIT y DEGREE 1 WITHIN "
        f"{within}) FOR {every} SECONDS"
    )
    pairs = f"FROM o AS a {fit} JOIN o AS b {fit} ON a.id < b.id"
    return _asked(f"SELECT a.id AS i, b.id AS j, {DISTANCE} AS d {pairs}", window)


def over_tuples(base: str, window: int) -> str:
    pairs = f"FROM o {base} AS a JOIN o {base} AS b ON a.id < b.id"
    return _asked(f"SELECT ISTREAM a.id AS i, b.id AS j, {DISTANCE} AS d {pairs}", window)


def _asked(pairs: str, window: int) -> str:
    over = OVER.format(w=window)
    return (
        f"SELECT RSTREAM i, j, avg(d) AS d FROM ({pairs}) {over} AS p GROUP BY i, j "
        f"HAVING avg(d) < {NEAR}"
    )


def generated(steps: int) -> pa.Table:
    """Twenty objects, a tuple of each every second, new velocities every 200 s."""
    return moving_objects(20, steps, SECOND, 200, following=4)


def some_aircraft(folder: Path, minutes: int) -> pa.Table:
    """Those of the busiest minutes of the day."""
    table = positions(folder)
    ts = table["ts"].cast(pa.int64()).to_numpy()
    middle = int(sorted(ts)[len(ts) // 2])
    half = minutes * 30 * SECOND
    near = pc.and_(
        pc.greater_equal(table["ts"].cast(pa.int64()), middle - half),
        pc.less(table["ts"].cast(pa.int64()), middle + half),
    )
    return table.filter(near).combine_chunks()


def run(report: Report, quick: bool) -> None:
    repeats = 1 if quick else 2
    window = 60 if quick else 600
    _compare(report, "generated", generated(1_200 if quick else 2_400), BOUND, window, 60, repeats)
    folder = shared_data()
    if folder is None:
        for base in BASES:
            report.measure(goal("aircraft", base), None, ABSENT)
        return
    table = some_aircraft(folder, 10 if quick else 40)
    _compare(report, "aircraft", table, AIRCRAFT_BOUND, window, 60, repeats)


def _compare(
    report: Report, data: str, table: pa.Table, within: float, window: int, every: int,
    repeats: int,
) -> None:  # fmt: skip
    tuples = table.num_rows
    report.progress(f"following, {data}, {tuples:,} tuples")
    streams = {"o": Stream(table, ("id",))}
    ways = {base: lambda b=b: ran(over_tuples(b, window), streams, 2) for base, b in BASES.items()}
    model = over_models(within, window, every)
    found = turns({"models": lambda: ran(model, streams, 2), **ways}, repeats)
    case = f"following, {data}, window {window} s"
    for name, timed in found.items():
        system = "thalweg, models" if name == "models" else f"thalweg, {name}"
        report.row(case, system, "tuples/s per core", "M/s", timed.rate(tuples))
        report.row(case, system, "spread", "±%", timed.spread)
        report.row(case, system, "rows emitted", "", timed.rows)
    counts = found["models"].counts
    report.row(case, "thalweg, models", "tuples per piece", "",
               counts["tuples modeled"] / counts["pieces fitted"])  # fmt: skip
    for name in ("roots integrated", "equations solved"):
        report.row(case, "thalweg, models", name, "", counts.get(name, 0))
    for base in BASES:
        report.ratio(goal(data, base), found[base].seconds, found["models"].seconds)
