"""Two streams of times, and the modes in which a query over them may answer."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from thalweg.testing.runner import Runner

MODES = ("none", "p", "c", "auto", None)


def rows(*times: int) -> pa.Table:
    return pa.table(
        {
            "k": pa.array([t % 3 for t in times], pa.int64()),
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
        }
    )


def runner(**how: Any) -> Runner:
    made = Runner()
    for name in ("a", "b"):
        made.stream(name, rows(), **how)
    return made


def told(mode: str | None) -> str:
    return "" if mode is None else f" WITH (materialize = '{mode}')"
