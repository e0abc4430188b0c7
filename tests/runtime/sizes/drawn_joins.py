"""Joins drawn at random, over tables and streams, as the engine and as DuckDB read them.

Which rows a window holds is computed here, from what the language says of it.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import combinations
from typing import Any

import duckdb
import pyarrow as pa

from thalweg.testing import Runner

SECOND = 1_000_000
LAST = 50 * SECOND
NUMBERS = ["i", "n", "d", "f", "e"]
TYPES = {"i": pa.int32(), "n": pa.int64(), "d": pa.float64(), "f": pa.float32()}
TYPES |= {"e": pa.decimal128(8, 2), "s": pa.string(), "v": pa.int64()}
SUBSETS = list[str]


def drawn_value(rng: random.Random, column: str, keys: int) -> Any:
    key = min(int(rng.paretovariate(1.0)) - 1, keys) if rng.random() < 0.6 else rng.randrange(keys)
    if column == "v":
        return key
    if rng.random() < 0.12:
        return None
    if column in "df":
        half = key + rng.choice([0, 0, 0, 0.5])
        return rng.choice([half, half, half, half, -0.0 if half == 0 else half, float("nan")])
    if column == "e":
        return Decimal(key) + rng.choice([Decimal(0), Decimal(0), Decimal("0.50")])
    if column == "s":
        return rng.choice([str(key), str(key), "0" + str(key), "x%", ""])
    return key


def drawn_table(rng: random.Random, rows: int, keys: int) -> pa.Table:
    held = {
        c: pa.array([drawn_value(rng, c, keys) for _ in range(rows)], t) for c, t in TYPES.items()
    }
    return pa.table(held)


def with_times(rng: random.Random, table: pa.Table) -> pa.Table:
    times = [*sorted(rng.sample(range(0, LAST, 1000), table.num_rows - 1)), LAST]
    for n in range(len(times) - 1):  # some on the edges of windows
        if rng.random() < 0.3:
            times[n] = times[n] // SECOND * SECOND
    times = sorted(set(times))
    stamps = pa.array(times, pa.timestamp("us", "UTC"))
    return table.slice(0, len(times)).append_column("ts", stamps)


class World:
    """Tables a, b, c and streams r, s, in the engine and in DuckDB."""

    def __init__(self, seed: int, buckets: int = 1) -> None:
        rng = random.Random(seed)
        self.rows, keys, self.most = rng.choice(
            [(7, 2, 5), (11, 4, 5), (11, 9, 5), (40, 6, 3), (40, 25, 3), (400, 150, 3)]
        )
        self.runner = Runner(epochs=rng.choice([1, 2, 3]), buckets=buckets)
        self.duck = duckdb.connect()
        self.duck.execute("SET threads = 1; SET TimeZone = 'UTC'")
        self.keys = keys
        for name in "abc":
            rows = 0 if rng.random() < 0.04 else rng.randint(1, self.rows)
            self.set_table(name, drawn_table(rng, rows, keys))
        for name in "rs":
            table = with_times(rng, drawn_table(rng, rng.randint(2, self.rows), keys))
            self.duck.register(name, table)
            self.runner.stream(name, table, retain="1 day")
        self.runner.run()

    def set_table(self, name: str, table: pa.Table) -> None:
        self.duck.register(name, table)
        self.runner.table(name, table)

    def count(self, sql: str) -> int:
        return int(self.duck.execute(f"SELECT count(*) FROM {sql}").fetchall()[0][0])


def drawn_window(rng: random.Random, name: str) -> tuple[str, str]:
    """A window over a stream, and the rows that it holds at the last instant."""
    n = rng.randint(1, 60)
    kind = rng.randrange(6)
    micros = "epoch_us(ts)"
    if kind == 0:
        return f"[RANGE {n} SECONDS]", f"{micros} >= {LAST - n * SECOND}"
    if kind == 1:
        slide = rng.choice([1, 3, 7, 20, 60])
        edge = LAST // (slide * SECOND) * slide * SECOND
        return (
            f"[RANGE {n} SECONDS SLIDE {slide} SECONDS]",
            f"{micros} >= {edge - n * SECOND} AND {micros} < {edge}",
        )
    if kind == 2:
        return f"[ROWS {n}]", f"ts IN (SELECT ts FROM {name} ORDER BY ts DESC LIMIT {n})"
    if kind == 3:
        newest = f"row_number() OVER (PARTITION BY i ORDER BY ts DESC) AS newest FROM {name}"
        few = 1 + n % 3
        chosen = f"SELECT ts FROM (SELECT ts, {newest}) WHERE newest <= {few}"
        return f"[PARTITION BY i ROWS {few}]", f"ts IN ({chosen})"
    if kind == 4:
        return "[NOW]", f"{micros} = {LAST}"
    return "[UNBOUNDED]", "true"


FILTERS = (
    "X.C > P; P >= X.C; X.C BETWEEN 1 AND P; X.C BETWEEN P AND Q; X.C IN (P, Q); X.C NOT IN (P, Q);"
    "X.C IS NULL; X.C IS NOT NULL; X.C = P; X.C <> P; NOT (X.C < P); (X.C = P OR X.s = 'Q');"
    "(X.C < P OR X.v IS NULL OR X.i > Q); X.s LIKE 'P%'; X.s NOT LIKE '0%'; X.s >= 'P';"
    "X.s IN ('P', '0Q', ''); X.i = X.v; X.C > P AND X.v <= Q"
).split(";")
ACROSS = (
    "X.v < Y.v; X.i <> Y.n; (X.v = Y.v OR X.i = Y.i); X.v + 1 = Y.v;"
    "X.d BETWEEN Y.d - 1 AND Y.d + 1; (X.v > 1 OR Y.v > 1)"
).split(";")


def drawn_filter(rng: random.Random, x: str, keys: int) -> str:
    words = {"X": x, "C": rng.choice([*NUMBERS, "v"])}
    words |= {"P": str(rng.randrange(keys)), "Q": str(rng.randrange(keys))}
    return re.sub(r"[XCPQ]\b|(?<=')P(?=%)", lambda m: words[m[0]], rng.choice(FILTERS).strip())


def edges_of(rng: random.Random, inputs: int) -> list[tuple[int, int]]:
    path = [(n, n + 1) for n in range(inputs - 1)]
    shapes = [
        path,
        [(0, n) for n in range(1, inputs)],
        [*path, (0, inputs - 1)] if inputs > 2 else path,
        list(combinations(range(inputs), 2)),
        [(0, 1), (1, 2), (0, 2), *path[2:]] if inputs > 2 else path,
        [e for e in path if rng.random() < 0.5],
        [(rng.randrange(n), n) for n in range(1, inputs)],
    ]
    return rng.choice(shapes)


@dataclass
class Case:
    """A join by its parts: inputs, equalities, filters of one input, conditions across inputs."""

    inputs: dict[str, tuple[str, str, str]] = field(default_factory=dict)
    equal: list[tuple[str, str, str]] = field(default_factory=list)
    filters: list[tuple[str, str]] = field(default_factory=list)
    across: list[tuple[set[str], str]] = field(default_factory=list)

    def conditions(self) -> list[str]:
        apart = [text for _, text in self.filters] + [text for _, text in self.across]
        return [f"{p} {op} {q}" for p, op, q in self.equal] + apart

    def sql(self, rng: random.Random, order: SUBSETS) -> str:
        head, tail = rng.choice(
            [("{0}.v", ""), ("DISTINCT {0}.v", ""), ("count(*) AS c", "")] * 2
            + [("{0}.v, count(*) AS c", " GROUP BY {0}.v")]
        )
        names = {x: f"{name} {window} {x}" for x, (name, window, _) in self.inputs.items()}
        conditions = self.conditions()
        rng.shuffle(conditions)
        text = names[order[0]]
        for n, x in enumerate(order[1:], 2):
            seen = {*order[:n]}
            on = [c for c in conditions if uses(c) <= seen and x in uses(c)]
            if not on or "," in text or rng.random() < 0.3:
                text += f", {names[x]}"
                continue
            conditions = [c for c in conditions if c not in on]
            text += f" JOIN {names[x]} ON {' AND '.join(on)}"
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        return f"SELECT {head} FROM {text}{where}{tail}".replace("{0}", order[0])

    def held(self, x: str) -> str:
        name, _, rows = self.inputs[x]
        return f"(SELECT * FROM {name} WHERE {rows}) {x}"

    def whole(self) -> str:
        text = ", ".join(self.held(x) for x in self.inputs)
        return duck_words(f"{text} WHERE {' AND '.join(['true', *self.conditions()])}")

    def classes(self) -> list[set[str]]:
        """Columns that are equated, directly or through others."""
        merged: list[set[str]] = []
        for p, _, q in self.equal:
            met = [m for m in merged if p in m or q in m]
            merged = [m for m in merged if m not in met] + [{p, q}.union(*met)]
        return merged

    def part(self, sources: SUBSETS, *, nulls: bool = False) -> str:
        """The join of some inputs by all equalities that follow, without rows with NULL keys."""
        where = ["true"]
        for columns in self.classes():
            mine = sorted(c for c in columns if c[:2] in sources)
            where += [f"{p} IS NOT DISTINCT FROM {q}" for p, q in combinations(mine, 2)]
        strict = {c for p, op, q in self.equal if op == "=" for c in (p, q)}
        if not nulls:
            dropped = {c for m in self.classes() if m & strict for c in m if c[:2] in sources}
            where += [f"{c} IS NOT NULL" for c in dropped]
        where += [text for x, text in self.filters if x in sources]
        where += [text for uses, text in self.across if uses <= {*sources}]
        text = ", ".join(self.held(x) for x in sources)
        return duck_words(f"{text} WHERE {' AND '.join(where)}")

    def connected(self, sources: SUBSETS) -> bool:
        left, reached = {*sources[1:]}, {sources[0]}
        while near := {
            x
            for x in left
            for m in self.classes()
            if x in {c[:2] for c in m} and reached & {c[:2] for c in m}
        }:
            left, reached = left - near, reached | near
        return not left

    def approximate(self, sources: SUBSETS) -> bool:
        """Whether decimals are compared with doubles, which is only ever a bound."""
        met = [m for m in self.classes() if {c[:2] for c in m} & {*sources}]
        types = [{c[3:] for c in m} for m in met]
        return any("e" in t and t & {"d", "f"} for t in types)

    def acyclic(self, sources: SUBSETS) -> bool:
        """Graham's reduction of the hypergraph of equated columns."""
        met = [{c[:2] for c in m} for m in self.classes()]
        edges = [{n for n, m in enumerate(met) if x in m} for x in sources]
        while True:
            before = [set(e) for e in edges]
            edges = [{a for a in e if sum(a in o for o in edges) > 1} for e in edges]
            for n, e in enumerate(edges):
                if any(e <= o for m, o in enumerate(edges) if m != n):
                    del edges[n]
                    break
            if edges == before:
                return len(edges) <= 1


