"""What Flink is told: its tables over the benchmark's CSV files, and the joins in its SQL.

Two variants of each join give the same results:

`interval` chains binary interval joins. Flink plans one only where it finds exactly one pair of
bounds between two time attributes; any further bound on one would make it a regular join. So `a.ts`
meets the time attribute of every other stream, and the bounds between the others are on `ms`, the
plain milliseconds. The watermark behind each join is held back by the window, so each join of the
chain keeps its rows for a window longer than the one before it.

`multijoin` is Flink's operator for many inputs (experimental in 2.1 and later). It takes regular
joins on one common key only, so its tables have no time attribute and all bounds are on `ms`.
Regular joins never forget: the state grows with the input. A TTL would bound it, but it is counted
on the machine's clock and not in event time; where rows come faster than they happened it would
keep everything all the same, or lose results.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

INTERVAL, MULTIJOIN = "interval", "multijoin"

Values = Mapping[str, str]  # the value column of each stream, in the order of the join


def table(stream: str, value: str, csv: str, disorder_ms: int, variant: str) -> str:
    """The rows of a stream; as `interval` has them, with a time attribute."""
    delay = f"INTERVAL '{disorder_ms / 1_000:.3f}' SECOND"
    timed = f", ts AS TO_TIMESTAMP_LTZ(ms, 3), WATERMARK FOR ts AS ts - {delay}"
    return (
        f"CREATE TABLE {stream} (k BIGINT, ms BIGINT, {value} DOUBLE"
        f"{timed if variant == INTERVAL else ''})"
        f" WITH ('connector' = 'filesystem', 'path' = 'file://{csv}/{stream}.csv',"
        " 'format' = 'csv')"
    )


def black_hole(name: str, columns: str) -> str:
    return f"CREATE TABLE {name} ({columns}) WITH ('connector' = 'blackhole')"


def results(values: Values) -> str:
    """Where the results of the join go."""
    return black_hole("results", ", ".join(["k BIGINT", *(f"{v} DOUBLE" for v in values.values())]))


def moment(variant: str) -> tuple[str, str]:
    """The column that is an event's time, and its type."""
    return ("ts", "TIMESTAMP_LTZ(3)") if variant == INTERVAL else ("ms", "BIGINT")


def join(values: Values, window_s: int, variant: str) -> str:
    """The window join of all streams: equal keys, and any two times within the window."""
    first, *others = values
    shown = ", ".join(f"{stream}.{value}" for stream, value in values.items())
    sql = f"SELECT {first}.k, {shown} FROM {first}"
    known = [first]
    for stream in others:
        near = [_near(before, stream, window_s, variant, first) for before in known]
        sql += f" JOIN {stream} ON " + " AND ".join([f"{first}.k = {stream}.k", *near])
        known.append(stream)
    return sql


def _near(left: str, right: str, window_s: int, variant: str, first: str) -> str:
    if variant == INTERVAL and left == first:
        column, span = "ts", f"INTERVAL '{window_s}' SECOND({len(str(window_s))})"
    else:
        column, span = "ms", str(1_000 * window_s)
    return f"{right}.{column} BETWEEN {left}.{column} - {span} AND {left}.{column} + {span}"


def check_plan(plan: str, ways: int, variant: str) -> None:
    """Refuse a plan (as EXPLAIN prints it) that is not the one that is to be measured."""
    chosen = plan[plan.index("== Optimized Execution Plan ==") :]
    wanted = ["IntervalJoin"] * (ways - 1) if variant == INTERVAL else ["MultiJoin"]
    if re.findall(r"(\w*Join)\(", chosen) != wanted:
        raise ValueError(f"Flink does not plan {variant} for {ways} streams:\n{chosen}")
