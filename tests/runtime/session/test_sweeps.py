"""A sweep gives what its queries give one by one."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from thalweg.errors import ConfigError
from thalweg.testing.runner import Runner

SECOND = 1_000_000
STAMPS = [0, 1, 2, 6, 7, 20, 21, 22, 23, 40]
SESSIONS = (
    "SELECT RSTREAM n FROM (SELECT k, count(*) AS n FROM s [PARTITION BY k SESSION GAP 2 SECONDS] "
    "GROUP BY k) d WHERE n > :least"
)


def made() -> Runner:
    runner = Runner()
    stamps = pa.array([t * SECOND for t in STAMPS], pa.timestamp("us", "UTC"))
    runner.stream("s", pa.table({"k": [i % 2 for i in range(10)], "ts": stamps}))
    return runner


def test_windows_that_wait_tell_each_query_when_rows_appear() -> None:
    levels = [0, 1, 2]
    swept = made().sweep(SESSIONS, [{"least": level} for level in levels])
    for level in levels:
        runner = made()
        alone = runner.query(SESSIONS.replace(":least", str(level)), "q")
        runner.run()
        mine = swept.filter(pc.equal(swept["least"], level)).drop_columns(["least"])
        assert mine["__ts"].to_pylist() == alone.results()["__ts"].to_pylist(), level
        assert sorted(mine.to_pylist(), key=str) == sorted(alone.results().to_pylist(), key=str)
    assert swept.num_rows


def test_parameters_are_checked_by_name() -> None:
    with pytest.raises(ConfigError, match=":least has no value"):
        made().sweep(SESSIONS, [{}])
    with pytest.raises(ConfigError, match="no parameter :most"):
        made().sweep(SESSIONS, [{"least": 1, "most": 2}])


def test_rows_that_err_are_counted() -> None:
    swept = made().sweep("SELECT 1 div k AS x FROM s WHERE k < :most", [{"most": 1}])
    assert swept.num_rows == 0
    assert swept.schema.metadata[b"thalweg.rejected"] == b"5"
