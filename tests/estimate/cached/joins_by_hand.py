"""Random tables with skew, NULLs and NaN, random joins over them, and their sizes row by row."""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import combinations
from random import Random
from typing import Any

import pyarrow as pa

from thalweg.estimate.join_query import Attribute, Condition, JoinInput, JoinQuery

Row = dict[str, Any]
SHAPES: dict[str, tuple[str, ...]] = {
    "pair": ("a", "a"),
    "chain of three": ("a", "ab", "b"),
    "chain of four": ("a", "ab", "bc", "c"),
    "star": ("abc", "a", "b", "c"),
    "shared key": ("a", "a", "a"),
    "shared key and chain": ("a", "a", "ab", "b"),
    "several attributes": ("ab", "ab", "b"),
    "triangle": ("ab", "bc", "ac"),
    "four-cycle": ("ab", "bc", "cd", "ad"),
}
"""The attributes of each input, one letter each."""
KEY_TYPES = (pa.int64(), pa.int32(), pa.string(), pa.float64(), pa.timestamp("us"), pa.date32())
EPOCH = dt.datetime(1970, 1, 1)


def key_value(kind: pa.DataType, number: int) -> Any:
    if pa.types.is_string(kind):
        return f"k{number}"
    if pa.types.is_floating(kind):
        return [math.nan, -0.0, 0.0][number] if number < 3 else number / 2
    if pa.types.is_timestamp(kind):
        return EPOCH + dt.timedelta(seconds=number)
    if pa.types.is_date32(kind):
        return EPOCH.date() + dt.timedelta(days=number)
    return number


FILTER_TYPES = {
    "i": pa.int32(),
    "l": pa.int64(),
    "d": pa.float64(),
    "s": pa.string(),
    "t": pa.timestamp("us"),
    "u": pa.timestamp("s"),
    "e": pa.date32(),
    "f": pa.bool_(),
}


def filter_value(name: str, random: Random) -> Any:
    number = random.choice([0, 0, 0, random.randint(-5, 5), random.randint(-1000, 1000)])
    if name == "d":
        return random.choice([math.nan, -0.0, 0.0, math.inf, -math.inf, number / 4, number / 4])
    if name == "s":
        return random.choice(["", "é", "zz\U0001f600", str(abs(number)), f"a{number}"])
    if name in "tu":
        return EPOCH + dt.timedelta(seconds=number)
    if name == "e":
        return EPOCH.date() + dt.timedelta(days=number)
    return bool(number % 2) if name == "f" else number


def random_table(attributes: str, kinds: Mapping[str, pa.DataType], random: Random) -> pa.Table:
    length = random.choice([0, 1, 7, 30, 80])
    nulls = random.choice([0.0, 0.2])
    keys = random.choice([2, 6, 40])
    columns: dict[str, pa.Array] = {}
    for name in attributes:
        skewed = [min(int(random.expovariate(4 / keys)), 99) for _ in range(length)]
        values = [None if random.random() < nulls else key_value(kinds[name], k) for k in skewed]
        columns[name] = pa.array(values, kinds[name])
    for name, kind in FILTER_TYPES.items():
        own = [
            None if random.random() < nulls else filter_value(name, random) for _ in range(length)
        ]
        columns["x" + name] = pa.array(own, kind)
    return pa.table(columns)


def constant(value: Any) -> Any:
    """As in `Literal`: timestamps as microseconds, dates as days."""
    if isinstance(value, dt.datetime):
        return round((value - EPOCH).total_seconds() * 1_000_000)
    if isinstance(value, dt.date):
        return (value - EPOCH.date()).days
    return value


def random_condition(name: str, random: Random) -> Condition:
    """Of the filter column of this type."""
    if random.random() < 0.5:
        values = tuple(constant(filter_value(name, random)) for _ in range(random.randint(1, 3)))
        return Condition("x" + name, values=values)
    ends = [constant(filter_value(name, random)) for _ in range(2)]
    if name in "il" and random.random() < 0.3:
        ends = [e + 0.5 for e in ends]
    low, high = (None if random.random() < 0.3 else e for e in ends)
    included = random.random() < 0.5, random.random() < 0.5
    return Condition("x" + name, low, high, *included)