def uses(condition: str) -> set[str]:
    return {*re.findall(r"\bx\d", condition)}


def duck_words(sql: str) -> str:
    sql = sql.replace("<=>", "IS NOT DISTINCT FROM")
    return re.sub(r"LEFT (SEMI|ANTI)", r"\1", sql)


def drawn_inputs(rng: random.Random, case: Case, count: int) -> None:
    for n in range(count):
        name = rng.choice("abcabcrs")
        case.inputs[f"x{n}"] = (name, *(drawn_window(rng, name) if name in "rs" else ("", "true")))


def drawn_equality(rng: random.Random, p: str, q: str, only: str | None) -> tuple[str, str, str]:
    c = d = only or rng.choice([*NUMBERS, "s", "s", "v", "v"])
    if c in NUMBERS and not only and rng.random() < 0.5:
        d = rng.choice(NUMBERS)
    return f"{p}.{c}", "<=>" if rng.random() < 0.15 else "=", f"{q}.{d}"


def drawn_case(rng: random.Random, world: World) -> Case:
    case = Case()
    count = rng.choice([n for n in (1, 2, 2, 3, 3, 4, 5) if n <= world.most])
    drawn_inputs(rng, case, count)
    edges = edges_of(rng, count)
    while world.rows > 100 and count > 2 and not joined(edges, count):
        edges = edges_of(rng, count)  # no large products
    only = rng.choice("indsv") if rng.random() < 0.15 else None
    for n, m in edges:
        for _ in range(rng.choice([1, 1, 1, 2])):
            case.equal.append(drawn_equality(rng, f"x{n}", f"x{m}", only))
    for x, (_, window, _) in case.inputs.items():
        if "ROWS" in window:  # without any column in use: see test_rows_without_columns
            case.filters.append((x, f"{x}.v >= 0"))
        if rng.random() < 0.35:
            case.filters.append((x, drawn_filter(rng, x, world.keys)))
    if count > 1 and rng.random() < 0.2:
        p, q = rng.sample(sorted(case.inputs), 2)
        text = re.sub("[XY]", lambda m: p if m[0] == "X" else q, rng.choice(ACROSS).strip())
        case.across.append(({p, q}, text))
    return case


