"""Files of a path that are missing, changed by a bit, cut off or not the engine's."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from thalweg.errors import FileDamaged, FileMissing, FileTrouble, PathError
from thalweg.runtime.state.engine_state import EngineState
from thalweg.runtime.state.open_path import committed_state, sweep
from thalweg.store import control, leases, manifest
from thalweg.store.json_files import create_json, load_json
from thalweg.store.log import LogEntry, commit_entry, entries_from, entry_name
from thalweg.store.packs import PackMeta
from thalweg.store.storage import LocalStorage, RemoteStorage, Storage, open_storage
from thalweg.testing import Runner

TABLE = pa.table({"__ts": [1, 2, 3], "k": ["a", "b", None], "v": [0.5, None, -0.0]})
ENDINGS = ("arrow", "parquet")


def entry(seq: int) -> LogEntry:
    packs = {"s": (PackMeta(f"log/s-{seq}.arrow", 3, 1000, 1, 3, seq),)}
    return LogEntry(seq, 1, ("query", seq), packs, {}, 17)


def flips(data: bytes, each: int = 1) -> Iterator[bytes]:
    """The bytes with one bit changed, in every `each`-th byte."""
    rng = random.Random(7)
    for i in range(0, len(data), each):
        changed = bytearray(data)
        changed[i] ^= 1 << rng.randrange(8)
        yield bytes(changed)


def refused(action: Callable[[], object]) -> str:
    """The refusal of an action on a path, empty if there is none."""
    try:
        action()
    except PathError as error:
        return str(error)
    return ""


@pytest.fixture(params=["local", "remote"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    if request.param == "local":
        return LocalStorage(str(tmp_path))
    return RemoteStorage(f"local://{tmp_path}")


@pytest.mark.parametrize("ending", ENDINGS)
def test_any_bit_of_a_table_that_has_changed_is_found(
    storage: Storage, tmp_path: Path, ending: str
) -> None:
    name = f"q/spikes/1-2-out.{ending}"
    assert storage.write_table(name, TABLE) == storage.size(name)
    assert storage.read_table(name).equals(TABLE)
    file = tmp_path / name
    for changed in flips(file.read_bytes(), 1 if isinstance(storage, LocalStorage) else 16):
        file.write_bytes(changed)
        with pytest.raises(FileDamaged, match=r"q/spikes/1-2-out.*query spikes"):
            storage.read_table(name)


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_table_that_was_cut_off_is_found(tmp_path: Path, ending: str) -> None:
    storage = LocalStorage(str(tmp_path))
    storage.write_table(f"log/a.{ending}", TABLE)
    file = tmp_path / f"log/a.{ending}"
    whole = file.read_bytes()
    for size in (*range(0, len(whole) - 16, 7), len(whole) - 1):
        file.write_bytes(whole[:size])
        with pytest.raises(FileDamaged, match="rows of a stream"):
            storage.read_table(f"log/a.{ending}")


@pytest.mark.parametrize("ending", ENDINGS)
def test_tables_of_earlier_formats_have_no_seal(tmp_path: Path, ending: str) -> None:
    storage = LocalStorage(str(tmp_path))
    storage.write_table(f"a.{ending}", TABLE)
    file = tmp_path / f"a.{ending}"
    file.write_bytes(file.read_bytes()[:-16])
    assert storage.read_table(f"a.{ending}").equals(TABLE)


def test_any_bit_of_a_json_file_that_has_changed_is_found(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path))
    commit_entry(storage, entry(0))
    file = tmp_path / entry_name(0)
    for changed in flips(file.read_bytes()):
        file.write_bytes(changed)
        refusal = refused(lambda: list(entries_from(storage, 0)))
        assert "the rows of one batch" in refusal or list(entries_from(storage, 0)) == [entry(0)]


def test_a_manifest_that_has_changed_is_refused(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path))
    manifest.check_format(storage)
    manifest.commit_manifest(storage, 1, {}, {"epoch": 1, "streams": {}})
    for name, lost in (
        (manifest.manifest_name(1), "the state of all queries"),
        (manifest.FORMAT_FILE, "the format of the path"),
    ):
        file = tmp_path / name
        good = file.read_bytes()
        for changed in flips(good, 3):
            file.write_bytes(changed)
            assert lost in refused(lambda name=name: load_json(storage, name))  # type: ignore[misc]
        file.write_bytes(good)


def test_a_json_file_without_a_seal_is_of_an_earlier_format(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path))
    storage.create("a.json", b'{"x": 1}')
    assert load_json(storage, "a.json") == {"x": 1}
    storage.create("b.json", b'{"x": 1')
    with pytest.raises(FileDamaged, match="cannot be read"):
        load_json(storage, "b.json")


def test_a_gap_in_the_log_is_refused(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path))
    for seq in range(4):
        commit_entry(storage, entry(seq))
    assert [e.seq for e in entries_from(storage, 1)] == [1, 2, 3]
    for lost in (0, 2):
        kept = storage.read(entry_name(lost))
        storage.delete(entry_name(lost))
        with pytest.raises(PathError, match=f"{lost:012d}.json is missing"):
            list(entries_from(storage, 0))
        storage.create(entry_name(lost), kept)
    assert len(list(entries_from(storage, 0))) == 4


def test_failures_of_the_system_name_the_file_and_what_it_holds(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path))
    with pytest.raises(FileMissing, match=r"tables/t-1\.arrow is missing; it holds rows of"):
        storage.read_table("tables/t-1.arrow")
    with pytest.raises(FileMissing):
        storage.read("manifests/1.json")
    (tmp_path / "q").mkdir()
    with pytest.raises(FileTrouble, match=r"cannot read .*/q: ") as found:
        storage.read("q")
    assert found.value.errno
    (tmp_path / "late").write_bytes(b"")
    with pytest.raises(FileTrouble, match=r"cannot write .*/late/x\.arrow"):
        storage.write_table("late/x.arrow", TABLE)


def test_files_of_others_are_left_alone(tmp_path: Path) -> None:
    """Backups, notes, and what an editor or a desktop leaves."""
    storage = LocalStorage(str(tmp_path))
    manifest.check_format(storage)
    manifest.commit_manifest(storage, 1, {}, EngineState().to_json())
    commit_entry(storage, entry(0))
    control.submit(storage, "SHOW QUERIES")
    leases.renew(storage, leases.Lease("job", "q", 3, 4e9))
    strays = [
        "manifests/notes.json", "manifests/000000000001.json.bak", "manifests/.DS_Store",
        "log/000000000000.json~", "log/copy.arrow", "log/x.json", "log/0.json",
        "control/requests/todo.json", "control/requests/.swp", "control/answers/old.json",
        "control/answers/readme", "leases/readme.txt", "q/spikes/mine.parquet",
    ]  # fmt: skip
    for name in strays:
        assert storage.create(name, b"not ours")
    assert manifest.load(storage)[0] == 1
    assert [e.seq for e in entries_from(storage, 0)] == [0]
    assert [r.script for r in control.waiting(storage)] == ["SHOW QUERIES"]
    assert [lease.epoch for lease in leases.leases(storage)] == [3]
    control.forget_answers(storage, 5e9)
    manifest.write_whole(storage, 2, EngineState().to_json())
    sweep(storage, committed_state(storage))
    assert all(storage.exists(name) for name in strays)


def test_a_request_that_is_damaged_is_answered(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path))
    bad = control.submit(storage, "DROP QUERY a")
    good = control.submit(storage, "DROP QUERY b")
    file = tmp_path / f"{control.REQUESTS}/{bad.name}.json"
    file.write_bytes(file.read_bytes().replace(b"QUERY a", b"QUERY b"))
    assert [r.name for r in control.waiting(storage)] == [good.name]
    found = control.answered(storage, bad.name)
    assert found is not None
    assert "damaged" in found["message"]


# -- whole engines --------------------------------------------------------------------------------

QUERIES = {
    "sums": "SELECT k, sum(v) AS t FROM s [RANGE 6 SECONDS] GROUP BY k",
    "rows": "SELECT k, v FROM s [PARTITION BY k ROWS 3]",
    "pairs": "SELECT a.v, b.v AS w FROM s [RANGE 3 SECONDS] a, s [ROWS 5] b WHERE a.k = b.k",
}
STEPS = 8


def rows(step: int) -> pa.Table:
    numbers = range(step * 10, step * 10 + 10)
    stamps = pa.array([n * 500_000 for n in numbers], pa.timestamp("us", "UTC"))
    return pa.table(
        {"k": [n * 7 % 3 for n in numbers], "v": [n % 11 for n in numbers], "ts": stamps}
    )


def opened(path: Path) -> Runner:
    runner = Runner(buckets=2, storage=open_storage(str(path), durable=False))
    runner.stream("s", rows(0), "ts", retain="1 hour")
    runner._tables.clear()
    return runner


def went_on(runner: Runner, first: int) -> dict[str, list[str]]:
    for step in range(first, STEPS):
        runner.feed({"s": rows(step)})
    runner.close()
    return {n: sorted(map(repr, runner.queries[n].results().to_pylist())) for n in QUERIES}


def resumed(path: Path) -> dict[str, list[str]]:
    runner = opened(path)
    runner.resume()
    return went_on(runner, STEPS // 2)


def test_no_damage_changes_an_answer(tmp_path: Path) -> None:
    """Bits of any file change while no engine runs: the next one gives the same answers, if it does
    not need the file, or refuses."""
    good = tmp_path / "good"
    runner = opened(good)
    for name, text in QUERIES.items():
        runner.query(text, name)
    for step in range(STEPS // 2):
        runner.feed({"s": rows(step)})
    whole = opened(tmp_path / "whole")
    for name, text in QUERIES.items():
        whole.query(text, name)
    expected = went_on(whole, 0)
    files = sorted(p.relative_to(good) for p in good.rglob("*") if p.is_file())
    rng = random.Random(3)
    refusals = 0
    for trial in range(40):
        path = tmp_path / f"trial-{trial}"
        shutil.copytree(good, path)
        victim = path / files[trial % len(files)]
        data = bytearray(victim.read_bytes())
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        victim.write_bytes(data)
        found: list[dict[str, list[str]]] = []
        refusal = refused(lambda path=path, found=found: found.append(resumed(path)))  # type: ignore[misc]
        assert victim.name in refusal if refusal else found == [expected], victim
        refusals += bool(refusal)
        shutil.rmtree(path)
    assert refusals >= 10


def test_a_lost_pack_is_refused_by_name(tmp_path: Path) -> None:
    runner = opened(tmp_path)
    runner.query(QUERIES["sums"], "sums")
    runner.feed({"s": rows(0)})
    for pack in (tmp_path / "log").glob("*.arrow"):
        pack.unlink()
    with pytest.raises(FileMissing, match="holds rows of a stream"):
        resumed(tmp_path)


def test_create_json_does_not_replace(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path))
    assert create_json(storage, "a.json", [1])
    assert not create_json(storage, "a.json", [2])
    assert load_json(storage, "a.json") == [1]
