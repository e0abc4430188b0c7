"""Seeded random cases: streams, tables and a query over them in the language.

`random_case(seed)` always gives the same case. `Case.features` names what it covers
(`window:rows`, `join:3`, `agg:min`, `emit:dstream`, ...), so that a test can assert coverage.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from random import Random

import pyarrow as pa

from thalweg.instants import format_instant
from thalweg.testing.random_streams import (
    GeneratedStream,
    Shape,
    cuts,
    random_shape,
    random_stream,
    random_table,
)

__all__ = ["KINDS", "Case", "GeneratedStream", "cuts", "random_case"]

KINDS = ("filter", "join", "aggregate", "join-aggregate")
WINDOWS = (
    "now", "range", "slide", "rows", "partition", "unbounded", "bare", "landmark", "every",
    "from to", "session",
)  # fmt: skip
EMITS = ("istream", "dstream", "rstream", "none")
# Rows per stream by number of inputs, so that even unbounded joins stay small.
_ROWS = {1: (5, 50), 2: (8, 36), 3: (8, 24), 4: (6, 16)}
_COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")
_COMMON = ("count", "count(*)", "sum", "sum", "avg", "min", "max")
RARE_AGGREGATES = (
    "variance", "var_pop", "stddev", "stddev_pop", "percentile", "percentile_disc", "median",
    "mode", "min_by", "max_by", "first", "last", "array_agg", "string_agg", "count_if", "bool_or",
)  # fmt: skip
_NUMBERS = ("k", "g", "n", "x", "w")
_INTEGERS = ("k", "g", "n")


@dataclass(frozen=True)
class Case:
    """Everything a test needs to run one random query."""

    seed: int
    kind: str
    streams: dict[str, GeneratedStream]
    tables: dict[str, pa.Table]
    sql: str
    features: frozenset[str]


@dataclass(frozen=True)
class Source:
    """One entry of the FROM clause."""

    name: str
    alias: str
    columns: tuple[str, ...]
    text: str

    def __getitem__(self, column: str) -> str:
        return f"{self.alias}.{column}" if self.alias else column

    def among(self, wanted: tuple[str, ...]) -> list[str]:
        return [self[c] for c in wanted if c in self.columns]


def _column_name(text: str) -> str | None:
    """The bare name if the text is a column and nothing else."""
    found = re.fullmatch(r"(?:\w+\.)?([a-z]\w*)", text)
    return found[1] if found else None


def random_case(seed: int, kind: str | None = None) -> Case:
    """The case of a seed, of one of `KINDS` or of any."""
    rng = Random(f"case {seed} {kind}")
    return Writer(rng).case(seed, kind or rng.choices(KINDS, (30, 35, 25, 10))[0])


def case_of(sql: str, seed: int, rows: int = 24) -> Case:
    """A query over the stream `s1`, which has every column and about twenty seconds of rows."""
    rng = Random(f"case of {seed}")
    shape = Shape("SECONDS", 20, 0, wild=seed % 3 == 0, large=False)
    streams = {"s1": random_stream(rng, shape, rows, whole=True)}
    return Case(seed, "given", streams, {}, sql, frozenset())


@dataclass
class Writer:
    """Writes one query, noting the features it uses."""

    rng: Random
    features: set[str] = field(default_factory=set)
    unbounded: bool = False

    def case(self, seed: int, kind: str) -> Case:
        self.note(f"kind:{kind}")
        emit = self.rng.choice(EMITS)
        self.note(f"emit:{emit}")
        shape = random_shape(self.rng)
        self.note(f"time:{shape.unit.lower()}")
        inputs = self.rng.choices((2, 3, 4), (55, 30, 15))[0] if "join" in kind else 1
        keyless = inputs == 2 and self.rng.random() < 0.06
        streams = self.streams(shape, inputs, emit, keyless)
        with_table = inputs > 1 and self.rng.random() < 0.2
        tables = {"t1": random_table(self.rng, shape)} if with_table else {}
        sources = self.sources(shape, streams, tables, inputs)
        if emit == "none" and not (kind == "filter" and "window:bare" in self.features):
            self.note("emit:relation")
        where = self.where(sources, keyless)
        write = self.aggregate if "aggregate" in kind else self.projection
        select, tail = write(sources)
        if emit == "rstream" and self.chance(0.4):
            tail += self.order()
        sql = " ".join(
            [
                "SELECT",
                *([] if emit == "none" else [emit.upper()]),
                select,
                "FROM",
                ", ".join(s.text for s in sources),
                *([f"WHERE {where}"] if where else []),
                *tail,
                *(["WITH (unbounded = true)"] if self.unbounded else []),
            ]
        )
        used = {name: s for name, s in streams.items() if name in {s.name for s in sources}}
        return Case(seed, kind, used, tables, sql, frozenset(self.features))

    def order(self) -> list[str]:
        """ORDER BY the first column, or LIMIT, or both."""
        ways = self.rng.choice(("", " DESC", " NULLS LAST", " DESC NULLS FIRST"))
        by = [f"ORDER BY 1{ways}"] if self.chance(0.8) else []
        limit = [f"LIMIT {self.rng.randint(0, 4)}"] if not by or self.chance(0.7) else []
        self.note("order:" + ("limit" if limit else "all"))
        return by + limit

    def note(self, feature: str) -> None:
        self.features.add(feature)

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    # --- FROM

    def streams(
        self, shape: Shape, inputs: int, emit: str, keyless: bool
    ) -> dict[str, GeneratedStream]:
        low, high = _ROWS[inputs]
        if emit == "rstream" or keyless:
            high = max(low, high // 2)
        streams = {}
        for i in range(inputs):
            rows = 0 if self.chance(0.02) else self.rng.randint(low, high)
            streams[f"s{i + 1}"] = random_stream(self.rng, shape, rows)
            self.note("input:rows" if rows else "input:empty")
        if any(s.lateness for s in streams.values()):
            self.note("input:lateness")
        if shape.large:
            self.note("input:large")
        return streams

    def sources(
        self,
        shape: Shape,
        streams: dict[str, GeneratedStream],
        tables: dict[str, pa.Table],
        inputs: int,
    ) -> list[Source]:
        names = list(streams)
        if tables:
            names[-1] = next(iter(tables))
            self.note("join:table")
        if inputs > 1:
            self.note(f"join:{inputs}")
        if len(names) > len(tables) + 1 and self.chance(0.15):
            names[1] = names[0]
            self.note("join:self")
        bare = inputs == 1 and self.chance(0.4)
        aliases = [""] if bare else list("abcd"[:inputs])
        return [
            Source(name, alias, tuple(tables[name].column_names), f"{name} {alias}")
            if name in tables
            else self.stream_source(shape, name, alias, tuple(streams[name].table.column_names))
            for name, alias in zip(names, aliases, strict=True)
        ]

    def stream_source(
        self, shape: Shape, name: str, alias: str, columns: tuple[str, ...]
    ) -> Source:
        kind = self.rng.choice(WINDOWS)
        self.note(f"window:{kind}")
        self.unbounded |= kind in ("unbounded", "bare", "landmark")
        parts = [name, self.window(kind, shape, columns), alias]
        return Source(name, alias, columns, " ".join(p for p in parts if p))

    def window(self, kind: str, shape: Shape, columns: tuple[str, ...]) -> str:
        rng = self.rng
        if kind == "bare":
            return ""
        if kind in ("now", "unbounded"):
            return f"[{kind.upper()}]"
        if kind == "range":
            return f"[RANGE {rng.randint(1, 15)} {shape.unit}]"
        if kind == "slide":
            slide = rng.randint(2, 9)
            choices = (slide, slide * rng.randint(2, 3), rng.randint(slide, 20), 1)
            length = rng.choices(choices, (40, 25, 25, 10))[0]
            self.note("slide:gap" if length < slide else "slide:tumbling" if length == slide
                      else "slide:hopping")  # fmt: skip
            return f"[RANGE {length} {shape.unit} SLIDE {slide} {shape.unit}]"
        if kind in ("landmark", "from to"):
            first = shape.origin + rng.randint(-2, shape.span) * shape.micros
            last = first + rng.randint(0, shape.span) * shape.micros
            begin, end = format_instant(first), format_instant(last)
            return (
                f"[FROM TIMESTAMP {begin} TO TIMESTAMP {end}]"
                if kind == "from to"
                else f"[LANDMARK {begin}]"
            )
        if kind == "every":
            return f"[LANDMARK EVERY {rng.randint(1, 9)} {shape.unit}]"
        if kind == "session":
            by = rng.choice(("", "PARTITION BY k ", "PARTITION BY k, x "))
            return f"[{by}SESSION GAP {rng.randint(0, 4)} {shape.unit}]"
        by = ""
        if kind == "partition":
            keys = rng.sample([c for c in ("k", "g", "s", "x") if c in columns], rng.choice((1, 2)))
            by = f"PARTITION BY {', '.join(keys)} "
        return f"[{by}ROWS {rng.randint(1, 3 if by else 5)}]"

    # --- WHERE

    def where(self, sources: list[Source], keyless: bool) -> str:
        conjuncts: list[str] = []
        if len(sources) > 1 and not keyless:
            conjuncts += self.join_keys(sources)
            if self.chance(0.35):
                conjuncts.append(self.residual(sources))
        elif keyless:
            self.note("join:product")
        often = 0.3 if len(sources) > 1 else 0.5
        while self.chance(often) and len(conjuncts) < 7:
            conjuncts.append(self.predicate(self.rng.choice(sources)))
            self.note("where")
        if len(conjuncts) > 1 and self.chance(0.3):
            self.rng.shuffle(conjuncts)
        return " AND ".join(conjuncts)

    def join_keys(self, sources: list[Source]) -> list[str]:
        shape = self.rng.choice(("star", "chain", "chain"))
        if len(sources) > 2:
            self.note(f"join:{shape}")
        keys: list[str] = []
        for i in range(1, len(sources)):
            left, right = sources[i - 1], sources[i]
            keys += [f"{left['k']} = {right['k']}"] if shape == "star" else self.key(left, right)
        return keys

    def key(self, left: Source, right: Source) -> list[str]:
        """The equality of two inputs, on one of the key kinds their columns allow."""
        options = {"bigint": [f"{left['k']} = {right['k']}"]}
        if "g" in right.columns:
            options["mixed"] = [f"{left['k']} = {right['g']}"]
            options["expression"] = [f"{left['k']} + 1 = {right['g']}"]
        if "s" in left.columns and "s" in right.columns:
            options["string"] = [f"{left['s']} = {right['s']}"]
            options["two"] = [f"{left['k']} = {right['k']}", f"{right['s']} = {left['s']}"]
        if "x" in left.columns and "x" in right.columns:
            options["double"] = [f"{left['x']} = {right['x']}"]
        weights = [3 if k == "bigint" else 1 for k in options]
        kind = self.rng.choices(list(options), weights)[0]
        self.note(f"key:{kind}")
        return options[kind]

    def residual(self, sources: list[Source]) -> str:
        self.note("join:residual")
        left, right = self.rng.sample(sources, 2)
        a, b = _number(self.rng, left), _number(self.rng, right)
        options = [
            f"{a} {self.rng.choice(_COMPARISONS[1:])} {b}",
            f"{a} + {b} < 6",
            f"({a} > 1 OR {b} < 2)",
            f"{a} / {b} > 0.5",
        ]
        if "ts" in left.columns and "ts" in right.columns:
            options.append(f"{left['ts']} <= {right['ts']}")
        return self.rng.choice(options)

    def predicate(self, source: Source, depth: int = 0) -> str:
        """A condition on one input."""
        kinds = ["compare", "compare", "arithmetic", "null", "in", "divide", "cast", "case"]
        kinds += ["string", "like"] if "s" in source.columns else []
        kinds += ["and-or", "and-or", "not"] if depth < 2 else []
        kind = self.rng.choice(kinds)
        self.note(f"expr:{kind}")
        if kind == "not":
            return f"NOT ({self.predicate(source, depth + 1)})"
        if kind == "and-or":
            sides = [self.predicate(source, depth + 1) for _ in range(2)]
            return f"({sides[0]} {self.rng.choice(('AND', 'OR', 'OR'))} {sides[1]})"
        return self.simple_predicate(kind, source)

    def simple_predicate(self, kind: str, source: Source) -> str:
        rng = self.rng
        a, b = _integer(self.rng, source), _integer(self.rng, source)
        op = rng.choice(_COMPARISONS)
        x = rng.choice(source.among(("x", "w")))
        any_column = source[rng.choice(source.columns)]
        negation = rng.choice(("", "NOT "))
        return {
            "compare": lambda: rng.choice(
                (f"{x} {op} {rng.choice((0.0, 0.3, 1.5))}", f"{a} {op} {rng.randint(0, 3)}")
            ),
            "arithmetic": lambda: rng.choice((f"{a} + {b} {op} 3", f"{a} * 2 - {b} {op} 1",
                                              f"{x} * 3 {op} 0.3", f"-{a} {op} 0",
                                              f"abs({a}) {op} 2")),
            "null": lambda: f"{any_column} IS {negation}NULL",
            "in": lambda: f"{a} {negation}IN ({', '.join(rng.choices('0123', k=3))})",
            "divide": lambda: rng.choice((f"{a} / {b} {op} 1", f"10 % {a} {op} 1",
                                          f"{a} div {b} {op} 0", f"{x} / {x} {op} 1.0")),
            "cast": lambda: f"CAST({x} AS INT) {op} {rng.randint(0, 1)}",
            "case": lambda: f"CASE WHEN {a} > 0 THEN 6 / {a} ELSE {b} END {op} 2",
            "string": lambda: f"{source['s']} {op} '{rng.choice(('a', 'b', '', 'ä'))}'",
            "like": lambda: f"{source['s']} {negation}LIKE '{rng.choice(('a%', '%b', '_'))}'",
        }[kind]()  # fmt: skip

    # --- SELECT

    def value(self, source: Source) -> str:
        """A computed output column over one input."""
        rng = self.rng
        a, b = _integer(self.rng, source), _integer(self.rng, source)
        x = rng.choice(source.among(("x", "w")))
        options = {
            "arithmetic": f"{a} + {b}",
            "double": f"{x} * 0.1 + 1",
            "coalesce": f"coalesce({a}, {b}, -1)",
            "case": f"CASE WHEN {x} > 0.3 THEN 'high' WHEN {x} IS NULL THEN 'none' ELSE 'low' END",
            "divide": f"{a} / {b}",
            "modulo": f"{a} % 2",
            "negate": f"-{a}",
            "boolean": f"{a} < {b} OR {x} > 0",
            "extreme": f"greatest({a}, {b})",
        }
        if "s" in source.columns:
            options["string"] = rng.choice(
                (f"upper({source['s']})", f"length({source['s']})", f"{source['s']} || '!'")
            )
        kind = rng.choice(list(options))
        self.note(f"value:{kind}")
        return options[kind]

    def projection(self, sources: list[Source]) -> tuple[str, list[str]]:
        if len(sources) == 1 and self.chance(0.1):
            self.note("select:star")
            return "*", []
        items: list[str] = []
        for source in sources:
            for column in self.rng.sample(source.columns, self.rng.choice((0, 1, 1, 2))):
                items.append(source[column])
        if not items or self.chance(0.45):
            items.append(self.value(self.rng.choice(sources)))
        return self.named(items), []

    def named(self, items: list[str]) -> str:
        """Plain columns keep their names, unless two would have the same."""
        names = [_column_name(i) for i in items]
        return ", ".join(
            item if name and names.count(name) == 1 else f"{item} AS c{i}"
            for i, (item, name) in enumerate(zip(items, names, strict=True))
        )

    def aggregate(self, sources: list[Source]) -> tuple[str, list[str]]:
        keys = self.group_keys(sources)
        items = [*keys, *(self.aggregate_call(sources) for _ in range(self.rng.randint(1, 3)))]
        if self.chance(0.15):
            self.note("agg:expression")
            items.append(f"count(*) * 2 + count({_number(self.rng, self.rng.choice(sources))})")
        tail = [f"GROUP BY {self.grouping(keys)}"] if keys else []
        if self.chance(0.35):
            self.note("having" if keys else "having:global")
            tail.append(f"HAVING {self.having(sources)}")
        return self.named(items), tail

    def grouping(self, keys: list[str]) -> str:
        listed = ", ".join(keys)
        if self.chance(0.8):
            return listed
        kind = self.rng.choice(("rollup", "cube", "grouping sets"))
        self.note(f"group:{kind}")
        if kind == "grouping sets":
            return f"GROUPING SETS (({listed}), ({keys[0]}), ())"
        return f"{kind.upper()} ({listed})"

    def group_keys(self, sources: list[Source]) -> list[str]:
        kind = self.rng.choices(("global", "one", "two", "expression"), (25, 40, 20, 15))[0]
        self.note(f"group:{kind}")
        source = self.rng.choice(sources)
        columns = [c for c in source.columns if c != "ts"]
        if kind == "expression":
            a, b = _integer(self.rng, source), _number(self.rng, source)
            return [self.rng.choice((f"{a} % 2", f"CASE WHEN {b} > 1 THEN 1 ELSE 0 END",
                                     f"{a} + 1", f"6 / {a}"))]  # fmt: skip
        count = {"global": 0, "one": 1, "two": 2}[kind]
        return [source[c] for c in self.rng.sample(columns, min(count, len(columns)))]

    def aggregate_call(self, sources: list[Source]) -> str:
        source = self.rng.choice(sources)
        name = self.rng.choice(_COMMON + _COMMON + RARE_AGGREGATES)
        self.note(f"agg:{name}")
        if name == "count(*)":
            call = name
        elif name in RARE_AGGREGATES:
            call = self.rare_aggregate(name, source)
        else:
            call = self.common_aggregate(name, source)
        if self.chance(0.12):
            self.note("agg:filter")
            call += f" FILTER (WHERE {_integer(self.rng, source)} > 0)"
        return call

    def common_aggregate(self, name: str, source: Source) -> str:
        argument = _number(self.rng, source)
        if name in ("count", "min", "max"):
            argument = source[self.rng.choice(source.columns)]
        elif self.chance(0.15):
            argument = f"{_integer(self.rng, source)} + {_integer(self.rng, source)}"
        elif self.chance(0.08):
            argument = f"10 / {_integer(self.rng, source)}"
        self.note(f"agg:{name}({_column_name(argument) or 'expression'})")
        if self.chance(0.12):
            self.note(f"agg:{name}(distinct)")
            argument = f"DISTINCT {argument}"
        return f"{name}({argument})"

    def rare_aggregate(self, name: str, source: Source) -> str:
        number, any_column = _number(self.rng, source), source[self.rng.choice(source.columns)]
        other = source[self.rng.choice(source.columns)]
        fraction = self.rng.choice((0, 0.25, 0.5, 0.9, 1))
        text = source["s"] if "s" in source.columns else number
        distinct = self.rng.choice(("", "", "DISTINCT "))
        return {
            "percentile": f"percentile({number}, {fraction})",
            "percentile_disc": f"percentile_disc({fraction}) WITHIN GROUP (ORDER BY {any_column})",
            "median": f"median({number})",
            "mode": f"mode({any_column})",
            "min_by": f"min_by({any_column}, {other})",
            "max_by": f"max_by({any_column}, {other})",
            "array_agg": f"array_agg({distinct}{any_column})",
            "string_agg": f"string_agg({distinct}{text}, '; ')",
            "count_if": f"count_if({number} > 1)",
            "bool_or": f"bool_or({number} > 1)",
        }.get(name, f"{name}({number})")

    def having(self, sources: list[Source]) -> str:
        source = self.rng.choice(sources)
        a, x = _integer(self.rng, source), self.rng.choice(source.among(("x", "w")))
        return self.rng.choice((
            "count(*) > 1", f"count({x}) >= 2", f"sum({a}) > 3", f"max({x}) IS NOT NULL",
            f"avg({x}) < 0.5", f"min({a}) <= 1 AND count(*) < 4", f"10 / sum({a}) > 1",
        ))  # fmt: skip


def _number(rng: Random, source: Source) -> str:
    return rng.choice(source.among(_NUMBERS))


def _integer(rng: Random, source: Source) -> str:
    return rng.choice(source.among(_INTEGERS))
