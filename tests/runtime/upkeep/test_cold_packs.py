"""What no window reaches and RETAIN keeps is written to take little room, and stays readable."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from thalweg.exec.upkeep import merge_packs
from thalweg.runtime.state.open_path import sweep
from thalweg.runtime.upkeep import background_merges as aside
from thalweg.runtime.upkeep import compaction
from thalweg.store.storage import LocalStorage
from thalweg.testing.compare import difference, from_table
from thalweg.testing.generators import random_case
from thalweg.testing.grid import VARIANTS, check_variant, reference_result
from thalweg.testing.runner import Runner


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Packs are large from 64 rows on, pieces have 50."""
    monkeypatch.setattr(compaction, "SMALLEST_TIER", 1)
    monkeypatch.setattr(merge_packs, "COLD_ROWS", 50)
    monkeypatch.setattr(aside, "COLD_SELDOM", 1)


def rows(since: int, until: int) -> pa.Table:
    rng = np.random.default_rng(since)
    count = until - since
    return pa.table(
        {
            "k": rng.integers(0, 9, count),
            "s": pa.array([f"sensor {i % 5}" for i in range(count)], pa.string()),
            "x": rng.random(count),
            "ts": pa.array(np.arange(since, until), pa.timestamp("us", "UTC")),
        }
    )


def kept(storage: LocalStorage | None = None, retain: str = "1 hour") -> Runner:
    made = Runner(storage=storage)
    made.stream("s", rows(0, 0), retain=retain, key="k")
    made.query("SELECT count(*) AS n FROM s [RANGE 20 MICROSECONDS]", name="live")
    return made


def fed(made: Runner, since: int, until: int) -> None:
    for at in range(since, until, 10):
        made.feed({"s": rows(at, at + 10)})


def test_what_no_window_reaches_becomes_cold() -> None:
    made = kept()
    fed(made, 0, 2000)
    packs = made.core.state.streams["s"].packs
    cold = [p for p in packs if p.is_cold]
    assert sum(p.rows for p in packs) == 2000
    assert sum(p.rows for p in cold) >= 1000
    assert all(p.rows <= 50 for p in cold)
    assert all(p.max_ts < made.core.state.queries["live"].progress.frontier for p in cold)
    assert [p.min_ts for p in cold] == sorted(p.min_ts for p in cold)
    assert made.core.stats.kept_rows("s") == 2000


@pytest.mark.parametrize("history", ["replay", "seed"])
def test_late_queries_see_what_is_cold(history: str) -> None:
    """priorart AU-4: also by the index of the KEY."""
    made = kept()
    shapes = {
        "filter": "SELECT ISTREAM x FROM s WHERE x > 0.7",
        "key": "SELECT ISTREAM x, s FROM s WHERE k = 3",
        "groups": "SELECT s, count(*) AS n, max(x) AS m FROM s [RANGE 1 MINUTE] GROUP BY s",
        "rows": "SELECT sum(x) AS t FROM s [PARTITION BY k ROWS 300]",
    }
    for name, sql in shapes.items():
        made.query(f"{sql} WITH (unbounded = true)", name=f"early_{name}")
    fed(made, 0, 400)
    assert not any(p.is_cold for p in made.core.state.streams["s"].packs), "in use"
    for name in shapes:
        made.queries[f"early_{name}"].drop()
    fed(made, 400, 1200)
    early, late = Runner(), made
    early.stream("s", rows(0, 0), retain="1 hour")
    for name, sql in shapes.items():
        early.query(sql, name=name)
    for at in range(0, 1200, 10):
        early.feed({"s": rows(at, at + 10)})
    cuts = {name: early.queries[name].results().num_rows for name in ("filter", "key")}
    made.restart()
    for name, sql in shapes.items():
        late.query(f"{sql} WITH (history = '{history}')", name=name)
    for runner in (early, late):
        for at in range(1200, 1300, 10):
            runner.feed({"s": rows(at, at + 10)})
        runner.close()
    for name in ("groups", "rows"):
        one, two = early.queries[name].invoke(), late.queries[name].invoke()
        assert difference(_bag(one), _bag(two)) is None, name
    for name in ("filter", "key"):
        one, two = early.queries[name].results(), late.queries[name].results()
        if history == "replay":
            assert difference(from_table(one), from_table(two)) is None, name
        else:
            assert one.num_rows - cuts[name] <= two.num_rows < cuts[name]


def _bag(table: pa.Table) -> object:
    at = pa.array([0] * table.num_rows, pa.timestamp("us", "UTC"))
    return from_table(table.replace_schema_metadata(None).append_column("__ts", at))


def test_what_is_cold_expires_like_everything_else(tmp_path: Path) -> None:
    made = kept(LocalStorage(str(tmp_path), False), retain="500 microseconds")
    fed(made, 0, 3000)
    packs = made.core.state.streams["s"].packs
    assert any(p.is_cold for p in packs)
    assert min(p.max_ts for p in packs) >= 2990 - 500
    made.restart()
    sweep(made.storage, made.core.state)  # what was being written just now
    files = [n for n in made.storage.listing("log") if n.endswith(".parquet")]
    assert sorted(files) == sorted(p.name for p in packs if p.is_cold)


def test_cold_packs_take_less_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merge_packs, "COLD_ROWS", 1 << 18)
    monkeypatch.setattr(compaction, "SMALLEST_TIER", 4096)
    sizes = {}
    for tier in (2, 99):
        monkeypatch.setattr(compaction, "COLD_TIER", tier)
        made = kept(LocalStorage(str(tmp_path / str(tier)), False))
        for at in range(0, 600_000, 300_000):
            made.feed({"s": rows(at, at + 300_000)})
        for at in range(600_000, 600_080, 10):
            made.feed({"s": rows(at, at + 10)})
        packs = made.core.state.streams["s"].packs
        assert any(p.is_cold for p in packs) == (tier == 2)
        sizes[tier] = sum(p.bytes for p in packs)
    assert sizes[2] < 0.6 * sizes[99]


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_any_query_over_what_is_cold(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Late queries over the random cases' streams, everything cold that can be."""
    monkeypatch.setattr(compaction, "COLD_TIER", 0)
    monkeypatch.setattr(compaction, "FAN_IN", 2)
    monkeypatch.setattr(aside, "LARGE", 10**9)
    for seed in range(first, first + 20):
        case = random_case(seed)
        check_variant(case, VARIANTS[7], reference_result(case))


def test_uneven_packs_before_a_cold_one_are_put_together() -> None:
    """However sizes alternate, a few packs are left between cold ones."""
    made = kept()
    at = 0
    for i in range(400):
        size = 3 if i % 2 else 12
        made.feed({"s": rows(at, at + size)})
        at += size
    packs = made.core.state.streams["s"].packs
    cold = sum(p.is_cold for p in packs)
    assert cold > 10
    assert len(packs) - cold < 3 * compaction.MOST_UNEVEN
