"""Random join graphs: two to seven windows, linked as a star, a chain, a tree, a cycle, or by one
or two common keys, over streams with duplicates, NULLs and a hot key; a stream may join itself."""

from __future__ import annotations

from random import Random

import pyarrow as pa

from thalweg.testing.generators import Case
from thalweg.testing.random_streams import GeneratedStream

SHAPES = ("one key", "star", "chain", "tree", "cycle", "two keys")
WINDOWS = ("range", "rows", "partition", "now", "unbounded", "slide")
EMITS = ("ISTREAM", "DSTREAM", "")
Edge = tuple[int, int, str]
"""Two sources that are equal in a column."""

_COLUMNS = ("k", "x", "c", "d", "e", "f", "g")
# rows per stream by number of sources, so that the naive reference can follow
_ROWS = {2: 24, 3: 18, 4: 14, 5: 11, 6: 9, 7: 8}


def random_join(seed: int, sources: int | None = None, timed: bool = False) -> Case:
    """One random query over one random join graph; `timed` leaves windows over rows out."""
    rng = Random(f"join graph {seed}")
    count = sources or rng.choice((2, 3, 3, 4, 4, 5, 6, 7))
    shape = rng.choice(SHAPES)
    edges = _edges(rng, shape, count)
    features = {shape, f"{count} sources"}
    names = _names(rng, count, features)
    tables: dict[str, pa.Table] = {}
    texts = []
    for i, name in enumerate(names):
        if i and rng.random() < 0.07:
            tables["fixed"] = _rows(Random(f"table {seed}"), 4, False).drop_columns(["ts"])
            texts.append(f"fixed s{i}")
            features.add("table")
            continue
        window, text = _window(rng, count, timed)
        features.add(window)
        texts.append(f"{name} {text} s{i}")
    emit = rng.choice(EMITS)
    features.add(emit or "relation")
    where = [f"s{i}.{c} = s{j}.{c}" for i, j, c in edges]
    if rng.random() < 0.3:
        i, j = rng.sample(range(count), 2)
        where.append(f"s{i}.v <= s{j}.v + 2")
        features.add("residual")
    shown = ", ".join(f"s{i}.v AS v{i}" for i in range(count))
    if Random(f"keys {seed}").random() < 0.5:  # results are then told apart by their keys
        shown += "".join(f", s{i}.{c} AS {c}{n}" for n, (i, _, c) in enumerate(edges))
        features.add("keys shown")
    sql = f"SELECT {emit} {shown} FROM {', '.join(texts)} WHERE {' AND '.join(where)}"
    if "unbounded" in features:
        sql += " WITH (unbounded = true)"
    streams = {
        name: GeneratedStream(_rows(Random(f"{seed} {name}"), _ROWS[count], True), "ts", 0)
        for name in dict.fromkeys(names)
    }
    return Case(seed, "join graph", streams, tables, sql, frozenset(features))


def _edges(rng: Random, shape: str, count: int) -> list[Edge]:
    if shape == "one key":
        return [(rng.randrange(i), i, "k") for i in range(1, count)]
    if shape == "two keys":
        return [(i - 1, i, c) for i in range(1, count) for c in "kx"]
    if shape == "star":
        return [(0, i, _COLUMNS[i - 1]) for i in range(1, count)]
    chain = [(i - 1, i, _COLUMNS[i - 1]) for i in range(1, count)]
    if shape == "chain":
        return chain
    if shape == "tree":
        return [(rng.randrange(i), i, rng.choice("kxc")) for i in range(1, count)]
    return [*chain, (0, count - 1, _COLUMNS[count - 1])]


def _names(rng: Random, count: int, features: set[str]) -> list[str]:
    names = [f"r{i}" for i in range(count)]
    if rng.random() < 0.25:
        same, other = rng.sample(range(count), 2)
        names[same] = names[other]
        features.add("self-join")
    return names


def _window(rng: Random, count: int, timed: bool) -> tuple[str, str]:
    most = 6 if count < 4 else 3
    kind = rng.choice(("range", "range", "range", "rows", "rows", "partition", "now", "slide"))
    if rng.random() < 0.05 and count < 4:
        kind = "unbounded"
    if timed and kind in ("rows", "partition"):
        kind = "range"
    size = rng.randint(1, most)
    text = {
        "range": f"[RANGE {2 * size} MICROSECONDS]",
        "rows": f"[ROWS {size}]",
        "partition": f"[PARTITION BY k ROWS {min(size, 2)}]",
        "now": "[NOW]",
        "slide": f"[RANGE {2 * size} MICROSECONDS SLIDE 3 MICROSECONDS]",
        "unbounded": "[UNBOUNDED]",
    }[kind]
    return kind, text


def _rows(rng: Random, rows: int, timed: bool) -> pa.Table:
    def key() -> int | None:
        if rng.random() < 0.08:
            return None
        return 0 if rng.random() < 0.4 else rng.randrange(4)

    columns: dict[str, pa.Array] = {
        c: pa.array([key() for _ in range(rows)], pa.int64()) for c in _COLUMNS
    }
    columns["v"] = pa.array([rng.randrange(4) for _ in range(rows)], pa.int64())
    stamps = sorted(rng.randrange(2 * rows) for _ in range(rows)) if timed else [0] * rows
    columns["ts"] = pa.array(stamps, pa.timestamp("us", "UTC"))
    return pa.table(columns)
