"""Nothing leaves an epoch before its manifest; nothing goes on after half an epoch."""

from __future__ import annotations

import pyarrow as pa
import pytest

from thalweg.errors import ConfigError
from thalweg.runtime.state import committer
from thalweg.testing.runner import Runner


def rows(*micros: int) -> pa.Table:
    return pa.table({"ts": pa.array(micros, pa.timestamp("us", "UTC"))})


def test_results_of_an_epoch_that_was_not_committed_are_not_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(*_: object) -> None:
        raise OSError("the disk is full")

    runner = Runner()
    runner.stream("a", rows(1))
    query = runner.query("SELECT ts FROM a", "q")
    runner.feed({"a": rows(1, 2)})
    assert query.results().num_rows == 1
    monkeypatch.setattr(committer, "commit_manifest", fails)
    with pytest.raises(OSError, match="the disk is full"):
        runner.feed({"a": rows(3, 4)})
    assert query.results().num_rows == 1
    with pytest.raises(ConfigError, match="failed half-way"):
        runner.close()
