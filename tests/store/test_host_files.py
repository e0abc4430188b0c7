"""Caches that processes of one host hand on to each other: warm wherever the task runs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from thalweg.exec.expressions.evaluate import UserFunction
from thalweg.exec.jobs import Job, Result, execute_all
from thalweg.plan.joins.join_caches import Span, with_spans
from thalweg.runtime.session.session import Query
from thalweg.store import hostfiles
from thalweg.store.hostfiles import HostFiles
from thalweg.store.pack_cache import PackCache
from thalweg.testing import Runner

SECOND = 1_000_000
TIME = "[RANGE 3 SECONDS]"
ROWS = "[PARTITION BY a ROWS 3]"


class Workers:
    """Processes that take turns, as Spark's do: each has its own memory."""

    def __init__(self, runner: Runner, count: int, files: HostFiles | None) -> None:
        self.caches = [PackCache(runner.storage, files=files) for _ in range(count)]
        self.turn = 0

    def run(
        self, batches: Sequence[Sequence[Job]], functions: Mapping[str, UserFunction]
    ) -> list[list[Result]]:
        self.turn += 1
        cache = self.caches[self.turn % len(self.caches)]
        return [execute_all(batch, cache, functions) for batch in batches]


def test_a_folder_of_others_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is read there is believed: neither one that others may write to, nor a link, nor one
    that is another user's."""
    monkeypatch.setattr(hostfiles.tempfile, "gettempdir", lambda: str(tmp_path))
    assert HostFiles.of("e").folder.parent.stat().st_mode & 0o077 == 0
    own = tmp_path / f"thalweg-{os.getuid()}"
    own.chmod(0o777)
    with pytest.raises(PermissionError, match="not this user's alone"):
        HostFiles.of("e")
    own.rename(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").chmod(0o700)
    own.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(PermissionError, match="not this user's alone"):
        HostFiles.of("e")
    own.unlink()
    monkeypatch.setattr(hostfiles.os, "getuid", lambda: 12345)
    (tmp_path / "thalweg-12345").mkdir(mode=0o700)
    with pytest.raises(PermissionError, match="not this user's alone"):
        HostFiles.of("e")


def batch(epoch: int) -> dict[str, pa.Table]:
    rng = np.random.default_rng(epoch)
    found = {}
    for name, columns, rows in (("r", "a", 200), ("s", "ab", 30), ("t", "bv", 30)):
        ts = np.sort(rng.integers(epoch * SECOND, (epoch + 1) * SECOND, rows))
        ts[-1] = (epoch + 1) * SECOND - 1
        values = {c: rng.integers(0, 20, rows) for c in columns}
        found[name] = pa.table({**values, "ts": pa.array(ts, pa.timestamp("us", "UTC"))})
    return found


def run(
    workers: int,
    files: HostFiles | None,
    window: str = TIME,
    buckets: int = 2,
    spoil: object = None,
) -> Query:
    """A join with a cache, in ten epochs; `spoil` is called before each."""
    runner = Runner(buckets=buckets)
    runner.core.runner.executor = Workers(runner, workers, files)
    for name, table in batch(0).items():
        runner.stream(name, table.slice(0, 0))
    query = runner.query(
        f"SELECT ISTREAM r.a, s.b, t.v FROM r {TIME}, s {window}, t {TIME} "
        "WHERE r.a = s.a AND s.b = t.b WITH (joins = 'mjoin', filters = 'fixed')",
        name="q",
    )
    plans = runner.core.plans
    plans.replace("q", with_spans(plans["q"], 0, [Span(0, 0, 1)]))
    runner.core.adaptation.queries.clear()
    for epoch in range(10):
        if callable(spoil):
            spoil()
        runner.epoch([runner.entry(batch(epoch))])
    return query


def rows(query: Query) -> list[str]:
    return sorted(map(str, query.results().to_pylist()))


def fills(query: Query) -> int:
    return int(query.stats()["counts"]["fills:s⋈t"])


@pytest.fixture
def files(tmp_path: Path) -> HostFiles:
    return HostFiles(tmp_path)


@pytest.mark.parametrize("window", [TIME, ROWS])
@pytest.mark.parametrize("buckets", [1, 2])
def test_workers_that_take_turns_have_one_cache(
    files: HostFiles, window: str, buckets: int
) -> None:
    """As many fills, and the same rows, as where one process runs all epochs."""
    alone = run(1, None, window, buckets)
    turns = run(3, files, window, buckets)
    cold = run(3, None, window, buckets)
    assert rows(turns) == rows(alone) == rows(cold)
    assert len(rows(alone)) > 500
    assert fills(turns) == fills(alone) < fills(cold) / 2


def _truncate(folder: Path) -> None:
    for path in folder.iterdir():
        path.write_bytes(path.read_bytes()[:-100])


def _garble(folder: Path) -> None:
    for path in folder.iterdir():
        path.write_bytes(b"THALWEG1" + bytes(64))


@pytest.mark.parametrize("harm", [_truncate, _garble])
def test_a_broken_file_is_none(files: HostFiles, harm: object) -> None:
    assert callable(harm)
    spoiled = run(2, files, spoil=lambda: harm(files.folder))
    cold = run(2, None)
    assert rows(spoiled) == rows(cold)
    assert fills(spoiled) == fills(cold)


def test_nothing_is_believed_after_another_boot(
    files: HostFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    boots = iter(range(1_000_000))
    monkeypatch.setattr(hostfiles, "_boot", lambda: str(next(boots)))
    rebooted = run(2, files)
    assert rows(rebooted) == rows(run(2, None))
    assert fills(rebooted) == fills(run(2, None))


def test_what_others_write_is_not_seen_while_it_is_open(files: HostFiles) -> None:
    first, second = np.arange(5), np.zeros(3, np.uint64)
    files.write("x", {"n": 1}, [first, second])
    read = files.read("x")
    assert read is not None
    facts, arrays = read
    files.write("x", {"n": 2}, [second])
    arrays[0][0] = 77
    assert facts == {"n": 1}
    assert arrays[0].tolist() == [77, 1, 2, 3, 4]
    again = files.read("x")
    assert again is not None
    assert again[0] == {"n": 2}


def test_what_is_too_large_is_not_written(
    files: HostFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.write("x", {}, [np.arange(10)])
    monkeypatch.setattr(hostfiles, "MOST_BYTES", 79)
    files.write("x", {}, [np.arange(10)])
    assert files.read("x") is None


def test_a_full_disk_is_no_error(files: HostFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    files.write("x", {}, [np.arange(10)])
    monkeypatch.setattr(Path, "replace", full)
    files.write("x", {}, [np.arange(10)])
    assert files.read("x") is None
    assert not list(files.folder.iterdir())


def test_old_files_of_any_engine_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    one = HostFiles.of("one")
    one.write("x", {}, [np.arange(3)])
    one.write("y", {}, [np.arange(3)])
    os.utime(one._path("x"), (0, 0))
    other = HostFiles.of("other")
    assert other.folder != one.folder
    assert one.read("x") is None
    assert one.read("y") is not None
