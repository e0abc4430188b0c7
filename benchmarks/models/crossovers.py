"""From how many tuples per segment on models are cheaper than tuples: a filter, an extreme, a join.

Objects move in lines of 1 to some thousand tuples; both sides read the same packs. Filter and join
hold tuples against MODEL (x = x + vx*t) within a bound of a tenth of a thousandth of the range; the
extreme is over fitted lines. Where models never
get ahead, the crossover is said to be never. Then the same join over more tuples of the same lines,
and the same extreme over longer windows: what ours solves must not grow.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from common.harness import Report
from models.moving_objects import BOUND, SIDE, moving_objects
from models.timed_runs import Ran, Stream, Timed, ran, turns
from models.trades import SECOND

ORDER = "order of crossovers: join, aggregate, filter (1: so it is)"
FLAT = 1.5
MODEL = "MODEL (x = x + vx*t, y = y + vy*t)"
ERRORS = f"ERROR x WITHIN {BOUND}, y WITHIN {BOUND}"
FIT = f"MODEL (FIT x DEGREE 1 WITHIN {BOUND} EVERY 10 SECONDS)"
SEGMENTS = (1, 5, 20, 50, 100, 200, 500, 1_000, 2_000)
QUICK_SEGMENTS = (1, 5, 20, 100, 1_000)
WINDOWS = (10, 30, 60, 100)
E2_WINDOWS = (10, 60, 100)
RATES = (10, 30, 100, 300)
"""Tuples of an object a second."""


@dataclass(frozen=True)
class Case:
    """One question, over tuples and over models, and what the original found."""

    name: str
    tuples: str
    models: str
    source: float
    objects: int
    steps: int
    step: int
    ours_source: str = ""

    def table(self, tuples_a_segment: int, quick: bool) -> pa.Table:
        steps = self.steps // 4 if quick else self.steps
        return moving_objects(self.objects, steps, self.step, tuples_a_segment)


def _min(window: int, slide: str) -> tuple[str, str]:
    kind = "RSTREAM" if slide else "ISTREAM"
    over = f"[RANGE {window} SECONDS{slide}]"
    return (
        f"SELECT {kind} min(x) AS m FROM o {over}",
        f"SELECT {kind} min(x) AS m FROM o {over} {FIT}",
    )


_PAIRS = "a.x < b.x AND a.y < b.y AND a.id <> b.id"
_JOIN = (
    f"SELECT ISTREAM a.id AS i, b.id AS j FROM o [RANGE 100 MILLISECONDS] AS a "
    f"JOIN o [RANGE 100 MILLISECONDS] AS b ON {_PAIRS}",
    f"SELECT ISTREAM a.id AS i, b.id AS j FROM o AS a {MODEL} JOIN o AS b {MODEL} ON {_PAIRS} "
    f"ERROR a.x WITHIN {BOUND}, a.y WITHIN {BOUND}, b.x WITHIN {BOUND}, b.y WITHIN {BOUND}",
)
HALF = SIDE / 2


def _windowed(window: int, slide: bool) -> Case:
    """E2: where the window slides, a tuple is in half as many windows as it has seconds."""
    how = "answers every 2 s" if slide else "every instant"
    texts = _min(window, " SLIDE 2 SECONDS" if slide else "")
    return Case(f"E2 min, window {window} s, {how}", *texts, 150, 20, 20_000, 10_000)


CASES = (
    Case("E1 filter", f"SELECT ISTREAM id, x FROM o WHERE x < {HALF}",
         f"SELECT id FROM o {MODEL} WHERE x < {HALF} {ERRORS}", 1050, 100, 4_000, 100_000),
    *(_windowed(w, slide) for slide in (False, True) for w in E2_WINDOWS),
    Case("E4 join, window 0.1 s", *_JOIN, 1.45, 10, 4_000, 10_000),
)  # fmt: skip
ORDERED = ("E4 join, window 0.1 s", "E2 min, window 60 s, every instant", "E1 filter")


def flat(what: str) -> str:
    return f"{what}: most, times least"


E3 = "E3 min, ours, windows of 10 to 100 s, time"
E3_COUNT = "E3 min, ours, windows of 10 to 100 s, pieces"
E5 = "E5 join, ours, 10 to 300 tuples a second of each object, time beyond reading"
E5_COUNT = "E5 join, ours, 10 to 300 tuples a second of each object, equations"


def declare(report: Report) -> None:
    report.declare(ORDER, at_least=1, unit="")
    for name in (E3, E3_COUNT, E5, E5_COUNT):
        report.declare(flat(name), at_most=FLAT)


def run(report: Report, quick: bool) -> None:
    found = {case.name: _crossover(report, case, quick) for case in CASES}
    join, aggregate, filtered = (found[name] for name in ORDERED)
    report.measure(ORDER, float(join < aggregate < filtered or join < aggregate == filtered))
    _windows(report, quick)
    _rates(report, quick)


def _crossover(report: Report, case: Case, quick: bool) -> float:
    curve: list[tuple[int, float]] = []
    for count in QUICK_SEGMENTS if quick else SEGMENTS:
        report.progress(f"{case.name}: {count:,} tuples a segment")
        table = case.table(count, quick)
        streams = {"o": Stream(table, ("id",))}
        ways = {"tuples": _once(case.tuples, streams), "models": _once(case.models, streams)}
        timed = turns(ways, 1 if quick else 2)
        for name, one in timed.items():
            label = f"{case.name}, {count:,} tuples a segment"
            report.row(label, f"thalweg, {name}", "tuples/s per core", "M/s",
                       one.rate(table.num_rows))  # fmt: skip
            report.row(label, f"thalweg, {name}", "spread", "±%", one.spread)
        curve.append((count, timed["tuples"].seconds / timed["models"].seconds))
    at = crossover(curve)
    shown = None if math.isinf(at) else at
    report.row(case.name, "thalweg", "crossover (none: never)", "tuples a segment", shown)
    report.row(case.name, "the source", "crossover (none: never)", "tuples a segment", case.source,
               "seed")  # fmt: skip
    report.row(case.name, "thalweg", "models, times tuples, at most", "x", max(g for _, g in curve))
    return at


def crossover(curve: Sequence[tuple[int, float]]) -> float:
    """Where the gain of models reaches 1 for good, between two points by logarithms; infinity where
    it never does."""
    behind = [i for i, (_, gain) in enumerate(curve) if gain < 1]
    if not behind:
        return float(curve[0][0])
    last = behind[-1]
    if last == len(curve) - 1:
        return math.inf
    (left, low), (right, high) = curve[last], curve[last + 1]
    share = -math.log(low) / (math.log(high) - math.log(low))
    return math.exp(math.log(left) + share * (math.log(right) - math.log(left)))


def _once(sql: str, streams: Mapping[str, Stream], view: str | None = None) -> Callable[[], Ran]:
    return lambda: ran(sql, streams, 2, view=view)


def _windows(report: Report, quick: bool) -> None:
    """E3: the same objects, windows of 10 to 100 s."""
    table = moving_objects(20, 2_500 if quick else 20_000, 100_000 if quick else 20_000, 200)
    streams = {"o": Stream(table, ("id",))}
    ways = {}
    for window in WINDOWS:
        over_tuples, over_models = _min(window, "")
        ways[f"tuples {window}"] = _once(over_tuples, streams)
        ways[f"models {window}"] = _once(over_models, streams)
    report.progress("E3: windows of 10 to 100 s")
    timed = turns(ways, 2 if quick else 5)
    counts = []
    for window in WINDOWS:
        for side in ("tuples", "models"):
            one = timed[f"{side} {window}"]
            case = f"E3 min, window {window} s"
            report.row(case, f"thalweg, {side}", "time", "ms", 1e3 * one.seconds)
            report.row(case, f"thalweg, {side}", "spread", "±%", one.spread)
        counts.append(one.counts["pieces fitted"] + one.counts.get("equations solved", 0))
        report.row(case, "thalweg, models", "pieces and equations", "", counts[-1])
    _measure_flat(report, E3, [timed[f"models {w}"] for w in WINDOWS], counts, E3_COUNT)


def _rates(report: Report, quick: bool) -> None:
    """E5: the same lines with more tuples to each. What is beyond reading the tuples is measured by
    the time of the same query over segments that are given."""
    view = f"CREATE VIEW lines RETAIN 1 DAY AS SELECT id, x, y FROM o {_both()}"
    counts, given = [], []
    for rate in RATES:
        report.progress(f"E5: {rate} tuples a second of each object")
        seconds = 30
        table = moving_objects(10, seconds * rate, SECOND // rate, rate * 10)
        streams = {"o": Stream(table, ("id",))}
        tuples, models = _JOIN
        over_view = (
            f"SELECT ISTREAM a.id AS i, b.id AS j FROM lines AS a JOIN lines AS b ON {_PAIRS}"
        )
        ways = {"models": _once(models, streams),
                "segments given": _once(over_view, streams, view)}  # fmt: skip
        if rate <= 100:
            ways["tuples"] = _once(tuples, streams)
        timed = turns(ways, 1 if quick else 2)
        case = f"E5 join, {rate} tuples a second of each of 10 objects"
        for name, one in timed.items():
            cost = 1e3 * one.seconds / seconds
            report.row(case, f"thalweg, {name}", "time per second of stream", "ms", cost)
        counts.append(timed["segments given"].counts.get("equations solved", 0))
        report.row(case, "thalweg, segments given", "equations solved", "", counts[-1])
        given.append(timed["segments given"])
    _measure_flat(report, E5, given, counts, E5_COUNT)


def _both() -> str:
    return f"MODEL (FIT x DEGREE 1 WITHIN {BOUND} EVERY 10 SECONDS, FIT y DEGREE 1 WITHIN {BOUND})"


def _measure_flat(
    report: Report, name: str, timed: Sequence[Timed], counts: Sequence[float], counted: str
) -> None:
    times = [t.seconds for t in timed]
    report.measure(flat(name), max(times) / min(times))
    report.measure(flat(counted), max(counts) / min(counts))
