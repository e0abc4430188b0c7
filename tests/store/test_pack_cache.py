"""Open packs of a process are bounded, and let go of what is deleted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from thalweg.spark.executor import DriverExecutor
from thalweg.store.pack_cache import LEAST_OPENED, MOST_BYTES, PackCache
from thalweg.store.packs import arrange, write_pack
from thalweg.store.storage import LocalStorage, MemoryStorage, Storage
from thalweg.testing import Runner

MANY = 400


@pytest.fixture(params=["local", "memory"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    return LocalStorage(str(tmp_path), False) if request.param == "local" else MemoryStorage()


def pack(storage: Storage, number: int, rows: int = 4) -> str:
    ts = np.arange(rows) + number
    name = f"log/{number}-0123456789ab.arrow"
    return write_pack(storage, name, arrange(pa.table({"v": ts}), ts, [("v",)])).name


def mapped(folder: Path) -> int:
    """Files of a folder that this process has mapped, deleted ones included."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    return len({line.split(maxsplit=5)[5] for line in lines if str(folder) in line})


def test_packs_that_are_deleted_are_let_go(storage: Storage) -> None:
    cache = PackCache(storage)
    kept = pack(storage, MANY)
    for number in range(MANY):
        name = pack(storage, number)
        opened = cache.open(name)
        cache.remember(("view", name, 1), opened.ts, 0)  # memory of the file, so it costs nothing
        cache.open(kept)
        storage.delete(name)
        del opened
        assert len(cache.names) <= LEAST_OPENED + 2
    assert kept in cache.names


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="Linux tells what is mapped")
def test_no_deleted_file_stays_mapped(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path), False)
    cache = PackCache(storage)
    for number in range(MANY):
        name = pack(storage, number)
        cache.remember((name, "v", "BIGINT"), cache.open(name).column("v").to_numpy(), 0)
        storage.delete(name)
    assert mapped(tmp_path) <= LEAST_OPENED + 2


def test_what_was_derived_goes_with_the_pack_it_maps(storage: Storage) -> None:
    """A limit in bytes would mean nothing if views of dropped packs stayed."""
    names = [pack(storage, n, 1000) for n in range(8)]
    size = int(storage.read_table(names[0]).nbytes)
    cache = PackCache(storage, 3 * size)
    for name in names:
        cache.remember(("view", name), cache.open(name).ts, 0)
    assert cache.names == set(names[-3:])
    assert cache.derived(("view", names[0])) is None
    assert cache.derived(("view", names[-1])) is not None


def test_packs_that_stay_are_not_opened_again(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [pack(storage, n) for n in range(100)]
    cache = PackCache(storage)
    first = [cache.open(n) for n in names]
    assert [cache.open(n) for n in names] == first


def test_all_places_of_a_process_have_one_limit() -> None:
    for places in (1, 3):
        executor = DriverExecutor(MemoryStorage(), places, None)  # type: ignore[arg-type]
        limits = [cache._packs.maxsize for cache in executor._caches]
        assert len(limits) == places
        assert sum(limits) <= MOST_BYTES


def test_a_long_run_holds_what_its_windows_hold() -> None:
    made = Runner()
    stamps = [pa.array([n * 1_000_000], pa.timestamp("us", "UTC")) for n in range(300)]
    made.stream("s", pa.table({"k": [1], "ts": stamps[0]}), "ts")
    made._tables.clear()
    made.query("SELECT k, count(*) AS n FROM s [RANGE 5 SECONDS] GROUP BY k", "q")
    held = []
    for stamp in stamps:
        made.feed({"s": pa.table({"k": [1], "ts": stamp})})
        cache = made.core.runner.executor.cache  # type: ignore[attr-defined]
        held.append(len(cache.names))
    assert max(held[150:]) <= max(held[:150])
    assert held[-1] < 60
