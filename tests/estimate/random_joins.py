"""Random joins of all shapes and their sizes by brute force, which knows nothing of the engine."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from random import Random
from typing import Any

import pyarrow as pa

from thalweg.estimate.join_query import Attribute, JoinInput, JoinQuery
from thalweg.plan import functions
from thalweg.plan.expr import Column, Literal, Predicate
from thalweg.plan.types import BIGINT

TOPOLOGIES: dict[str, tuple[tuple[str, ...], ...]] = {
    "chain": (("x",), ("x", "y"), ("y", "z"), ("z",)),
    "star": (("x", "y", "z"), ("x",), ("y",), ("z",)),
    "cycle": (("w", "x"), ("x", "y"), ("y", "z"), ("z", "w")),
    "clique": (("p", "q", "r"), ("p", "s", "t"), ("q", "s", "u"), ("r", "t", "u")),
    "lollipop": (("x", "y"), ("y", "z"), ("z", "x"), ("x", "w"), ("w",)),
    "triangle": (("x", "y"), ("y", "z"), ("z", "x")),
    "shared": (("x", "y"), ("x", "z"), ("x", "y"), ("z",)),
}
TYPES = {"int": pa.int32(), "bigint": pa.int64(), "double": pa.float64()}
Row = dict[str, Any]


@dataclass(frozen=True)
class Instance:
    query: JoinQuery
    tables: dict[str, pa.Table]
    rows: tuple[tuple[Row, ...], ...]
    """The rows of each input that pass its filter, as Python values."""


def instance(rng: Random, topology: str, *, unique: bool, most: int = 9) -> Instance:
    """Inputs with few distinct keys, of mixed types, with NULL, NaN and -0.0, and some filters."""
    edges = TOPOLOGIES[topology]
    names = sorted({a for e in edges for a in e})
    null_safe = {a: rng.random() < 0.2 for a in names}
    attributes = tuple(Attribute(a, null_safe[a]) for a in names)
    inputs, tables, kept = [], {}, []
    for number, edge in enumerate(edges):
        types = {a: rng.choice(list(TYPES)) for a in edge}
        rows = [random_row(rng, types) for _ in range(rng.randrange(0, most))]
        if unique:
            rows = distinct(rows, edge)
        alias = f"r{number}"
        filters: tuple[Predicate, ...] = ()
        if rng.random() < 0.3:
            cut = rng.randrange(10)
            condition = functions.resolve(
                "<", [Column(BIGINT, True, f"{alias}.v"), Literal(BIGINT, False, cut)]
            )
            filters = (Predicate(condition, 0),)
            passing = [r for r in rows if r["v"] is not None and r["v"] < cut]
        else:
            passing = rows
        columns = tuple((a, f"c_{a}") for a in edge)
        inputs.append(JoinInput(alias, alias, columns, filters, (), unique))
        arrays = {f"c_{a}": pa.array([r[a] for r in rows], TYPES[types[a]]) for a in edge}
        arrays["v"] = pa.array([r["v"] for r in rows], pa.int64())
        tables[alias] = pa.table(arrays)
        kept.append(tuple(passing))
    return Instance(JoinQuery(tuple(inputs), attributes), tables, tuple(kept))


def random_row(rng: Random, types: dict[str, str]) -> Row:
    row: Row = {"v": None if rng.random() < 0.05 else rng.randrange(10)}
    for a, kind in types.items():
        value: Any = min(rng.randrange(4), rng.randrange(4))
        if kind == "double":
            value = rng.choice([float(value)] * 6 + [math.nan, -0.0, 0.5])
        row[a] = None if rng.random() < 0.08 else value
    return row


def distinct(rows: Sequence[Row], edge: Sequence[str]) -> list[Row]:
    found = {tuple(key_of(r[a]) for a in edge): r for r in rows}
    return list(found.values())


def key_of(value: Any) -> Any:
    """Equal for equal keys: NaN = NaN, -0.0 = 0.0, 1 = 1.0."""
    if value is None:
        return "NULL"
    return "NaN" if isinstance(value, float) and math.isnan(value) else float(value)


def connected(edges: Sequence[Sequence[str]]) -> Iterator[tuple[int, ...]]:
    """All connected sets of two inputs or more."""
    for size in range(2, len(edges) + 1):
        for chosen in combinations(range(len(edges)), size):
            reached = {chosen[0]}
            for _ in chosen:
                reached |= {
                    i for i in chosen if any(set(edges[i]) & set(edges[j]) for j in reached)
                }
            if reached == set(chosen):
                yield chosen


def joined_size(found: Instance, chosen: Sequence[int], *, without_nulls: bool = False) -> int:
    """The rows of a sub-join by nested loops; `without_nulls` leaves out rows with NULL in any
    join column of the whole query where it joins nothing."""
    safe = {a.name: a.null_safe for a in found.query.attributes}
    partial: list[dict[str, Any]] = [{}]
    for i in chosen:
        edge = found.query.inputs[i].attributes
        others = [found.query.inputs[j].attributes for j in chosen if j != i]
        fresh = []
        for bound in partial:
            for row in found.rows[i]:
                keys = {a: key_of(row[a]) for a in edge}
                lost = any(
                    k == "NULL"
                    and not safe[a]
                    and (without_nulls or any(a in other for other in others))
                    for a, k in keys.items()
                )
                if not lost and all(bound.get(a, k) == k for a, k in keys.items()):
                    fresh.append(bound | keys)
        partial = fresh
    return len(partial)
