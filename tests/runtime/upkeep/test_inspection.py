"""What a path holds is told from its files alone, exactly, beside a running engine too."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pyarrow as pa
import pytest

from thalweg.errors import FileMissing, FormatTooNew, PathError
from thalweg.features import FEATURES
from thalweg.plan import state_slots
from thalweg.runtime.state.engine_state import EngineState
from thalweg.runtime.state.open_path import claim, release
from thalweg.runtime.state.query_state import Lifecycle
from thalweg.runtime.upkeep.inspection import Files, PathView, inspect, instant
from thalweg.store import manifest
from thalweg.store.storage import LocalStorage, MemoryStorage, Storage
from thalweg.testing.runner import Runner

SECOND = 1_000_000


def rows(*seconds: int, value: int = 1) -> pa.Table:
    ts = pa.array([s * SECOND for s in seconds], pa.timestamp("us", "UTC"))
    return pa.table({"ts": ts, "k": [s % 2 for s in seconds], "x": [value] * len(seconds)})


def fed(storage: Storage) -> Runner:
    """Three epochs: late rows, rejected rows, group state with side files, a failed query."""
    runner = Runner(storage=storage)
    runner.stream("a", rows(1), ahead="1 hour")
    runner.table("t", pa.table({"k": [0, 1], "name": ["even", "odd"]}))
    runner.query("SELECT k, 10 / x AS y FROM a", "shares")
    runner.query("SELECT k, max(x) AS m FROM a [RANGE 5 SECONDS] GROUP BY k", "most")
    runner.query("SELECT ISTREAM x FROM a [ROWS 2]", "last")
    runner.feed({"a": rows(1, 2, 3)})
    runner.feed({"a": rows(4, 5, value=0)})
    runner.feed({"a": rows(1, 6, 7, 8_000)})
    return runner


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "path"


@pytest.fixture
def runner(path: Path) -> Runner:
    return fed(LocalStorage(str(path), durable=False))


def view(path: Path) -> PathView:
    return inspect(LocalStorage(str(path)))


def snapshot(path: Path) -> dict[str, tuple[bytes, int]]:
    found = (p for p in path.rglob("*") if p.is_file())
    return {str(p): (p.read_bytes(), p.stat().st_mtime_ns) for p in found}


def test_it_tells_what_the_engine_knows(path: Path, runner: Runner) -> None:
    found = view(path)
    state = runner.core.state
    assert (found.epoch, found.incarnation) == (state.epoch, 1)
    assert found.format == manifest.FORMAT
    (stream,) = found.streams
    stats = runner.queries["shares"].stats()["streams"]["a"]
    assert (stream.rows, stream.late, stream.rejected) == (7, 1, 1)
    assert stream.kept.packs == stats["packs"]
    assert stream.kept.rows >= stats["kept_rows"]  # a pack may hold rows that nobody reaches
    assert stream.kept.bytes == stats["kept_bytes"]
    assert (stream.first, stream.last) == (SECOND, 7 * SECOND)
    assert stream.watermark == state.streams["a"].watermark
    assert stream.rejects.rows == 2
    assert [(t.name, t.kept.rows) for t in found.tables] == [("t", 2)]


def test_it_tells_what_queries_keep(path: Path, runner: Runner) -> None:
    queries = {q.name: q for q in view(path).queries}
    for name, query in queries.items():
        assert query.results.rows == runner.queries[name].results().num_rows == query.emitted
        assert query.status == "running"
    shares, most, last = queries["shares"], queries["most"], queries["last"]
    assert (shares.rejected, shares.rejects.rows) == (2, 2)
    assert shares.frontier == runner.queries["shares"].stats()["frontier"]
    assert [s.holds for s in most.state] == ["aggregates by group"]
    assert [s.holds for s in last.state] == ["content of a row window"]
    packs = runner.core.state.queries["most"].operators.slots["0.groups"]
    sides = [file for p in packs for _, file in p.sides]
    assert sides
    on_disk = sum((path / f).stat().st_size for p in packs for f in p.files)
    assert most.state[0].kept.bytes == on_disk
    epochs = [k for k in runner.core.state.outputs if k.startswith("most/")]
    assert most.result_epochs is not None
    assert list(most.result_epochs) == [int(epochs[i].split("/")[1]) for i in (0, -1)]


def test_every_byte_is_somewhere(path: Path, runner: Runner) -> None:
    totals = view(path).totals
    parts = [getattr(totals, f) for f in totals.__slots__ if f != "missing"]
    counted = sum(p.bytes for p in parts)
    found = [p for p in path.rglob("*") if p.is_file() and p.name != manifest.FORMAT_FILE]
    assert counted == sum(p.stat().st_size for p in found)
    assert totals.unreferenced == Files(0, 0)
    assert totals.missing == ()


def test_nothing_is_touched(path: Path, runner: Runner) -> None:
    before = snapshot(path)
    view(path).to_dict()
    assert snapshot(path) == before


def test_orphans_are_counted(path: Path, runner: Runner) -> None:
    (path / "log" / "left-0123456789ab.arrow").write_bytes(b"12345")
    (path / "drafts" / "half").write_bytes(b"123")
    assert view(path).totals.unreferenced == Files(2, 8)


def test_what_is_read_but_not_taken_in_is_no_orphan(path: Path, runner: Runner) -> None:
    runner.entry({"a": rows(9, 10)})
    found = view(path)
    assert (found.waiting.packs, found.waiting.rows) == (1, 2)
    assert found.totals.unreferenced == Files(0, 0)
    assert found.totals.waiting.files == 1


def test_a_lost_file_is_named(path: Path, runner: Runner) -> None:
    name = runner.core.state.streams["a"].packs[0].name
    (path / name).unlink()
    assert view(path).totals.missing == (name,)


def test_a_failed_query_shows_the_first_line_of_its_error(path: Path) -> None:
    storage = LocalStorage(str(path), durable=False)
    runner = fed(storage)
    query = runner.core.state.queries["last"]
    query.lifecycle = Lifecycle("failed", "ZeroDivisionError: by zero\n  at line 3")
    runner.core.coordinator.save(0)
    (found,) = (q for q in inspect(storage).queries if q.name == "last")
    assert (found.status, found.error) == ("failed", "ZeroDivisionError: by zero")


def test_json_is_plain_and_complete(runner: Runner, path: Path) -> None:
    found = view(path).to_dict()
    assert json.loads(json.dumps(found)) == found
    assert found["streams"][0]["first"] == "1970-01-01T00:00:01Z"
    assert found["streams"][0]["kept"]["rows"] == view(path).streams[0].kept.rows


def test_a_fresh_path_is_an_engines(path: Path) -> None:
    storage = LocalStorage(str(path))
    manifest.check_format(storage)
    found = inspect(storage)
    assert (found.epoch, found.clock, found.streams, found.queries) == (0, None, (), ())


def test_other_folders_are_refused_and_left_alone(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "absent"):
        with pytest.raises(PathError, match="is not the path of an engine"):
            view(path)
    assert list(tmp_path.iterdir()) == []


def test_a_newer_format_is_refused(path: Path, runner: Runner) -> None:
    (path / manifest.FORMAT_FILE).write_text('{"format": 99}')
    before = snapshot(path)
    with pytest.raises(FormatTooNew):
        view(path)
    assert snapshot(path) == before


# -- beside a running engine -----------------------------------------------------------------


def test_the_owner_is_named_while_it_holds_the_path(path: Path, runner: Runner) -> None:
    storage = LocalStorage(str(path))
    assert view(path).owner is None
    lock = claim(storage)
    assert view(path).owner == os.getpid()
    release(lock)
    assert view(path).owner is None
    (path / "owner.lock").write_text("4194305")  # beyond the largest process id
    assert view(path).owner is None


def test_an_epoch_that_overtakes_the_reading_is_read_instead(
    path: Path, runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files are listed, an epoch makes new ones, its state is read, the next deletes them."""
    real, calls = manifest.load, []

    def overtaken(storage: Storage) -> tuple[int, manifest.State]:
        calls.append(1)
        if len(calls) > 1:
            return real(storage)
        runner.feed({"a": rows(9, 10)})
        found = real(storage)
        runner.feed({"a": rows(11, 12)})
        return found

    monkeypatch.setattr(manifest, "load", overtaken)
    found = view(path)
    assert found.epoch == runner.core.state.epoch == 5
    assert found.totals.missing == ()
    assert len(calls) > 2


