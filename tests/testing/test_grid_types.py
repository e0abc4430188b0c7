"""The grid over every type of the language: as key, group, partition, order and aggregate."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from thalweg.testing.generators import Case, GeneratedStream
from thalweg.testing.grid import VARIANTS, check_case

DAY = dt.date(2024, 2, 28)
MOMENT = dt.datetime(2024, 2, 28, 23, 59, 59, 999_999, tzinfo=dt.UTC)

TYPES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "boolean": (pa.bool_(), [True, False]),
    "tinyint": (pa.int8(), [-128, 0, 127]),
    "smallint": (pa.int16(), [-(2**15), 0, 7]),
    "int": (pa.int32(), [-(2**31), 0, 2**31 - 1]),
    "bigint": (pa.int64(), [-(2**63), 0, 2**63 - 1]),
    "float": (pa.float32(), [0.1, -0.0, 0.0, float("nan"), float("inf")]),
    "double": (pa.float64(), [0.1, -0.0, 0.0, float("nan"), -float("inf")]),
    "string": (pa.string(), ["", "a", "b", "ä", "日本", "a longer string than the others"]),
    "binary": (pa.binary(), [b"", b"\x00", b"\xff\x00", b"abc"]),
    "date": (pa.date32(), [DAY, DAY + dt.timedelta(1), dt.date(1969, 12, 31)]),
    "timestamp": (pa.timestamp("us", "UTC"), [MOMENT, MOMENT + dt.timedelta(microseconds=1)]),
    "decimal": (pa.decimal128(12, 3), [Decimal("1.500"), Decimal("-0.001"), Decimal("0.000")]),
    "wide decimal": (pa.decimal128(38, 10), [Decimal("1234567890123456789.5"), Decimal("-1")]),
}
QUERIES = {
    "shown": "SELECT v, n FROM s1 [RANGE 4 SECONDS]",
    "bare": "SELECT v FROM s1 WHERE v IS NOT NULL",
    "key": "SELECT a.v, b.n FROM s1 [RANGE 4 SECONDS] a, s2 [ROWS 4] b WHERE a.v = b.v",
    "two keys": "SELECT ISTREAM a.v FROM s1 [RANGE 3 SECONDS] a, s2 [RANGE 3 SECONDS] b "
    "WHERE a.v = b.v AND a.n = b.n",
    "group": "SELECT v, count(*) AS c, sum(n) AS t FROM s1 [RANGE 5 SECONDS] GROUP BY v",
    "extremes": "SELECT n, min(v) AS l, max(v) AS h, count(v) AS c FROM s1 [RANGE 5 SECONDS] "
    "GROUP BY n",
    "everything": "SELECT min(v) AS l, max(v) AS h FROM s1 [ROWS 5]",
    "partition": "SELECT DSTREAM v, n FROM s1 [PARTITION BY v ROWS 1]",
    "order": "SELECT v, n FROM s1 [ROWS 3]",
    "compared": "SELECT a.n, b.n AS m FROM s1 [NOW] a, s2 [RANGE 2 SECONDS] b "
    "WHERE a.n = b.n AND a.v < b.v",
    "endless": "SELECT v, max(n) AS h FROM s1 GROUP BY v WITH (unbounded = true)",
}


def stream(rng: Random, kind: str, rows: int = 24) -> GeneratedStream:
    arrow, values = TYPES[kind]
    stamps = sorted(rng.randint(0, 15) * 1_000_000 for _ in range(rows))
    table = pa.table({
        "ts": pa.array(stamps, pa.timestamp("us", "UTC")),
        "v": pa.array([rng.choice([*values, None]) for _ in range(rows)], arrow),
        "n": pa.array([rng.randint(0, 2) for _ in range(rows)], pa.int64()),
    })  # fmt: skip
    return GeneratedStream(table)


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("kind", TYPES)
def test_every_type_everywhere(kind: str, query: str) -> None:
    rng = Random(f"{kind} {query}")
    streams = {"s1": stream(rng, kind), "s2": stream(rng, kind)}
    sql = QUERIES[query]
    used = {n: s for n, s in streams.items() if f"{n} " in sql}
    case = Case(7, query, used, {}, sql, frozenset())
    check_case(case, VARIANTS[1:3])


MIXED: dict[str, tuple[pa.DataType, list[Any]]] = {
    "tinyint": (pa.int8(), [0, 1, 2]),
    "int": (pa.int32(), [0, 1, 2]),
    "bigint": (pa.int64(), [0, 1, 2, 2**53, 2**53 + 1]),
    "float": (pa.float32(), [0.0, -0.0, 1.0, 2.5, float("nan")]),
    "double": (pa.float64(), [0.0, -0.0, 1.0, 2.5, float("nan"), 2.0**53]),
    "decimal": (pa.decimal128(10, 1), [Decimal("0.0"), Decimal("1.0"), Decimal("2.5")]),
    "narrow decimal": (pa.decimal128(4, 0), [Decimal("0"), Decimal("1"), Decimal("2")]),
}


@pytest.mark.parametrize("right", MIXED)
@pytest.mark.parametrize("left", MIXED)
def test_equal_numbers_of_different_types_meet(left: str, right: str) -> None:
    """D3: one hash of normalised keys, so equal values meet whatever their types."""
    rng = Random(f"{left} {right}")
    streams = {}
    for name, kind in (("s1", left), ("s2", right)):
        arrow, values = MIXED[kind]
        rows = 20
        stamps = sorted(rng.randint(0, 15) for _ in range(rows))
        streams[name] = GeneratedStream(pa.table({
            "ts": pa.array(stamps, pa.timestamp("us", "UTC")),
            "v": pa.array([rng.choice([*values, None]) for _ in range(rows)], arrow),
        }))  # fmt: skip
    sql = (
        "SELECT a.v, b.v AS w FROM s1 [RANGE 6 MICROSECONDS] a, s2 [RANGE 6 MICROSECONDS] b "
        "WHERE a.v = b.v"
    )
    check_case(Case(3, "join", streams, {}, sql, frozenset()), VARIANTS[1:3])
