"""MACD over dense trades: two averages of prices over windows, joined and compared.

Twice: as it is printed, answers every two seconds, and for every instant, where an answer begins
whenever the shorter average rises above the longer one. Ours over tuples, over models that are
fitted as trades arrive and hold on beyond them (predictive), over lines by the slopes that trades
bring, against which they are held (validated), and over segments that a view has kept (historical).
One core, process CPU time, epochs as they are fed; and once more as the engine cuts them by itself
(32,768 rows an epoch for queries in queries).
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from common.harness import Report
from models.timed_runs import Stream, Timed, ran, turns
from models.trades import BOUND, trades

FIT = f"MODEL (FIT price DEGREE 1 WITHIN {BOUND} EVERY 2 SECONDS)"
AHEAD = f"{FIT} FOR 2 SECONDS"
HELD = "MODEL (price = price + slope*t)"
ERROR = f" ERROR price WITHIN {BOUND}"
VIEW = f"CREATE VIEW segments RETAIN 1 DAY AS SELECT symbol, price FROM trades {FIT}"
SLIDES = " SLIDE 2 SECONDS"
FORMS = {"answers every 2 s": SLIDES, "every instant": ""}
TUPLES_A_SEGMENT = 200
RATE = 10_000
EPOCHS = 4
PREDICTIVE, HISTORICAL = 5.0, 50.0
CURVE = (1, 10, 50, 100, 200, 500, 1_000)
QUICK_CURVE = (10, 100, 1_000)
CURVE_RATE = 1_000


def text(source: str, model: str = "", slide: str = SLIDES, error: str = "") -> str:
    """The query; without a slide its rows are those that begin to hold."""

    def average(seconds: int) -> str:
        window = f"[RANGE {seconds} SECONDS{slide}]"
        return (
            f"(SELECT symbol, avg(price) AS ap FROM {source} {window} {model} "
            f"GROUP BY symbol{error})"
        )

    columns = "S.symbol, S.ap - L.ap AS diff" if slide else "S.symbol"
    return (
        f"SELECT {'RSTREAM' if slide else 'ISTREAM'} {columns} FROM {average(10)} AS S "
        f"JOIN {average(60)} AS L ON S.symbol = L.symbol WHERE S.ap > L.ap"
    )


def goal(kind: str, form: str) -> str:
    return f"MACD, {kind}, {form}: times our tuple engine"


def declare(report: Report) -> None:
    for form in FORMS:
        report.declare(goal("predictive", form), at_least=PREDICTIVE)
        report.declare(goal("historical", form), at_least=HISTORICAL)


def run(report: Report, quick: bool) -> None:
    tuples = 700_000 if quick else 1_500_000
    streams = {"trades": Stream(trades(tuples, TUPLES_A_SEGMENT, rate=RATE), ("symbol",))}
    for form, slide in FORMS.items():
        report.progress(f"MACD, {form}, {tuples:,} trades")
        slow = not slide
        found = measured(streams, slide, 1 if quick and slow else 2 if quick or slow else 5)
        case = f"MACD, {form}, {TUPLES_A_SEGMENT} tuples a segment"
        rows(report, case, found, tuples)
        report.ratio(goal("predictive", form), found["tuples"].seconds, found["predictive"].seconds)
        report.ratio(goal("historical", form), found["tuples"].seconds, found["historical"].seconds)
    report.progress("MACD in epochs as the engine cuts them")
    cut = measured(streams, SLIDES, 1 if quick else 2, epoch_rows=None)
    rows(report, "MACD, answers every 2 s, epochs as the engine cuts them", cut, tuples)
    _curve(report, quick)


def measured(
    streams: Mapping[str, Stream], slide: str, repeats: int, epoch_rows: int | None = 1 << 30
) -> dict[str, Timed]:
    def once(sql: str, view: str | None = None):  # type: ignore[no-untyped-def]
        return lambda: ran(sql, streams, EPOCHS, view=view, epoch_rows=epoch_rows)

    ways = {
        "tuples": once(text("trades", "", slide)),
        "predictive": once(text("trades", AHEAD, slide)),
        "validated": once(text("trades", HELD, slide, ERROR)),
        "historical": once(text("segments", "", slide), VIEW),
    }
    return turns(ways, repeats)


def rows(report: Report, case: str, found: Mapping[str, Timed], tuples: int) -> None:
    for name, timed in found.items():
        system = f"thalweg, {name}"
        report.row(case, system, "tuples/s per core", "M/s", timed.rate(tuples))
        report.row(case, system, "spread", "±%", timed.spread)
        report.row(case, system, "rows emitted", "", timed.rows)
    pieces = found["predictive"].counts.get("pieces fitted", math.nan)
    report.row(case, "thalweg, predictive", "tuples per piece", "", tuples / pieces)


def _curve(report: Report, quick: bool) -> None:
    """Rates by tuples per segment; 120 s of trades are two of the longer windows."""
    tuples = 120 * CURVE_RATE
    for count in QUICK_CURVE if quick else CURVE:
        report.progress(f"MACD, {count} tuples a segment")
        table = trades(tuples, count, rate=CURVE_RATE)
        streams = {"trades": Stream(table, ("symbol",))}
        for form, slide in FORMS.items():
            found = measured(streams, slide, 1 if quick else 2)
            rows(report, f"MACD curve, {form}, {count} tuples a segment", found, tuples)
