"""Acceptance of the notes on continuous queries over data streams (priorart, part 1, section 4)."""

from __future__ import annotations

import statistics
from collections import Counter
from random import Random
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from thalweg.errors import UnboundedState
from thalweg.testing import Runner

UTC = pa.timestamp("us", "UTC")
SECOND = 1_000_000


def rows(count: int, step: int = SECOND, seed: int = 1) -> pa.Table:
    rng = Random(seed)
    return pa.table(
        {
            "k": pa.array([rng.randint(0, 3) for _ in range(count)], pa.int64()),
            "x": pa.array([rng.choice((0.1, 0.2, 0.7, 1e6, -3.5)) for _ in range(count)]),
            "ts": pa.array([i * step for i in range(count)], UTC),
        }
    )


def watched(text: str, batches: int = 24, size: int = 20) -> tuple[Any, list[dict[str, Any]]]:
    """The query's counters after every batch."""
    runner = Runner(buckets=2)
    stream = rows(batches * size)
    runner.stream("s", stream)
    query = runner.query(text, name="q")
    seen = []
    for i in range(batches):
        runner.feed({"s": stream.slice(i * size, size)})
        seen.append(query.stats())
    return query, seen


def grows(seen: list[dict[str, Any]], part: str) -> bool:
    return bool(seen[-1][part] > seen[len(seen) // 2][part] > seen[1][part])


def stays(seen: list[dict[str, Any]], part: str, most: int) -> bool:
    return all(s[part] <= most for s in seen)


CASES = {
    "selection, answer stored": (
        "SELECT k, x FROM s [UNBOUNDED] WHERE k > 0", "grows", "empty", "empty", "grows"),
    "self-join, streamed": (
        "SELECT ISTREAM a.x FROM s a, s b WHERE a.k = b.k WITH (unbounded = true)",
        "grows", "empty", "grows", "empty"),
    "group-by min, append-only": (
        "SELECT date_trunc('minute', ts) AS m, min(x) AS low FROM s "
        "GROUP BY date_trunc('minute', ts)", "grows", "bounded", "empty", "grows"),
    "group-by min with deletes": (
        "SELECT k, min(x) AS low FROM s [RANGE 30 SECONDS] GROUP BY k",
        "empty", "bounded", "bounded", "grows"),
    "tuple-at-a-time filter": (
        "SELECT ISTREAM k, x FROM s WHERE k = 1", "grows", "empty", "empty", "grows"),
    "trigger": (
        "SELECT ISTREAM a.k, a.x FROM s [NOW] a, (SELECT k, avg(x) AS mean FROM s "
        "[RANGE 20 SECONDS] GROUP BY k) m WHERE a.k = m.k AND a.x > 2 * m.mean",
        "grows", "empty", "bounded", "grows"),
    "materialized view": (
        "SELECT a.k, a.x, b.x AS y FROM s [RANGE 5 SECONDS] a, s [RANGE 5 SECONDS] b "
        "WHERE a.k = b.k", "empty", "bounded", "bounded", "grows"),
    "monotone rewrite": (
        "SELECT k, x FROM s [UNBOUNDED] UNION ALL SELECT k, x FROM s [UNBOUNDED]",
        "grows", "empty", "empty", "grows"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_parts_are_empty_bounded_or_growing(case: str) -> None:
    """priorart Q1"""
    text, *expected = CASES[case]
    _, seen = watched(text)
    for part, wanted in zip(("stream", "store", "scratch", "throw"), expected, strict=True):
        shown = [s[part] for s in seen]
        if wanted == "empty":
            assert stays(seen, part, 0), f"{part} {shown}"
        elif wanted == "bounded":
            half = len(shown) // 2
            assert 0 < max(shown) < 1000, f"{part} {shown}"
            assert max(shown[half:]) <= 1.2 * max(shown[:half]), f"{part} {shown}"
        else:
            assert grows(seen, part), f"{part} {shown}"


def test_every_row_is_accounted_for() -> None:
    """priorart Q1: what came is answered, kept or thrown."""
    _, seen = watched("SELECT ISTREAM k, x FROM s WHERE k = 1")
    last = seen[-1]
    pending = 1  # the newest instant is still open
    assert last["stream"] + last["throw"] + pending == 480


@pytest.mark.parametrize(
    "text",
    [
        "SELECT date_trunc('minute', ts) AS k, count(*) AS n FROM s "
        "GROUP BY date_trunc('minute', ts)",
        "SELECT k, count(*) AS n FROM s [RANGE 30 SECONDS] GROUP BY k",
        "SELECT k, x AS n FROM s [UNBOUNDED]",
    ],
)
def test_stream_and_store_are_the_answer(text: str) -> None:
    """priorart Q2"""
    runner = Runner(buckets=2)
    stream = rows(200)
    runner.stream("s", stream)
    query = runner.query(text)
    for i in range(10):
        runner.feed({"s": stream.slice(i * 20, 20)})
        stats = query.stats()
        seen = (stats["frontier"] - SECOND) // SECOND
        known = stream.slice(0, seen + 1)
        if "RANGE" in text:
            known = stream.slice(max(seen - 29, 0), min(seen + 1, 30))
        batch = _batch(text, known)
        assert stats["stream"] + stats["store"] == len(batch)
        now = Counter((r["k"], r["n"]) for r in query.invoke().to_pylist())
        assert now == Counter(batch)


def _batch(text: str, known: pa.Table) -> list[tuple[Any, Any]]:
    found = known.to_pylist()
    if "date_trunc" in text:
        return list(Counter(r["ts"].replace(second=0) for r in found).items())
    if "count" in text:
        return list(Counter(r["k"] for r in found).items())
    return [(r["k"], r["x"]) for r in found]


def test_a_closed_group_becomes_final_once() -> None:
    """priorart Q3, Q2: nothing of Stream is ever taken back."""
    query, seen = watched(
        "SELECT date_trunc('minute', ts) AS m, max(x) AS top FROM s "
        "GROUP BY date_trunc('minute', ts)"
    )
    finals = [s["stream"] for s in seen]
    assert finals == sorted(finals)
    assert finals[-1] == 7
    closed: set[Any] = set()
    for row in query.results().to_pylist():
        assert row["m"] not in closed, "a row of a closed group has changed"
        closed |= {
            r["m"]
            for r in query.results().to_pylist()
            if (row["__ts"] - r["m"]).total_seconds() >= 60
        }
    assert all(s["state_rows"] < 60 for s in seen)


@pytest.mark.parametrize("epochs", [1, 4, 60])
def test_min_is_right_after_the_minimum_has_left(epochs: int) -> None:
    """priorart Q4"""
    values = [5.0, 1.0, 4.0, 1.0, 9.0, 8.0, 7.0, 7.5, 2.0, 6.0]
    stream = pa.table({"x": values, "ts": pa.array([i * SECOND for i in range(len(values))], UTC)})
    runner = Runner(epochs=epochs)
    runner.stream("s", stream)
    queries = [
        runner.query(f"SELECT RSTREAM min(x) AS low, max(x) AS top FROM s [{w}]")
        for w in ("RANGE 2 SECONDS", "ROWS 3")
    ]
    runner.run()
    for query in queries:
        lows = query.results().column("low").to_pylist()
        assert lows == [min(values[max(i - 2, 0) : i + 1]) for i in range(len(values))]


def test_statistics_over_a_window_equal_batch_recomputation() -> None:
    """priorart C4: at every step, no drift however many rows have come and gone."""
    stream = rows(400, seed=3)
    runner = Runner(epochs=37, buckets=1)
    runner.stream("s", stream)
    query = runner.query(
        "SELECT RSTREAM avg(x) AS mean, variance(x) AS var, stddev_pop(x) AS dev, min(x) AS low, "
        "max(x) AS top FROM s [RANGE 24 SECONDS]"
    )
    runner.run()
    values = stream.column("x").to_pylist()
    found = query.results().to_pylist()
    assert len(found) == 400
    for i, row in enumerate(found):
        window = values[max(i - 24, 0) : i + 1]
        assert row["mean"] == pytest.approx(statistics.fmean(window), rel=1e-9)
        assert (row["low"], row["top"]) == (min(window), max(window))
        assert row["dev"] == pytest.approx(statistics.pstdev(window), rel=1e-9, abs=1e-12)
        if len(window) > 1:
            assert row["var"] == pytest.approx(statistics.variance(window), rel=1e-9, abs=1e-12)
        else:
            assert row["var"] is None


# -- the examples: packet headers of two links -------------------------------------------------


def trace(seed: int, count: int = 600) -> pa.Table:
    rng = Random(seed)
    return pa.table(
        {
            "saddr": pa.array([rng.randint(1, 12) for _ in range(count)], pa.int64()),
            "daddr": pa.array([rng.randint(1, 12) for _ in range(count)], pa.int64()),
            "id": pa.array([rng.randint(1, 40) for _ in range(count)], pa.int64()),
            "length": pa.array([rng.randint(40, 1500) for _ in range(count)], pa.int64()),
            "ts": pa.array(sorted(rng.randint(0, 300) * SECOND for _ in range(count)), UTC),
        }
    )


def traced() -> tuple[Runner, dict[str, pa.Table]]:
    traces = {"pt_c": trace(1), "pt_b": trace(2)}
    runner = Runner(epochs=5, buckets=2, restarts=(2,))
    for name, table in traces.items():
        runner.stream(name, table)
    return runner, traces


def test_example_one_notifies_of_busy_minutes() -> None:
    """priorart Q5: bytes per minute on the backbone, when they exceed a threshold."""
    runner, traces = traced()
    told: list[Any] = []
    runner.query(
        "SELECT ISTREAM sum(length) AS bytes FROM pt_b [RANGE 1 MINUTE SLIDE 1 MINUTE] "
        "HAVING sum(length) > 90000",
        callback=lambda t: told.extend(t.to_pylist()),
    )
    runner.run()
    backbone = traces["pt_b"]  # noqa: F841 - read by DuckDB
    wanted = duckdb.sql(
        "SELECT date_trunc('minute', ts) + INTERVAL 1 MINUTE AS at, sum(length) AS bytes "
        "FROM backbone GROUP BY 1 HAVING sum(length) > 90000 ORDER BY 1"
    ).fetchall()
    assert len(wanted) > 0
    assert [(t["__ts"].replace(tzinfo=None), t["bytes"]) for t in told] == [
        (at.replace(tzinfo=None), int(n)) for at, n in wanted
    ]


def test_example_two_compares_links_within_a_window_and_says_its_bound() -> None:
    """priorart Q5: the share of backbone packets that come from the customer's link."""
    runner, traces = traced()
    query = runner.query(
        "SELECT j.n / b.n AS share FROM (SELECT count(*) AS n FROM pt_c [RANGE 1 MINUTE] c, "
        "pt_b [RANGE 1 MINUTE] b WHERE c.saddr = b.saddr AND c.daddr = b.daddr AND c.id = b.id) j, "
        "(SELECT count(*) AS n FROM pt_b [RANGE 1 MINUTE]) b"
    )
    runner.run()
    assert query.stats()["bound"] == ["c: [RANGE 1 min]", "b: [RANGE 1 min]", "pt_b: [RANGE 1 min]"]
    customer, backbone = traces["pt_c"], traces["pt_b"]  # noqa: F841 - read by DuckDB
    ((share,),) = duckdb.sql(
        "WITH c AS (SELECT * FROM customer WHERE ts >= '1970-01-01 00:04:00+00'), "
        "b AS (SELECT * FROM backbone WHERE ts >= '1970-01-01 00:04:00+00') "
        "SELECT (SELECT count(*) FROM c JOIN b USING (saddr, daddr, id)) / "
        "(SELECT count(*) FROM b)"
    ).fetchall()
    assert [r["share"] for r in query.invoke().to_pylist()] == [pytest.approx(share, rel=1e-9)]


def test_example_three_lists_the_heaviest_pairs_in_order() -> None:
    """priorart Q5: pairs with more traffic than 95 % of the pairs, by traffic."""
    runner, traces = traced()
    load = "SELECT saddr, daddr, sum(length) AS load FROM pt_b [RANGE 1 HOUR] GROUP BY saddr, daddr"
    query = runner.query(
        f"SELECT RSTREAM l.saddr, l.daddr, l.load FROM ({load}) l, "
        f"(SELECT percentile_disc(0.95) WITHIN GROUP (ORDER BY load) AS mark FROM ({load}) p) t "
        "WHERE l.load > t.mark ORDER BY load DESC"
    )
    runner.run()
    backbone = traces["pt_b"]  # noqa: F841 - read by DuckDB
    wanted = duckdb.sql(
        "WITH loads AS (SELECT saddr, daddr, sum(length)::BIGINT AS load FROM backbone "
        "GROUP BY ALL) SELECT saddr, daddr, load FROM loads WHERE load > "
        "(SELECT quantile_disc(load, 0.95) FROM loads) ORDER BY load DESC, saddr, daddr"
    ).fetchall()
    results = query.results().to_pylist()
    last = max(r["__ts"] for r in results)
    shown = [(r["saddr"], r["daddr"], r["load"]) for r in results if r["__ts"] == last]
    assert 0 < len(wanted) <= 8
    assert shown == wanted


# -- limits ------------------------------------------------------------------------------------

JOIN = "SELECT a.k, a.x, b.x AS y FROM s [RANGE 1 HOUR] a, r [RANGE 1 HOUR] b WHERE a.k = b.k"


def limited(limit: int | None, engine_limit: int | None = None) -> tuple[Any, list[Any]]:
    runner = Runner(buckets=2)
    left, right = rows(600, seed=5), rows(600, seed=6)
    runner.stream("s", left)
    runner.stream("r", right)
    runner.core.settings.state_limit = engine_limit
    option = "" if limit is None else f" WITH (state_limit = {limit})"
    query = runner.query(JOIN + option, name="q")
    seen = []
    for i in range(30):
        runner.feed({"s": left.slice(i * 20, 20), "r": right.slice(i * 20, 20)})
        stats = query.stats()
        streams = [stats["streams"][s] for s in ("s", "r")]
        seen.append((stats["state_bytes"] + sum(s["kept_bytes"] for s in streams), stats))
        if i == 12:
            runner.restart()
            runner.core.settings.state_limit = engine_limit
    return query, seen


@pytest.mark.parametrize("whole", [False, True])
def test_a_join_at_its_limit_goes_on_and_says_so(whole: bool) -> None:
    """priorart Q6: by itself, or because all queries together reach the engine's limit."""
    exact, free = limited(None)
    limit = free[-1][0] // 3
    query, seen = limited(None, limit) if whole else limited(limit)
    assert max(size for size, _ in seen) <= limit
    assert seen[0][1]["approximate_since"] is None
    assert seen[-1][1]["approximate_since"] is not None
    assert query.status == "running"
    results, everything = query.results().to_pylist(), exact.results().to_pylist()
    since = seen[-1][1]["approximate_since"]
    early = [r for r in results if r["__ts"].timestamp() * SECOND < since]
    assert Counter(map(repr, early)) == Counter(
        repr(r) for r in everything if r["__ts"].timestamp() * SECOND < since
    )
    late = [r for r in results if r["__ts"].timestamp() * SECOND > since and r["__sign"] > 0]
    assert late, "the join must go on"
    known = Counter(repr(r) for r in everything if r["__sign"] > 0)
    assert not Counter(map(repr, late)) - known, "what it still finds is true"
    content = Counter[str]()
    for r in results:
        content[repr((r["k"], r["x"], r["y"]))] += r["__sign"]
    assert min(content.values()) >= 0, "nothing leaves that was not there"


def test_state_that_cannot_be_shortened_ends_its_query_alone() -> None:
    """priorart Q6"""
    runner = Runner()
    stream = rows(300)
    runner.stream("s", stream)
    bad = runner.query("SELECT x, ts, count(*) AS n FROM s [ROWS 200] GROUP BY x, ts "
                       "WITH (state_limit = 4000)", name="bad")  # fmt: skip
    good = runner.query("SELECT count(*) AS n FROM s")
    for i in range(15):
        runner.feed({"s": stream.slice(i * 20, 20)})
    assert bad.status == "failed"
    assert "exceeds its limit of 4,000 bytes" in str(bad.stats()["error"])
    assert good.invoke().to_pylist() == [{"n": 299}]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT ISTREAM a.x FROM s a, s b WHERE a.k = b.k",
        "SELECT k, min(x) AS low FROM s GROUP BY k",
        "SELECT DISTINCT k FROM s",
        "SELECT k FROM s [LANDMARK TIMESTAMP '1970-01-01 00:00:00'] GROUP BY k",
    ],
)
def test_unbounded_scratch_needs_consent(text: str) -> None:
    """priorart Q8"""
    runner = Runner()
    runner.stream("s", rows(10))
    with pytest.raises(UnboundedState, match="grow for ever") as refusal:
        runner.query(text)
    assert refusal.value.remedy
    query = runner.query(f"{text} WITH (unbounded = true)")
    runner.run()
    assert query.results().num_rows > 0
