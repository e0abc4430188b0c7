"""Rows under MODEL, what a query answers over them at an instant, and the same by definition."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from thalweg.testing import Runner

SECOND = 1_000_000
T0 = 1_700_000_040 * SECOND
"""A whole minute."""
MODEL = "MODEL (x = x + v*t + a*t^2)"
Row = tuple[float, str, str, float | None, float | None, float | None]
"""Seconds since T0, key, group, and the coefficients of x."""


def instant(seconds: float) -> int:
    return T0 + round(seconds * SECOND)


def table(rows: Sequence[Row]) -> pa.Table:
    columns = list(zip(*rows, strict=True))
    return pa.table(
        {
            "k": list(columns[1]),
            "g": list(columns[2]),
            **{n: pa.array(columns[i], pa.float64()) for n, i in (("x", 3), ("v", 4), ("a", 5))},
            "ts": pa.array([instant(s) for s in columns[0]], pa.timestamp("us", "UTC")),
        }
    )


def ran(sql: str, rows: Sequence[Row], epochs: Any = 1, **options: Any) -> Runner:
    """The query `q`, after all rows and two minutes more."""
    runner = Runner(epochs, **options)
    last = max(r[0] for r in rows)
    later: Row = (last + 120, "nobody", "none", None, None, None)
    runner.stream("s", table([*rows, later]), key=["k"])
    runner.query(sql, "q")
    runner.run()
    return runner


def answered(sql: str, rows: Sequence[Row], **options: Any) -> list[dict[str, Any]]:
    """The rows of the answer, in an order of their own."""
    found = ran(sql, rows, **options).queries["q"].results().to_pylist()
    return sorted(found, key=repr)


def micros(stamp: datetime) -> int:
    return round((stamp - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() * SECOND)


@dataclass(frozen=True, slots=True)
class Answer:
    """A relation of functions of time."""

    rows: list[dict[str, Any]]

    @property
    def breaks(self) -> list[int]:
        return sorted({micros(r["__ts"]) for r in self.rows})

    def at(self, ts: int) -> list[dict[str, Any]]:
        """The rows that are there at an instant, modeled columns by their values then."""
        there: dict[str, tuple[int, dict[str, Any]]] = {}
        for row in self.rows:
            if micros(row["__ts"]) <= ts:
                content = repr({n: v for n, v in row.items() if n not in ("__ts", "__sign")})
                count, _ = there.get(content, (0, row))
                there[content] = count + row["__sign"], row
        assert all(count in (0, 1) for count, _ in there.values())
        return [_valued(row, ts) for count, row in there.values() if count]


def _valued(row: dict[str, Any], ts: int) -> dict[str, Any]:
    model = row["__model"]
    seconds = (ts - micros(model["start"])) / SECOND
    found = {}
    for name, value in row.items():
        if name in ("__ts", "__sign", "__model"):
            continue
        if model.get(f"{name}_divisor") is not None:
            value = np.polynomial.polynomial.polyval(seconds, model[f"{name}_numerator"])
            value /= np.polynomial.polynomial.polyval(seconds, model[f"{name}_divisor"])
        elif model.get(name) is not None:
            value = np.polynomial.polynomial.polyval(seconds, model[name])
        found[name] = value
    return found


# -- by definition ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Segment:
    key: str
    group: str
    start: int
    end: int
    coefficients: tuple[float, ...]

    def at(self, ts: float) -> float:
        s = (ts - self.start) / SECOND
        return sum(c * s**i for i, c in enumerate(self.coefficients))

    def integral(self, since: int, until: int) -> Fraction:
        """Over what there is of it."""
        low, high = max(since, self.start), min(until, self.end)
        if low >= high:
            return Fraction(0)
        a, b = (Fraction(t - self.start, SECOND) for t in (low, high))
        return sum(
            (
                Fraction(c) / (i + 1) * (b ** (i + 1) - a ** (i + 1))
                for i, c in enumerate(self.coefficients)
            ),
            Fraction(0),
        )

    def covered(self, since: int, until: int) -> int:
        return max(0, min(until, self.end) - max(since, self.start))

    def extremes(self, since: int, until: int) -> list[float]:
        """The values that may be extreme within a closed range, ends included."""
        low, high = max(since, self.start), min(until, self.end)
        if low > high or (low == self.end):
            return []
        found = [self.at(low), self.at(high)]
        if len(self.coefficients) > 2 and self.coefficients[2]:
            top = self.start - self.coefficients[1] / (2 * self.coefficients[2]) * SECOND
            found += [self.at(top)] if low <= top <= high else []
        return found


def segments(rows: Sequence[Row], horizon: float | None = None) -> list[Segment]:
    found = []
    ordered = sorted(rows, key=lambda r: r[0])
    last = instant(max(r[0] for r in rows) + 10**6)
    for i, (at, key, group, *coefficients) in enumerate(ordered):
        later = [r[0] for r in ordered[i + 1 :] if r[1] == key]
        end = instant(later[0]) if later else last
        if horizon is not None:
            end = min(end, instant(at + horizon))
        if end > instant(at) and None not in coefficients:
            found.append(Segment(key, group, instant(at), end, tuple(coefficients)))  # type: ignore[arg-type]
    return found


def drawn(
    rng: random.Random, count: int, keys: int, *, degree: int = 2, whole: bool = False
) -> list[Row]:
    """Tuples of several keys, a few of which end a segment; keys belong to one of three groups."""
    rows: list[Row] = []
    at = 0.0
    for _ in range(count):
        at += rng.choice([1.0, 0.5, 2.0, 3.0]) if whole else rng.expovariate(1.0) + 1e-6
        key = rng.randrange(keys)
        c = [
            float(rng.randint(-3, 3)) if whole else rng.uniform(-5, 5) if i <= degree else 0.0
            for i in range(3)
        ]
        c = [v if i <= degree else 0.0 for i, v in enumerate(c)]
        ended = rng.random() < 0.15
        rows.append((round(at, 6), f"k{key}", f"g{key % 3}", None if ended else c[0], c[1], c[2]))
    return rows


WAYS: list[dict[str, Any]] = [
    {"epochs": 1},
    {"epochs": 1, "buckets": 4},
    {"epochs": 5},
    {"epochs": 23, "buckets": 4},
    {"epochs": 9, "restarts": (2, 5)},
]
"""How a query may be run, without a difference."""
