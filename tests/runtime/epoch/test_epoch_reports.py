"""Reports say what an epoch did."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from epoch_loops import bring, looping, rows

from thalweg.runtime.epoch.listeners import Listeners
from thalweg.runtime.epoch.report import EpochReport
from thalweg.runtime.state import committer
from thalweg.testing.runner import Runner


def test_what_was_refused_is_counted_by_name() -> None:
    runner = Runner()
    for name in "ab":
        runner.stream(name, rows(1), ahead="1 hour")
    runner.query("SELECT 10 / x AS y FROM a", "risky")
    runner.query("SELECT x FROM b", "safe")
    first = runner.feed({"a": rows(5, 6, x=0), "b": rows(5, 6)})
    second = runner.feed({"a": rows(1, 7), "b": rows(1, 2, 7, 99_999)})
    assert first is not None
    assert second is not None
    assert (first.late_by_stream, first.rejected_by_stream) == ({}, {})
    assert first.rejected_by_query == {"risky": 1}
    assert second.late_by_stream == {"a": 1, "b": 2}
    assert second.rejected_by_stream == {"b": 1}
    assert second.rejected_by_query == {"risky": 1}
    assert (second.late, second.rejected) == (3, 1)


def test_state_bytes_are_those_of_the_stats() -> None:
    runner = Runner()
    runner.stream("a", rows(1))
    query = runner.query("SELECT x, count(*) AS n FROM a [RANGE 60 SECONDS] GROUP BY x", "q")
    seen = []
    for first in range(0, 30, 3):
        report = runner.feed({"a": rows(first, first + 1, first + 2, x=first)})
        assert report is not None
        stats = query.stats()
        kept = stats["streams"]["a"]["kept_bytes"] + stats["state_bytes"]
        assert report.state_bytes == kept
        seen.append(kept)
    assert stats["state_bytes"] > 0
    assert seen[-1] > seen[0] > 0


def test_time_in_the_commit_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    real = committer.commit_manifest

    def slow(*args: Any) -> None:
        time.sleep(0.05)
        real(*args)

    runner = Runner()
    runner.stream("a", rows(1))
    runner.query("SELECT x FROM a", "q")
    monkeypatch.setattr(committer, "commit_manifest", slow)
    report = runner.feed({"a": rows(1, 2)})
    assert report is not None
    assert 0.05 <= report.commit_seconds <= report.seconds - report.step_seconds


def test_a_report_is_plain_json() -> None:
    runner = Runner()
    runner.stream("a", rows(1))
    runner.query("SELECT x FROM a", "q")
    report = runner.feed({"a": rows(1, 2, 2)})
    assert report is not None
    found = report.to_dict()
    assert json.loads(json.dumps(found)) == found
    assert (found["epoch"], found["rows_in"], found["rows_out"]) == (1, 3, {"q": 1})
    assert set(EpochReport.__slots__) - set(found) == {"outputs"}


def test_ingest_is_told_with_the_epoch_that_took_it_in() -> None:
    heard: list[EpochReport] = []
    listeners = Listeners()
    listeners.add(heard.append)
    loop, log = looping(listeners)
    bring(loop, log, 0, began_ago=1.0)
    bring(loop, log, 1, began_ago=2.0)
    loop.drain(lambda: True)
    bring(loop, log, 2)
    loop.drain(lambda: True)
    bring(loop, log, 3, began_ago=4.0)
    loop.drain(lambda: True)
    told = [r.ingest_seconds for r in heard]
    assert told == [pytest.approx(3.0, abs=0.5), 0.0, pytest.approx(4.0, abs=0.5)]
