"""A stream of small numbers, a query that sums them, and a runner that holds the stream."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from thalweg.store import manifest
from thalweg.testing import Runner

SUMS = "SELECT k, sum(v) AS t FROM s [RANGE 20 MICROSECONDS] GROUP BY k"


def rows(first: int, last: int) -> pa.Table:
    numbers = range(first, last)
    ts = pa.array(numbers, pa.timestamp("us", "UTC"))
    return pa.table({"k": [i % 3 for i in numbers], "v": [i % 7 for i in numbers], "ts": ts})


def runner(**options: Any) -> Runner:
    made = Runner(**options)
    made.stream("s", rows(0, 1), retain="1 hour")
    made._tables.clear()
    return made


def epoch(made: Runner) -> int:
    return manifest.load(made.storage)[0]
