"""NULL, NaN and zeros as keys of joins, groups and partitions."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

from thalweg.testing.compare import ResultRow, canonical, from_table
from thalweg.testing.runner import Runner

SECOND = 1_000_000
STAMP = pa.timestamp("us", "UTC")


def odd_keys() -> pa.Table:
    keys = [None, None, math.nan, math.nan, -math.nan, 0.0, -0.0]
    return pa.table({
        "ts": pa.array([i * SECOND for i in range(len(keys))], STAMP),
        "x": pa.array(keys, pa.float64()),
        "v": list(range(len(keys))),
    })  # fmt: skip


def emitted(sql: str, how: dict[str, Any]) -> Counter[ResultRow]:
    made = Runner(**how)
    made.stream("s", odd_keys())
    made.stream("r", odd_keys())
    query = made.query(sql)
    made.run()
    return canonical(from_table(query.results()))


HOW: list[dict[str, Any]] = [{}, {"epochs": 3, "buckets": 4}, {"epochs": 7, "restarts": (2, 4)}]


@pytest.mark.parametrize("how", HOW)
def test_null_never_joins_nan_and_zero_do(how: dict[str, Any]) -> None:
    found = emitted("SELECT ISTREAM a.v, b.v AS w FROM s [RANGE 1 DAY] a, r [RANGE 1 DAY] b "
                    "WHERE a.x = b.x", how)  # fmt: skip
    pairs = {values for _, _, values in found}
    nans, zeros = (2, 3, 4), (5, 6)
    assert pairs == {(a, b) for group in (nans, zeros) for a in group for b in group}


@pytest.mark.parametrize("how", HOW)
def test_null_and_nan_are_one_group_each(how: dict[str, Any]) -> None:
    found = emitted("SELECT count(*) AS c, max(v) AS m FROM s [RANGE 1 DAY] GROUP BY x", how)
    state: Counter[Any] = Counter()
    for (_, sign, values), n in found.items():
        state[values] += sign * n
    assert +state == Counter([(2, 1), (3, 4), (2, 6)])


@pytest.mark.parametrize("how", HOW)
def test_null_and_nan_are_one_partition_each(how: dict[str, Any]) -> None:
    found = emitted("SELECT v FROM s [PARTITION BY x ROWS 1]", how)
    state: Counter[Any] = Counter()
    for (_, sign, values), n in found.items():
        state[values] += sign * n
    assert +state == Counter([(1,), (4,), (6,)])
