"""Trades and a table of sectors, for tests in any folder."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from thalweg.testing import Runner

UTC = pa.timestamp("us", "UTC")
SECOND = 1_000_000


def rows(*given: tuple[float, str | None, float, int]) -> pa.Table:
    return pa.table(
        {
            "sym": pa.array([g[1] for g in given], pa.string()),
            "price": pa.array([g[2] for g in given], pa.float64()),
            "qty": pa.array([g[3] for g in given], pa.int64()),
            "ts": pa.array([int(g[0] * SECOND) for g in given], UTC),
        }
    )


def sectors(*given: tuple[str, str]) -> pa.Table:
    names, values = zip(*given, strict=True)
    return pa.table({"sym": pa.array(names), "sector": pa.array(values)})


def runner_over(**options: Any) -> Runner:
    runner = Runner(**options)
    runner.stream("t", rows(), lateness=options.pop("lateness", 0))
    runner.table("c", sectors(("A", "x")))
    return runner


def shown(table: pa.Table, *names: str) -> list[tuple[Any, ...]]:
    return [tuple(r[n] for n in names) for r in table.to_pylist()]
