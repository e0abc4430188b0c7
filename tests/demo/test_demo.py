"""The demo: its data, its auditor, and a short run of the whole."""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from thalweg.demo import DELIVERED, QUERIES, check
from thalweg.demo.shop import AFTER, BEFORE, STREAMS, Feed, Shop, write_file
from thalweg.spark.terminal import bar, sparkline
from thalweg.testing.runner import Runner


def traded(seconds: float = 30.0, rate: int = 200) -> dict[str, pa.Table]:
    """Everything the shop delivers, habits changing half way."""
    shop = Shop(rate=rate)
    shop.trade(1000.0, 1000.0 + seconds / 2, BEFORE)
    shop.trade(1000.0 + seconds / 2, 1000.0 + seconds, AFTER)
    found = {s: shop.due(s, 1000.0 + seconds) for s in STREAMS}
    return {s: t for s, t in found.items() if t is not None}


def test_habits_drift() -> None:
    orders = traded()["orders"].sort_by("ts").to_pylist()
    half = len(orders) // 2
    before, after = orders[: half - 50], orders[half + 50 :]
    share = lambda rows: sum(r["region"] == "north" for r in rows) / len(rows)  # noqa: E731
    large = lambda rows: sum(r["amount"] > 300 for r in rows) / len(rows)  # noqa: E731
    assert share(before) > 0.5 > 0.2 > share(after)
    assert large(after) > 5 * large(before)


def test_shop_is_reproducible_and_loses_nothing() -> None:
    shop = Shop(rate=100)
    shop.trade(0.0, 10.0, BEFORE)
    parts = [shop.due("orders", float(t)) for t in range(30)]
    whole = pa.concat_tables([p for p in parts if p is not None])
    assert sorted(whole["id"].to_pylist()) == list(range(1000))
    assert traded()["payments"].equals(traded()["payments"])


def test_files_appear_whole(tmp_path: Path) -> None:
    write_file(pa.table({"a": [1]}), tmp_path, "0.parquet")
    assert [p.name for p in tmp_path.iterdir()] == ["0.parquet"]
    assert pq.read_table(tmp_path / "0.parquet").num_rows == 1


def test_feed_ends_by_itself(tmp_path: Path) -> None:
    feed = Feed(tmp_path, 1.0, Shop(rate=100))
    awake = time.time() + 0.3
    feed.start(ready=lambda: time.time() > awake)
    while not feed.is_over:
        time.sleep(0.05)
    feed.stop()
    assert feed.failure is None
    assert feed.has_drifted
    assert feed.rows["orders"] >= 50


@pytest.mark.parametrize("epochs", [1, 7])
def test_queries_equal_the_audit(epochs: int) -> None:
    """The demo's queries and its auditor agree, without Spark."""
    rows = traded()
    runner = Runner(epochs=epochs, buckets=2)
    for stream, table in rows.items():
        runner.stream(stream, table, lateness="10 seconds")
    for text in QUERIES:
        runner.sql(text)
    runner.run(final=True)
    orders, payments, shipments = (rows[s] for s in STREAMS)
    expected = {
        "big_orders": check.filtered(orders, 300, "north"),
        "delivered": check.joined(orders, payments, shipments, "card", 15),
        "revenue": check.windowed(orders, 10, 1),
    }
    for name, bag in expected.items():
        found = check.audit(name, runner.queries[name].results(), bag)
        assert found.equal, found
        assert found.rows > 10


def test_audit_notices_what_is_wrong() -> None:
    table = pa.table({"a": [1, 1, 2]})
    assert check.audit("q", table, Counter({(1,): 2, (2,): 1})).equal
    found = check.audit("q", table, Counter({(1,): 1, (3,): 1}))
    assert (found.missing, found.unexpected) == (1, 2)
    assert not found.equal


def test_queries_are_what_the_reader_sees() -> None:
    assert all(len(line) <= 78 for q in QUERIES for line in q.splitlines())
    assert "[RANGE 15 SECONDS]" in DELIVERED


def test_small_pictures() -> None:
    assert sparkline([0, 1, 2, 4]) == " ▂▄█"
    assert sparkline([0.0, 0.0]) == "  "
    assert bar(3, 4, 4) == "███"
    assert bar(1, 0, 4) == ""


@pytest.mark.spark
def test_short_demo(tmp_path: Path) -> None:
    picture = tmp_path / "demo.svg"
    done = subprocess.run(
        [sys.executable, "-m", "thalweg", "demo", "--seconds", "8", "--svg", str(picture)],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    assert "equal to a batch recomputation" in " ".join(done.stdout.split())
    assert done.stderr == ""
    assert picture.read_text("utf-8").startswith("<svg")
