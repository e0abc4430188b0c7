"""Cases that an independent review found wrong once; each is small and plain."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from thalweg.errors import BindError, ConfigError, UnboundedState
from thalweg.plan.logical import Field
from thalweg.plan.types import BIGINT, STRING
from thalweg.runtime.sources.push import as_records, from_items
from thalweg.store.leases import Lease, leases, renew
from thalweg.store.storage import MemoryStorage
from thalweg.testing import Runner

UTC = pa.timestamp("us", "UTC")
SECOND = 1_000_000


def rows(*given: tuple[float, str | None, float, int]) -> pa.Table:
    return pa.table(
        {
            "sym": pa.array([g[1] for g in given], pa.string()),
            "price": pa.array([g[2] for g in given], pa.float64()),
            "qty": pa.array([g[3] for g in given], pa.int64()),
            "ts": pa.array([int(g[0] * SECOND) for g in given], UTC),
        }
    )


def sectors(*given: tuple[str, str]) -> pa.Table:
    names, values = zip(*given, strict=True)
    return pa.table({"sym": pa.array(names), "sector": pa.array(values)})


def runner_over(**options: Any) -> Runner:
    runner = Runner(**options)
    runner.stream("t", rows(), lateness=options.pop("lateness", 0))
    runner.table("c", sectors(("A", "x")))
    return runner


def shown(table: pa.Table, *names: str) -> list[tuple[Any, ...]]:
    return [tuple(r[n] for n in names) for r in table.to_pylist()]


def test_a_global_aggregate_over_nothing_survives_folding() -> None:
    runner = runner_over()
    query = runner.query("SELECT count(*) AS n FROM t [RANGE 1 SECOND] WHERE sym = 'A'")
    for i, sym in enumerate("A" * 16 + "B" * 5 + "AB"):
        runner.feed({"t": rows((10 * i, sym, 1.0, 1))})
    runner.close()
    assert query.invoke().to_pylist() == [{"n": 0}]


@pytest.mark.parametrize("epochs", [1, 10])
def test_quantiles_of_distinct_values(epochs: int) -> None:
    prices = [1, 1, 1, 5, 9, 9, 2, 7, 7, 3]
    runner = Runner(epochs=epochs)
    runner.stream("t", rows(*((i, "A", float(p), p) for i, p in enumerate(prices))))
    query = runner.query("SELECT RSTREAM median(DISTINCT price) AS m FROM t [ROWS 6]")
    runner.run()
    wanted = []
    for i in range(10):
        some = sorted(set(prices[max(i - 5, 0) : i + 1]))
        half = (len(some) - 1) / 2
        wanted.append((some[int(half)] + some[-int(half) - 1]) / 2)
    assert query.results().column("m").to_pylist() == wanted


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "SELECT b.sym, b.n, c.sector FROM (SELECT sym, count(*) AS n FROM t "
            "[RANGE 1000 SECONDS] GROUP BY sym) b JOIN c ON b.sym = c.sym",
            {("A", 3, "y"), ("B", 1, "x")},
        ),
        (
            "SELECT b.sym, 0 AS n, '' AS sector FROM (SELECT DISTINCT sym FROM t "
            "[RANGE 1000 SECONDS]) b LEFT ANTI JOIN c ON b.sym = c.sym",
            {("Z", 0, "")},
        ),
    ],
)
def test_relations_meet_the_first_change_of_a_table(text: str, expected: set[Any]) -> None:
    runner = runner_over()
    query = runner.query(text)
    runner.feed({"t": rows((1, "A", 1, 1), (2, "A", 1, 1), (3, "B", 1, 1), (4, "Z", 1, 1))})
    runner.table("c", sectors(("A", "y"), ("B", "x")))
    runner.feed({"t": rows((10, "Z", 1, 1), (20, "A", 1, 1), (21, "Z", 1, 1))})
    runner.close()
    assert set(shown(query.invoke(), "sym", "n", "sector")) == expected


@pytest.mark.parametrize("kind", ["LEFT JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN", "JOIN"])
def test_streams_without_a_window_are_not_kept_for_a_table(kind: str) -> None:
    """They meet it as it is when they come, and nothing is remembered."""
    runner = runner_over()
    query = runner.query(f"SELECT ISTREAM t.qty FROM t {kind} c ON t.sym = c.sym")
    where = runner.query("SELECT ISTREAM qty FROM t WHERE sym IN (SELECT sym FROM c)")
    for i in range(40):
        if i == 20:
            runner.table("c", sectors(("B", "x")))
        runner.feed({"t": rows((i, "AB"[i % 2], 1, i), (i + 0.5, None, 1, 100 + i))})
    runner.close()
    met = [i for i in range(40) if ("A" if i < 20 else "B") == "AB"[i % 2]]
    alone = sorted(set(range(40)) - set(met)) + list(range(100, 140))
    wanted = {"LEFT JOIN": sorted(met + alone), "LEFT ANTI JOIN": sorted(alone)}.get(kind, met)
    assert sorted(query.results().column("qty").to_pylist()) == wanted
    assert where.results().column("qty").to_pylist() == met
    kept = sum(p.rows for p in runner.core.state.streams["t"].packs)
    assert kept <= 4
    assert query.stats()["scratch"] == 0


@pytest.mark.parametrize(
    "text",
    [
        "SELECT count(DISTINCT qty) AS n FROM t",
        "SELECT median(price) AS n FROM t",
        "SELECT t.sym FROM t FULL JOIN c ON t.sym = c.sym",
        "SELECT date_trunc('minute', ts) AS m, count(*) AS n FROM t "
        "WHERE sym IN (SELECT sym FROM c) GROUP BY date_trunc('minute', ts)",
    ],
)
def test_what_keeps_values_for_ever_needs_consent(text: str) -> None:
    with pytest.raises(UnboundedState):
        runner_over().query(text)


def test_feeding_goes_on_where_it_stopped() -> None:
    feed = from_items(i for i in range(12))
    first = feed(0)
    taken = [next(first) for _ in range(4)]
    next(first)  # handed over, but nobody took it in
    rest = list(feed(taken[-1][0]))
    assert [item for _, item in taken + rest] == list(range(12))


def test_items_that_are_no_rows_are_rejects() -> None:
    fields = (Field("k", BIGINT), Field("s", STRING))
    for item, count in ((pa.table({"k": [1, 2]}), 2), (5, 1)):
        found = as_records(item, fields)
        assert found.table.num_rows == count
        assert found.malformed is not None
        assert found.malformed.null_count == 0


def test_rows_below_the_floor_never_come_back() -> None:
    runner = Runner()
    runner.stream("t", rows(), lateness="25 seconds")
    text = "SELECT qty FROM t [RANGE 60 SECONDS SLIDE 60 SECONDS] WITH (state_limit = 800)"
    query = runner.query(text)
    for i in range(30):
        runner.feed({"t": rows(*((30 * i + 3 * j, "A", 1.0, 10 * i + j) for j in range(10)))})
    runner.feed({"t": rows((5000, "Z", 1.0, 1))})
    runner.feed({"t": rows((5200, "Z", 1.0, 2))})
    runner.close()
    assert query.stats()["approximate_since"] is not None
    assert query.invoke().to_pylist() == [{"qty": 2}]


def test_versions_of_a_table_only_go_forward() -> None:
    runner = runner_over()
    runner.query("SELECT t.sym, c.sector FROM t [RANGE 100 SECONDS] t JOIN c ON t.sym = c.sym")
    runner.feed({"t": rows((1, "A", 1, 1), (20, "A", 1, 1))})
    with pytest.raises(ConfigError, match="an instant that is past"):
        runner.table("c", sectors(("A", "y")), at=5 * SECOND)
    runner.table("c", sectors(("A", "y")), at=100 * SECOND)
    with pytest.raises(ConfigError, match="a later version is known"):
        runner.table("c", sectors(("A", "x")), at=50 * SECOND)


def test_leases_of_followers_with_like_names() -> None:
    storage = MemoryStorage()
    now = 4e9
    renew(storage, Lease("job-2", "q", 3, now))
    renew(storage, Lease("job", "q", 9, now))
    renew(storage, Lease("a/b", "q", 1, 1.0))
    renew(storage, Lease("a/b", "q", 1, now))
    assert {(x.follower, x.epoch, x.renewed) for x in leases(storage)} == {
        ("job-2", 3, now), ("job", 9, now), ("a/b", 1, now)
    }  # fmt: skip


def test_columns_over_different_partitions_do_not_depend_on_their_order() -> None:
    found = []
    columns = ["LEAD(price) OVER (PARTITION BY sym) AS nx", "LAG(price) OVER () AS pv"]
    for chosen in (columns, columns[::-1]):
        runner = Runner(epochs=3)
        data = [(1, "A", 1, 1), (2, "B", 2, 1), (3, "B", 3, 1), (4, "A", 4, 1), (5, "B", 5, 1)]
        runner.stream("t", rows(*data))
        query = runner.query(f"SELECT price, {', '.join(chosen)} FROM t")
        runner.run()
        found.append(sorted(shown(query.results(), "price", "nx", "pv"), key=repr))
    assert found[0] == found[1] == [(1.0, 4.0, None), (2.0, 3.0, 1.0), (3.0, 5.0, 2.0)]
    with pytest.raises(BindError, match="one partition only"):
        runner.query("SELECT LEAD(price) OVER (), LEAD(price) OVER (PARTITION BY sym) FROM t")


@pytest.mark.parametrize("by", ["sym", "1", "s", "t.sym"])
def test_sessions_are_of_what_the_query_groups_by(by: str) -> None:
    runner = Runner()
    runner.stream("t", rows((1, "A", 1, 1), (5, "B", 1, 1), (9, "A", 1, 1), (13, "B", 1, 1)))
    query = runner.query(
        f"SELECT ISTREAM sym AS s, count(*) AS n FROM t [SESSION GAP 5 SECONDS] GROUP BY {by}"
    )
    runner.run()
    assert query.results().column("n").to_pylist() == [1, 1, 1, 1]


@pytest.mark.parametrize("form", ["json", "csv"])
def test_arrays_of_anything_can_be_written(tmp_path: Any, form: str) -> None:
    runner = Runner()
    runner.stream("t", rows((1, "A", float("nan"), 1), (2, "A", 2.5, 2)))
    runner.query(
        "SELECT array_agg(ts) AS times, array_agg(price) AS prices, "
        "array_agg(CAST(qty AS DECIMAL(5,2))) AS amounts FROM t [RANGE 1 MINUTE] "
        f"INTO CHANGELOG '{tmp_path}' FORMAT {form}",
        name="q",
    )
    runner.run()
    assert runner.core.delivery.failure("q") is None
    text = "".join(f.read_text() for f in tmp_path.iterdir())
    assert "NaN" not in text
    assert "datetime" not in text
