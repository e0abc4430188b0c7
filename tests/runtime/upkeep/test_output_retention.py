"""Old results are folded into the answer once nobody holds them back."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest
from eight_rows import RELATION, STREAM, UTC, runner_over

from thalweg.errors import ConfigError
from thalweg.store.leases import Lease, release, renew


def test_old_results_are_folded_into_the_answer() -> None:
    runner = runner_over()
    query = runner.query(RELATION, name="q")
    core = runner.core
    core.settings.results_retain = 5
    for i in range(40):
        runner.clock = i
        rows = pa.table({"k": [i % 3], "x": [1.0], "ts": pa.array([i], UTC)}, STREAM.schema)
        runner.feed({"s": rows})
    assert len(core.state.outputs) < 30
    assert core.state.queries["q"].output.base
    runner.restart()
    now = Counter((r["k"], r["n"]) for r in query.invoke().to_pylist())
    assert now == Counter(Counter(i % 3 for i in range(35, 39)).items())
    with pytest.raises(ConfigError, match="no longer known"):
        query.invoke(3)


def test_followers_hold_results_back() -> None:
    runner = runner_over()
    runner.query("SELECT k FROM s", name="q")
    core = runner.core
    core.settings.results_retain = 2
    renew(runner.storage, Lease("f", "q", 3, 4e9))
    for i in range(12):
        runner.clock = i
        rows = pa.table({"k": [i], "x": [1.0], "ts": pa.array([i], UTC)}, STREAM.schema)
        runner.feed({"s": rows})
    kept = sorted(int(k.split("/")[1]) for k in core.state.outputs)
    assert kept[0] == 4
    release(runner.storage, "f")
    runner.feed({"s": pa.table({"k": [1], "x": [1.0], "ts": pa.array([99], UTC)}, STREAM.schema)})
    assert min(int(k.split("/")[1]) for k in core.state.outputs) > 6
