"""Table statistics as a whole: their size, their bytes, their version, and the cache of them."""

from __future__ import annotations

import datetime as dt
from random import Random

import joins_by_hand
import numpy as np
import pyarrow as pa
import pytest

from thalweg.estimate.cached.array_file import UnreadableStatistics
from thalweg.estimate.cached.cached_bound import cached_bound
from thalweg.estimate.cached.split_limit import split_limit
from thalweg.estimate.cached.statistics_cache import StatisticsCache
from thalweg.estimate.cached.table_statistics import TableStatistics, likely_join_columns


def posts(length: int, seed: int = 1) -> pa.Table:
    rng = np.random.default_rng(seed)
    times = dt.datetime(2020, 1, 1).timestamp() + rng.integers(0, 10**8, length)
    return pa.table(
        {
            "id": np.arange(length),
            "owner": rng.zipf(1.3, length) % 3_000,
            "score": rng.zipf(1.8, length) % 100,
            "created": pa.array(times.astype(np.int64), pa.timestamp("s")),
            "tag": pa.array([f"tag {i % 37}" for i in range(length)]),
        }
    )


@pytest.mark.parametrize("limit", [2_500, 5_000, 12_000, 30_000, 60_000, 150_000, 1_000_000])
def test_statistics_keep_their_limit_and_use_it(limit: int) -> None:
    found = TableStatistics.build(posts(10_000), ["id", "owner"], None, limit)
    assert found.nbytes == len(found.to_bytes()) <= limit
    assert found.nbytes > limit / 3 or limit > 100_000
    assert found.row_sketch is not None or found.pair_sketch is not None


def test_no_table_is_too_large_for_a_limit() -> None:
    sizes = [TableStatistics.build(posts(n), ["owner"], None, 8_000).nbytes for n in (500, 50_000)]
    assert max(sizes) <= 8_000


def test_statistics_read_back_give_the_same_bounds() -> None:
    for seed in range(40):
        random = Random(seed)
        query, tables = joins_by_hand.random_join("shared key and chain", random)
        limit = random.choice([1_000, 4_000, 100_000])
        joins = {r.relation: r.attributes for r in query.inputs}
        built = {
            n: TableStatistics.build(t, joins[n], None, limit, f"version {seed}")
            for n, t in tables.items()
        }
        read = {n: TableStatistics.from_bytes(s.to_bytes()) for n, s in built.items()}
        assert cached_bound(query, read) == cached_bound(query, built)
        assert all(read[n].to_bytes() == s.to_bytes() for n, s in built.items())
        assert {s.version for s in read.values()} == {f"version {seed}"}


@pytest.mark.parametrize("cut", [0, 4, 20, 200, -1])
def test_bytes_that_are_no_statistics_are_refused(cut: int) -> None:
    data = TableStatistics.build(posts(500), ["owner"], None, 10_000).to_bytes()
    with pytest.raises(UnreadableStatistics):
        TableStatistics.from_bytes(data[:cut])
    with pytest.raises(UnreadableStatistics):
        TableStatistics.from_bytes(b"x" + data[1:])


def test_join_columns_are_guessed_by_their_different_values() -> None:
    assert likely_join_columns(posts(10_000)) == ["id", "owner"]
    found = TableStatistics.build(posts(10_000), None, ["score"], 50_000)
    assert set(found.keys) == {"id", "owner"}
    assert found.row_sketch is not None
    assert set(found.row_sketch.codes) == {"score"}


def test_a_common_limit_is_split_and_small_tables_lose_least() -> None:
    tables = {"large": posts(20_000), "small": posts(500), "tiny": posts(3)}
    arguments = {n: (t, ["id", "owner"], None) for n, t in tables.items()}
    for limit in (10_000, 60_000, 100_000, 10**6):
        shares = split_limit(arguments, limit)
        assert sum(shares.values()) <= limit
        assert shares["large"] >= shares["small"] >= shares["tiny"] > 0
        assert shares["small"] / 500 > shares["large"] / 20_000
        made = {n: TableStatistics.build(*arguments[n], shares[n]) for n in tables}
        assert sum(s.nbytes for s in made.values()) <= limit
        assert sum(s.nbytes for s in made.values()) > limit / 3 or limit == 10**6
        if limit == 100_000:
            codes = [made[n].row_sketch.codes["created"].size for n in ("large", "small")]
            assert codes[1] >= 4 * codes[0]


def test_a_table_without_rows_or_columns() -> None:
    empty = posts(10).slice(0, 0)
    assert TableStatistics.build(empty, ["owner"], None, 10_000).rows == 0
    bare = pa.table({"x": pa.array([1, 2, 3])})
    found = TableStatistics.build(bare, [], [], 10_000)
    assert TableStatistics.from_bytes(found.to_bytes()).rows == 3


def some(version: str, size: int = 2_000) -> TableStatistics:
    return TableStatistics.build(posts(size), ["owner"], ["score"], 10_000, version)


def test_the_cache_drops_what_was_used_longest_ago() -> None:
    one = some("1")
    cache = StatisticsCache(int(one.nbytes * 2.5))
    assert cache.put("a", one)
    assert cache.put("b", some("1"))
    assert cache.get("a", "1") is one
    assert cache.put("c", some("1"))
    assert "b" not in cache
    assert "a" in cache
    assert "c" in cache
    assert cache.nbytes == 2 * one.nbytes


def test_the_cache_never_gives_statistics_of_another_version() -> None:
    cache = StatisticsCache(10**6)
    cache.put("a", some("1"))
    assert cache.get("a", "2") is None
    assert "a" not in cache
    assert cache.nbytes == 0
    cache.put("a", some("2"))
    assert cache.get("a", "2") is not None
    cache.drop("a")
    assert cache.get("a", "2") is None


def test_what_is_larger_than_the_cache_is_not_kept() -> None:
    cache = StatisticsCache(100)
    assert not cache.put("a", some("1"))
    assert cache.nbytes == 0
    assert cache.get("a", "1") is None