def test_a_gap_between_manifests_is_not_a_state() -> None:
    """A listing taken while old manifests are dropped may miss the whole one that replaces them."""
    storage = MemoryStorage()
    runner = fed(storage)
    runner.close()
    assert manifest.load(storage)[0] == 4
    storage.delete(manifest.manifest_name(2))
    with pytest.raises(PathError, match="epoch 2 is missing"):
        manifest.load(storage)
    with pytest.raises(PathError, match="epoch 2 is missing"):
        inspect(storage)


def test_readings_during_dropping_are_taken_again(monkeypatch: pytest.MonkeyPatch) -> None:
    storage = MemoryStorage()
    fed(storage)
    real, calls = manifest.load, []

    def first_torn(given: Storage) -> tuple[int, manifest.State]:
        calls.append(1)
        if len(calls) == 1:
            raise FileMissing("dropped meanwhile", remedy="read again")
        return real(given)

    monkeypatch.setattr(manifest, "load", first_torn)
    assert inspect(storage).epoch == 3
    assert len(calls) == 2


def test_every_kind_of_state_has_words() -> None:
    own = {v for v in vars(state_slots).values() if isinstance(v, state_slots.SlotKind)}
    assert state_slots.GROUPS in own
    added = {kind for feature in FEATURES for kind in feature.slots}
    assert own | added == set(state_slots.SLOT_KINDS)
    assert all(k.words for k in state_slots.SLOT_KINDS)


def test_instants() -> None:
    assert instant(1_500_000) == "1970-01-01T00:00:01.5Z"
    assert instant(-1) == "1969-12-31T23:59:59.999999Z"
    assert instant(2**60) == "38504-08-17T21:30:06.846976Z"
    assert instant(None) is None


def test_state_files_are_all_accounted_for(path: Path, runner: Runner) -> None:
    """Nothing that the state refers to is taken for an orphan, whatever kind it is of."""
    state = EngineState.from_json(manifest.load(LocalStorage(str(path)))[1])
    totals = view(path).totals
    kinds = (totals.streams, totals.state, totals.results, totals.rejects, totals.tables)
    assert sum(k.files for k in kinds) == len(state.files())
