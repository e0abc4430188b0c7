"""Orderings with the settings of the note, and conjunctions that run under them.

In the tests of this folder everything is measured through the executor, over boolean columns or
through `Runner`; matrices, invariants, prices and answers are computed again from the definitions
of the StreaMon note.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from filter_data import ADAPTIVE, rng_of

from thalweg.adapt.constants import SWEEP_EVIDENCE, SWEEP_WINDOW
from thalweg.adapt.filters.localswaps import LocalSwaps
from thalweg.adapt.filters.ordering import Ordering, Settings
from thalweg.adapt.filters.sweep import Sweep
from thalweg.testing import Runner

SLICE = 2_048
NAMES = ["a-greedy", "sweep", "independent", "local-swaps", "fixed", "auto"]
adaptive = pytest.mark.parametrize("cls", ADAPTIVE, ids=lambda c: c.name)
by_name = pytest.mark.parametrize("name", NAMES)


def usual(cls: type[Ordering], costs: Any, order: Any = None, **changed: Any) -> Ordering:
    """An ordering with the defaults of Table 4.1; costs are per evaluation."""
    settings: dict[str, Any] = {"rate": 0.01, "window": 1000, "alpha": 0.9}
    if cls is Sweep:
        settings |= {"window": SWEEP_WINDOW}
    if cls in (Sweep, LocalSwaps):
        settings |= {"evidence": SWEEP_EVIDENCE}
    injected = tuple(float(c) for c in costs)
    return cls(Settings(len(injected), injected=injected, **{**settings, **changed}), order)


TEXTS = ["a < 30", "b < 60", "c < 95"]


def drifting(rows: int = 60_000) -> pa.Table:
    """In the second half a and c change roles."""
    rng = rng_of("drifting")
    a, b, c = rng.integers(0, 100, (3, rows))
    half = rows // 2
    a[half:], c[half:] = a[half:] * 30 // 95, np.minimum(c[half:] * 95 // 30, 200)
    ts = pa.array(np.arange(rows), pa.timestamp("us", "UTC"))
    return pa.table({"ts": ts, "a": a, "b": b, "c": c})


def ran(table: pa.Table, where: str, name: str | None = None, **how: Any) -> tuple[Runner, Any]:
    functions = how.pop("functions", {})
    profile = how.pop("profile", 0.2)
    runner = Runner(**how)
    runner.stream("s", table)
    for key, (function, options) in functions.items():
        runner.function(key, function, "BOOLEAN", arguments=["BIGINT"], **options)
    chosen = f" WITH (filters = '{name}', profile = {profile})" if name else ""
    query = runner.query(f"SELECT {', '.join(table.column_names[1:])} FROM s WHERE {where}{chosen}")
    runner.run()
    return runner, query


MESSY_TEXTS = ["10 / x > 2", "y < 40", "100 / y < 30", "z <> 3", "x + y > 2"]
MESSY = " AND ".join(MESSY_TEXTS)


def messy(rows: int) -> pa.Table:
    """Rows with zeros to divide by, and with NULLs."""
    rng = rng_of("messy")

    def some(low: int, high: int) -> pa.Array:
        return pa.array(rng.integers(low, high, rows), pa.int64(), mask=rng.random(rows) < 0.05)

    ts = pa.array(np.arange(rows), pa.timestamp("us", "UTC"))
    return pa.table({"ts": ts, "x": some(0, 6), "y": some(0, 60), "z": some(0, 5)})


def numbered(table: pa.Table, *columns: str) -> Counter[Any]:
    """Some columns, and the instant as the number of the row."""
    instants = table["__ts"].cast(pa.int64()).to_pylist()
    return Counter(zip(*(table[c].to_pylist() for c in columns), instants, strict=True))


def numbers(rows: int, seed: str) -> pa.Table:
    x, y, z = rng_of(seed).integers(0, 100, (3, rows))
    ts = pa.array(np.arange(rows), pa.timestamp("us", "UTC"))
    return pa.table({"ts": ts, "x": x, "y": y, "z": z})
