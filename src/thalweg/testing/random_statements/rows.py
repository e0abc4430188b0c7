"""The streams and tables that random statements are about: a few rows, all types, edge values."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa

from thalweg.testing.runner import Runner

STAMP = pa.timestamp("us", "UTC")
_LEAP = dt.date(2024, 2, 29)
_LATE = dt.datetime(2024, 12, 31, 23, 59, 59, 999_999, tzinfo=dt.UTC)
_EARLY = dt.datetime(1969, 12, 31, 23, 59, 58, tzinfo=dt.UTC)
_GAPS = [dt.timedelta(0), dt.timedelta(microseconds=-1), dt.timedelta(days=40), None]

COLUMNS: dict[str, tuple[str, pa.DataType, list[Any]]] = {
    "flag": ("bool", pa.bool_(), [True, False, None, True, False, True]),
    "tiny": ("int", pa.int8(), [-128, 127, 0, None, 1, 2]),
    "small": ("int", pa.int16(), [3, -(2**15), None, 2**15 - 1, 0, 1]),
    "n": ("int", pa.int32(), [1, 0, 2, None, 2**31 - 1, -(2**31)]),
    "big": ("int", pa.int64(), [2**63 - 1, -(2**63), 1, 0, None, 2]),
    "f": ("num", pa.float32(), [0.1, math.nan, -0.0, None, math.inf, 2.5]),
    "d": ("num", pa.float64(), [0.1, math.nan, -0.0, -math.inf, None, 1e300]),
    "dec": ("num", pa.decimal128(10, 2), [Decimal(v) for v in ("1.50", "0", "-0.01")] * 2),
    "wide": ("num", pa.decimal128(38, 10), [Decimal("9" * 28), None, Decimal("-1.5")] * 2),
    "txt": ("text", pa.string(), ["a", "", "12", None, "Äß 日本", "2024-02-29 12:00:00"]),
    "bin": ("bytes", pa.binary(), [b"", b"a", b"\xff\x00", None, "ä".encode(), b"12"]),
    "day": ("date", pa.date32(), [_LEAP, None, dt.date(1969, 12, 31), _LEAP, dt.date.max, _LEAP]),
    "at": ("time", STAMP, [_LATE, _EARLY, None, _LATE, _EARLY, _LATE]),
    "gap": ("span", pa.duration("us"), [*_GAPS, _GAPS[2], _GAPS[0]]),
    "xs": ("ints", pa.list_(pa.int64()), [[1, 2], [], None, [None], [1, 2], [2**63 - 1]]),
    "words": ("texts", pa.list_(pa.string()), [["a"], ["", None], None, [], ["a"], ["b", "a"]]),
}
"""Of the stream `s`, beside its event time `ts`: the family of each column, its type and values."""

SMALL = {"k": "int", "txt": "text", "d": "num"}
"""The columns of the stream `q` (beside `ts`) and of the table `t`."""

_SECONDS = {"s": [1, 2, 2, 4, 7, 9], "q": [0, 2, 3, 9]}


def _stamps(stream: str) -> pa.Array:
    return pa.array([v * 1_000_000 for v in _SECONDS[stream]], STAMP)


STREAMS = {
    "s": pa.table({"ts": _stamps("s")} | {n: pa.array(v, t) for n, (_, t, v) in COLUMNS.items()}),
    "q": pa.table({
        "ts": _stamps("q"),
        "k": pa.array([1, 2, None, 0], pa.int64()),
        "txt": pa.array(["a", None, "12", ""]),
        "d": pa.array([0.1, math.nan, 0.0, None], pa.float64()),
    }),
}  # fmt: skip
TABLES = {
    "t": pa.table({
        "k": pa.array([0, 1, 1, None], pa.int64()),
        "txt": pa.array(["a", "b", None, "12"]),
        "d": pa.array([0.0, math.nan, 1e300, None], pa.float64()),
    })
}  # fmt: skip
VIEW = "CREATE VIEW v AS SELECT txt, count(*) AS c FROM s [RANGE 3 SECONDS] GROUP BY txt"
QUERY = "CREATE QUERY running AS SELECT txt, n FROM s [RANGE 5 SECONDS] WHERE n >= 0"


def loaded(runner: Runner) -> Runner:
    """The runner, knowing the streams, the table, the view and one query."""
    for name, stream in STREAMS.items():
        runner.stream(name, stream)
    for name, table in TABLES.items():
        runner.table(name, table)
    runner.sql(VIEW)
    return runner
