"""Rows with a key of three values and a number, one a second."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa


def rows(first: int, last: int) -> pa.Table:
    begin = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
    times = [begin + dt.timedelta(seconds=i) for i in range(first, last)]
    return pa.table(
        {
            "k": [i % 3 for i in range(first, last)],
            "v": [float(i) for i in range(first, last)],
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
        }
    )
