"""Seeded random streams and tables, small and full of edges.

Instants collide, expiries collide with arrivals, keys are few and sometimes NULL, doubles include
NaN, both zeros, infinities and tenths that do not add up in binary.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

import pyarrow as pa

UNITS = {"MICROSECONDS": 1, "MILLISECONDS": 1_000, "SECONDS": 1_000_000}
SPANS = (10, 20, 40)
STREAM_TYPES = {
    "ts": pa.timestamp("us", "UTC"),
    "k": pa.int64(),
    "g": pa.int32(),
    "s": pa.string(),
    "x": pa.float64(),
    "n": pa.int64(),
}
TABLE_TYPES = {"k": pa.int64(), "g": pa.int32(), "s": pa.string(), "w": pa.float64()}

_STRINGS = ("a", "a", "a", "b", "b", "ab", "A", "", "ä", "日本", "7")
_DOUBLES = (0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, -0.1, -2.5, 0.0, -0.0)
_WILD_DOUBLES = (math.nan, 1e300, -1e300, math.inf, -math.inf, 5e-324, 2.0**53 + 2)
_LARGE = ((1 << 63) - 1, -(1 << 63), (1 << 63) - 2, 1 << 62, -(1 << 62))


@dataclass(frozen=True)
class GeneratedStream:
    """A stream's rows in arrival order, none more than `lateness` µs behind the latest before."""

    table: pa.Table
    timestamp: str = "ts"
    lateness: int = 0


@dataclass(frozen=True)
class Shape:
    """What the streams of one case have in common; `span` is counted in units."""

    unit: str
    span: int
    origin: int
    wild: bool
    large: bool

    @property
    def micros(self) -> int:
        return UNITS[self.unit]


def random_shape(rng: Random) -> Shape:
    unit = rng.choices(list(UNITS), (70, 15, 15))[0]
    origin = rng.choices((0, -17, 1_000_003), (70, 15, 15))[0] * UNITS[unit]
    return Shape(
        unit, rng.choice(SPANS), origin, wild=rng.random() < 0.25, large=rng.random() < 0.08
    )


def random_stream(rng: Random, shape: Shape, rows: int, whole: bool = False) -> GeneratedStream:
    """A stream of `rows` rows that has `ts`, `k`, `x` and most of the other columns, or all."""
    needed = ("ts", "k", "x")
    columns = [c for c in STREAM_TYPES if whole or c in needed or rng.random() < 0.85]
    stamps = sorted(_stamp(rng, shape) for _ in range(rows))
    lateness = rng.choice((0, 0, rng.randint(1, shape.span // 2), shape.span)) * shape.micros
    values = {c: [_value(rng, shape, c) for _ in range(rows)] for c in columns}
    values["ts"] = arrival_order(rng, stamps, lateness)
    schema = pa.schema([(c, STREAM_TYPES[c]) for c in columns])
    return GeneratedStream(pa.table(values, schema=schema), "ts", lateness)


def random_table(rng: Random, shape: Shape) -> pa.Table:
    """A static table of up to eight rows; keys repeat and may be NULL."""
    rows = rng.randint(2, 8)
    values = {c: [_value(rng, shape, c) for _ in range(rows)] for c in TABLE_TYPES}
    return pa.table(values, schema=pa.schema(list(TABLE_TYPES.items())))


def arrival_order(rng: Random, stamps: list[int], lateness: int) -> list[int]:
    """A random order in which no element is more than `lateness` behind an earlier one."""
    waiting, arrived = sorted(stamps), []
    while waiting:
        allowed = [i for i, ts in enumerate(waiting) if ts <= waiting[0] + lateness]
        arrived.append(waiting.pop(rng.choice(allowed)))
    return arrived


def cuts(seed: int, n_rows: int) -> list[int]:
    """Random places, in order and inside the rows, at which to cut them into batches."""
    rng = Random(f"cuts {seed} {n_rows}")
    inside = range(1, max(n_rows, 1))
    return sorted(rng.sample(inside, rng.randint(0, len(inside))))


def _stamp(rng: Random, shape: Shape) -> int:
    jitter = rng.randrange(shape.micros) if rng.random() < 0.1 else 0
    return shape.origin + rng.randint(0, shape.span) * shape.micros + jitter


def _value(rng: Random, shape: Shape, column: str) -> Any:
    if column != "ts" and rng.random() < 0.1:
        return None
    return _VALUES[column](rng, shape)


def _double(rng: Random, shape: Shape) -> float:
    if rng.random() < (0.2 if shape.wild else 0.03):
        return rng.choice(_WILD_DOUBLES if shape.wild else (math.nan,))
    return rng.choice(_DOUBLES)


def _integer(rng: Random, shape: Shape) -> int:
    return rng.choice(_LARGE) if shape.large and rng.random() < 0.3 else rng.randint(-4, 9)


_VALUES: dict[str, Callable[[Random, Shape], Any]] = {
    "ts": _stamp,
    "k": lambda rng, shape: rng.randint(0, 2),
    "g": lambda rng, shape: rng.randint(0, 3),
    "s": lambda rng, shape: rng.choice(_STRINGS),
    "x": _double,
    "w": _double,
    "n": _integer,
}