def random_join(shape: str, random: Random) -> tuple[JoinQuery, dict[str, pa.Table]]:
    """One attribute may be null-safe; some inputs have conditions, one perhaps on a join column."""
    parts = SHAPES[shape]
    names = sorted(set("".join(parts)))
    kinds = {n: random.choice(KEY_TYPES) for n in names}
    safe = {n for n in names if random.random() < 0.15}
    inputs, tables = [], {}
    for i, attributes in enumerate(parts):
        relation = f"t{i}"
        tables[relation] = random_table(attributes, kinds, random)
        conditions = [
            random_condition(random.choice([*FILTER_TYPES]), random)
            for _ in range(random.choice([0, 0, 1, 2]))
        ]
        if random.random() < 0.2:
            key = attributes[0]
            values = tuple(constant(key_value(kinds[key], k)) for k in range(random.randint(1, 4)))
            conditions.append(Condition(key, values=values))
        columns = tuple((n, n) for n in attributes)
        inputs.append(JoinInput(f"r{i}", relation, columns, (), tuple(conditions)))
    return JoinQuery(tuple(inputs), tuple(Attribute(n, n in safe) for n in names)), tables


def _order(value: Any) -> tuple[Any, ...]:
    """NaN equals NaN and is above all others."""
    return (1, 0) if isinstance(value, float) and math.isnan(value) else (0, value)


def satisfies(value: Any, condition: Condition) -> bool:
    if value is None:
        return False
    one = _order(constant(value))
    if condition.values is not None:
        return any(one == _order(v) for v in condition.values)
    low, high = condition.low, condition.high
    if low is not None and not (
        one > _order(low) or (condition.low_included and one == _order(low))
    ):
        return False
    return high is None or one < _order(high) or (condition.high_included and one == _order(high))


def kept_rows(source: JoinInput, table: pa.Table) -> list[Row]:
    rows = table.to_pylist()
    return [r for r in rows if all(satisfies(r[c.column], c) for c in source.conditions)]


def true_sizes(query: JoinQuery, tables: Mapping[str, pa.Table]) -> dict[tuple[str, ...], int]:
    """The size of each sub-join, also of those that are not connected. Rows with NULL in a join
    column of the query that is not null-safe are in none."""
    safe = {a.name for a in query.attributes if a.null_safe}
    rows = []
    for source in query.inputs:
        needed = [c for a, c in source.columns if a not in safe]
        kept = kept_rows(source, tables[source.relation])
        rows.append([r for r in kept if all(r[c] is not None for c in needed)])
    found = {}
    for size in range(1, len(rows) + 1):
        for subset in combinations(range(len(rows)), size):
            aliases = tuple(query.inputs[i].alias for i in subset)
            found[aliases] = _size(query, [(query.inputs[i], rows[i]) for i in subset])
    return found


def _size(query: JoinQuery, inputs: list[tuple[JoinInput, list[Row]]]) -> int:
    """Results are counted by the keys that later inputs are joined with."""
    safe = {a.name for a in query.attributes if a.null_safe}
    found: Counter[tuple[tuple[str, Any], ...]] = Counter({(): 1})
    for source, rows in inputs:
        own = Counter(tuple(_keys(source, row)) for row in rows)
        joined: Counter[tuple[tuple[str, Any], ...]] = Counter()
        for one, times in found.items():
            for other, more in own.items():
                both = _joined(dict(one), dict(other), safe)
                if both is not None:
                    joined[both] += times * more
        found = joined
    return sum(found.values())


def _keys(source: JoinInput, row: Row) -> Iterator[tuple[str, Any]]:
    for attribute, column in source.columns:
        value = row[column]
        yield attribute, None if value is None else _order(constant(value))


def _joined(
    one: dict[str, Any], other: dict[str, Any], safe: set[str]
) -> tuple[tuple[str, Any], ...] | None:
    for name in one.keys() & other.keys():
        if one[name] != other[name] or (one[name] is None and name not in safe):
            return None
    return tuple(sorted({**one, **other}.items(), key=lambda item: item[0]))
