"""Running model queries and reading their rows, for tests written from the notes alone.

What is read of a result is what `pulse.md` 17.1 and 17.2 promise: `__ts`, `__sign`, and `__model`
with `start` and one array of ascending coefficients per modeled column, in seconds since start.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from thalweg.testing import Runner

S = 1_000_000
MS = 1_000
STAMP = pa.timestamp("us", "UTC")
TYPES = {
    "ts": STAMP,
    "id": pa.string(),
    "g": pa.string(),
    "k": pa.int64(),
}
END_KEY = "~"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def micros(value: Any) -> int | None:
    """A time as µs since 1970, exactly."""
    if value is None or isinstance(value, int):
        return value
    if value.tzinfo is None:
        value = value.replace(tzinfo=UTC)
    return int((value - _EPOCH) // timedelta(microseconds=1))


def table(names: str, *rows: Sequence[Any], until: int | None = None) -> pa.Table:
    """Rows of a stream; the first column names are given, `ts` in µs is last. A last row at
    `until` makes time pass: of a key of its own, all NULL, so that it has no segment (17.19)."""
    columns = [*names.split(), "ts"]
    data = [tuple(r) for r in rows]
    if until is not None:
        end = {"id": END_KEY, "ts": until}
        data.append(tuple(end.get(c) for c in columns))
    schema = pa.schema([(c, TYPES.get(c, pa.float64())) for c in columns])
    values = {c: [r[i] for r in data] for i, c in enumerate(columns)}
    return pa.table(values, schema=schema)


def play(
    sql: str,
    streams: Mapping[str, pa.Table],
    *,
    tables: Mapping[str, pa.Table] | None = None,
    beside: Sequence[str] = (),
    key: Sequence[str] | Mapping[str, Sequence[str]] = ("id",),
    **how: Any,
) -> Any:
    """The query over the streams in a fresh Runner, run to the close."""
    runner = loaded(streams, tables, key, **how)
    query = runner.query(sql, name="q")
    for i, other in enumerate(beside):
        runner.query(other, name=f"beside{i}")
    runner.run()
    return query


def loaded(
    streams: Mapping[str, pa.Table],
    tables: Mapping[str, pa.Table] | None = None,
    key: Sequence[str] | Mapping[str, Sequence[str]] = ("id",),
    options: Mapping[str, Any] | None = None,
    **how: Any,
) -> Runner:
    """A Runner with streams (`options` are theirs) and tables."""
    runner = Runner(**how)
    for name, rows in streams.items():
        keys = key.get(name, ()) if isinstance(key, Mapping) else key
        runner.stream(name, rows, key=tuple(keys), **(options or {}))
    for name, rows in (tables or {}).items():
        runner.table(name, rows)
    return runner


def result(sql: str, streams: Mapping[str, pa.Table], **how: Any) -> list[dict[str, Any]]:
    """The rows emitted, in the order of time."""
    return rows_of(play(sql, streams, **how).results())


def rows_of(found: pa.Table) -> list[dict[str, Any]]:
    """Rows with all times as µs."""
    rows = [{c: _plain(v) for c, v in row.items()} for row in found.to_pylist()]
    return sorted(rows, key=lambda r: r["__ts"])


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return micros(value)
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    return value


def stamped(rows: Iterable[Mapping[str, Any]], *columns: str) -> list[tuple[Any, ...]]:
    """Per row its `__ts` and the columns."""
    return sorted(((r["__ts"], *(r[c] for c in columns)) for r in rows), key=_by_time)


def _by_time(row: tuple[Any, ...]) -> tuple[int, str]:
    return row[0], repr(row)


def frozen(value: Any) -> Any:
    """A value as a dictionary key that is equal bit by bit only."""
    if isinstance(value, float):
        return struct.pack(">d", value)
    if isinstance(value, Mapping):
        return tuple((k, frozen(v)) for k, v in value.items())
    if isinstance(value, (list, tuple)):
        return tuple(frozen(v) for v in value)
    return value


def bag(found: pa.Table) -> Counter[Any]:
    """All rows with `__ts` and `__sign`, bit by bit, as a bag."""
    return Counter(frozen(row) for row in rows_of(found))


@dataclass(frozen=True)
class Life:
    """A row of the answer with its lifetime [start, end)."""

    start: int
    end: int | None
    row: dict[str, Any]

    def holds(self, at: int) -> bool:
        return self.start <= at and (self.end is None or at < self.end)

    def values(self, at: int) -> dict[str, Any]:
        """The columns at an instant: those with coefficients in `__model` are evaluated."""
        model = self.row.get("__model") or {}
        found = {c: v for c, v in self.row.items() if not c.startswith("__") or c == "__maybe"}
        for column, coefficients in model.items():
            if column != "start" and coefficients is not None:
                found[column] = horner(coefficients, (at - model["start"]) / S)
        return found


def horner(coefficients: Sequence[float], x: float) -> float:
    total = 0.0
    for c in reversed(coefficients):
        total = total * x + c
    return total


class Relation:
    """The answer over time, from rows with `__sign`: both signs carry the same row (17.2)."""

    def __init__(self, rows: Iterable[Mapping[str, Any]]) -> None:
        open_: dict[Any, list[tuple[int, dict[str, Any]]]] = {}
        self.lives: list[Life] = []
        for row in sorted(rows, key=lambda r: (r["__ts"], r["__sign"])):
            body = {c: v for c, v in row.items() if c not in ("__ts", "__sign")}
            key = frozen(body)
            if row["__sign"] > 0:
                open_.setdefault(key, []).append((row["__ts"], body))
                continue
            assert open_.get(key), f"a row leaves that was not there: {row}"
            start, _ = open_[key].pop(0)
            self.lives.append(Life(start, row["__ts"], body))
        for left in open_.values():
            self.lives += [Life(start, None, body) for start, body in left]

    def at(self, instant: int) -> list[dict[str, Any]]:
        return [life.values(instant) for life in self.lives if life.holds(instant)]

    def one(self, instant: int) -> dict[str, Any]:
        rows = self.at(instant)
        assert len(rows) == 1, f"at {instant} µs: {rows}"
        return rows[0]

    def value(self, instant: int, column: str) -> float | None:
        """Of the only row at an instant, None where there is none (or an aggregate is NULL)."""
        rows = [r for r in self.at(instant) if r[column] is not None]
        assert len(rows) <= 1, f"at {instant} µs: {rows}"
        return rows[0][column] if rows else None

    def spans(self, **wanted: Any) -> list[tuple[int, int | None]]:
        """When some row with these values is there: adjacent pieces as one."""
        lives = [m for m in self.lives if all(m.row[c] == v for c, v in wanted.items())]
        found: list[tuple[int, int | None]] = []
        for life in sorted(lives, key=lambda m: m.start):
            if found and found[-1][1] is not None and life.start <= found[-1][1]:
                end = None if life.end is None else max(life.end, found[-1][1])
                found[-1] = (found[-1][0], end)
            else:
                found.append((life.start, life.end))
        return found

    def changes(self) -> list[int]:
        """All instants at which a row comes or goes."""
        ends = {m.end for m in self.lives if m.end is not None}
        return sorted(ends | {m.start for m in self.lives})


def relation(sql: str, streams: Mapping[str, pa.Table], **how: Any) -> Relation:
    return Relation(result(sql, streams, **how))


def emitted_changes(sql: str, streams: Mapping[str, pa.Table], **how: Any) -> Relation:
    """The same from ISTREAM and DSTREAM of the query (`SELECT ...`) instead of its relation."""
    rows: list[dict[str, Any]] = []
    for word, sign in (("ISTREAM", 1), ("DSTREAM", -1)):
        found = result(sql.replace("SELECT", f"SELECT {word}", 1), streams, **how)
        rows += [{**row, "__sign": sign} for row in found]
    return Relation(rows)


def models(query: Any) -> list[dict[str, Any]]:
    """`q.models()` (17.22): source, key columns, start, end, one array per attribute, bound."""
    found = query.models()
    rows = [{c: _plain(v) for c, v in row.items()} for row in found.to_pylist()]
    return sorted(rows, key=lambda r: (repr([r.get(c) for c in ("source", "id")]), r["start"]))


def counters(stats: Any, word: str) -> list[int]:
    """All numbers in `stats()` whose name has a word; the notes fix the counters, not where."""
    found: list[int] = []
    if isinstance(stats, Mapping):
        for name, value in stats.items():
            if word in str(name) and isinstance(value, (int, float)):
                found.append(int(value))
            else:
                found += counters(value, word)
    return found