def joined(edges: list[tuple[int, int]], count: int) -> bool:
    return len({n for e in edges for n in e}) == count and len(edges) >= count - 1


def analyze(world: World, rng: random.Random) -> None:
    limit = rng.choice([1, 300, 5_000, 1_000_000, 50_000_000])
    columns = {
        name: rng.sample(sorted(TYPES), rng.randint(1, len(TYPES)))
        for name in rng.sample("abcrs", rng.randint(0, 5))
    }
    world.runner.analyze(*"abcrs", limit_bytes=limit, joined_by=columns or None)


def drawn_outer(rng: random.Random, world: World) -> tuple[str, str]:
    """A chain of joins of every kind, as the engine and as DuckDB read it."""
    case = Case()
    drawn_inputs(rng, case, rng.randint(2, min(world.most, 4)))
    (first, *others), seen = list(case.inputs), ["x0"]
    name, window, _ = case.inputs[first]
    ours, duck = f"{name} {window} {first}", case.held(first)
    for x in others:
        kind = rng.choice(["LEFT", "LEFT", "RIGHT", "FULL", "LEFT SEMI", "LEFT ANTI", "INNER"])
        on = " ".join(drawn_equality(rng, rng.choice(seen), x, None))
        if kind not in ("FULL", "RIGHT") and rng.random() < 0.3:
            on += f" AND {drawn_filter(rng, x, world.keys)}"
        if kind in ("LEFT", "INNER") and rng.random() < 0.2:
            on += f" AND {rng.choice(seen)}.v < {x}.v"
        name, window, _ = case.inputs[x]
        ours += f" {kind} JOIN {name} {window} {x} ON {on}"
        duck += f" {kind} JOIN {case.held(x)} ON {on}"
        seen += [] if kind in ("LEFT SEMI", "LEFT ANTI") else [x]
    where = []
    for x in seen:
        if "ROWS" in case.inputs[x][1]:
            where.append(f"({x}.v >= 0 OR {x}.v IS NULL)")
        if rng.random() < 0.25:
            where.append(drawn_filter(rng, x, world.keys))
    where.append(f"({seen[0]}.v >= 0 OR {seen[0]}.v IS NULL)")
    tail = f" WHERE {' AND '.join(where)}"
    return f"SELECT {seen[0]}.v FROM {ours}{tail}", duck_words(duck + tail)
