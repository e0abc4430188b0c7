"""Seeded random queries made of queries: outer, semi and anti joins, set operations, DISTINCT,
subqueries in FROM as relations and as streams, one inside another.

`random_composition(seed)` gives a `Case` like `random_case`, for the same grid.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

import pyarrow as pa

from thalweg.testing.generators import EMITS, Case, GeneratedStream, Source, Writer
from thalweg.testing.random_streams import TABLE_TYPES, random_shape, random_stream, random_table

SHAPES = ("distinct", "set", "outer", "subquery", "stream", "aggregate of", "member", "sequence")
OUTER = ("LEFT", "RIGHT", "FULL", "LEFT SEMI", "LEFT ANTI")
SET = ("UNION", "UNION ALL", "EXCEPT", "EXCEPT ALL", "INTERSECT", "INTERSECT ALL")
# Columns that a random stream always has, with their kind.
_SHARED = ("k", "g", "x")
# A table's double stands in for a stream's.
TABLE_COLUMNS = tuple("x" if name == "w" else name for name in TABLE_TYPES)


def random_composition(seed: int, shape: str | None = None) -> Case:
    """The composition of a seed, of one of `SHAPES` or of any."""
    rng = Random(f"composition {seed} {shape}")
    return _Composer(Writer(rng)).case(seed, shape or rng.choice(SHAPES))


@dataclass
class _Composer:
    """Writes one query whose parts are queries."""

    writer: Writer
    streams: dict[str, GeneratedStream] = field(default_factory=dict)
    tables: dict[str, pa.Table] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.rng = self.writer.rng
        self.time = random_shape(self.rng)

    def case(self, seed: int, shape: str) -> Case:
        self.writer.note(f"shape:{shape}")
        emit = self.rng.choice(EMITS)
        self.writer.note(f"emit:{emit}")
        for i in range(3):
            rows = self.rng.randint(4, 18 if emit == "rstream" else 24)
            self.streams[f"s{i + 1}"] = random_stream(self.rng, self.time, rows)
        kind = "" if emit == "none" else f"{emit.upper()} "
        body = {
            "distinct": self.distinct,
            "set": self.set_operation,
            "outer": self.outer,
            "subquery": self.subquery,
            "stream": self.stream,
            "aggregate of": self.aggregate_of,
            "member": self.member,
            "sequence": self.looking_around,
        }[shape]
        sql = f"SELECT {kind}{body()} WITH (unbounded = true)"
        used = {name: s for name, s in self.streams.items() if f"{name}" in sql}
        return Case(seed, shape, used, self.tables, sql, frozenset(self.writer.features))

    # --- parts

    def source(self, name: str, alias: str, often: float = 0.2) -> Source:
        if alias in "bc" and self.writer.chance(often):
            self.writer.note("input:table")
            table = random_table(self.rng, self.time)
            self.tables["t1"] = table.rename_columns(TABLE_COLUMNS)
            return Source("t1", alias, TABLE_COLUMNS, f"t1 {alias}")
        columns = tuple(self.streams[name].table.column_names)
        return self.writer.stream_source(self.time, name, alias, columns)

    def stream_name(self) -> str:
        return self.rng.choice(list(self.streams))

    def condition(self, source: Source, often: float = 0.5) -> str:
        """A WHERE on one source, or nothing."""
        return f" WHERE {self.simple(source)}" if self.writer.chance(often) else ""

    def simple(self, source: Source) -> str:
        """A predicate that cannot fail on a row."""
        a, x = source["k"], source["x"]
        return self.rng.choice((f"{a} > 0", f"{a} IS NOT NULL", f"{x} < 1", f"{a} <> 2",
                                f"{x} IS NULL OR {a} = 1"))  # fmt: skip

    def shared(self, source: Source) -> list[str]:
        return [c for c in _SHARED if c in source.columns]

    # --- shapes

    def distinct(self) -> str:
        source = self.source(self.stream_name(), "a")
        columns = self.rng.sample(self.shared(source), self.rng.choice((1, 2)))
        return (
            f"DISTINCT {', '.join(source[c] for c in columns)} FROM {source.text}"
            f"{self.condition(source)}"
        )

    def plain(self, columns: tuple[str, ...], alias: str) -> str:
        """What follows SELECT in a query that shows these columns of some stream."""
        source = self.source(self.stream_name(), alias)
        shown = ", ".join(source[c] for c in columns)
        return f"{shown} FROM {source.text}{self.condition(source)}"

    def set_operation(self) -> str:
        columns = self.rng.choice((("k",), ("k", "x"), ("x",)))
        operator = self.rng.choice(SET)
        self.writer.note(f"set:{operator.lower()}")
        second = f"SELECT {self.plain(columns, 'b')}"
        if self.writer.chance(0.25):
            third = self.rng.choice(SET)
            self.writer.note("set:three")
            last = f"SELECT {self.plain(columns, 'c')}"
            second = f"(SELECT {self.plain(columns, 'b')} {third} {last})"
        return f"{self.plain(columns, 'a')} {operator} {second}"

    def outer(self) -> str:
        kind = self.rng.choice(OUTER)
        self.writer.note(f"outer:{kind.lower()}")
        left = self.source("s1", "a")
        right = self.source("s1" if self.writer.chance(0.15) else "s2", "b")
        on = [f"{left['k']} = {right['k']}"]
        if self.writer.chance(0.3):
            self.writer.note("outer:residual")
            on.append(f"{left['x']} {self.rng.choice(('<', '>='))} {right['x']}")
        if self.writer.chance(0.1):
            on = [f"{left['k']} < {right['k']}"]
            self.writer.note("outer:no key")
        text = f"{left.text} {kind} JOIN {right.text} ON {' AND '.join(on)}"
        sources = [left] if kind in ("LEFT SEMI", "LEFT ANTI") else [left, right]
        if self.writer.chance(0.3):
            self.writer.note("outer:third")
            third = self.source("s3", "c")
            link = f"{third['k']} = {left['k']}"
            text = self.rng.choice(
                (f"{text} JOIN {third.text} ON {link}", f"{text} LEFT JOIN {third.text} ON {link}")
            )
            sources.append(third)
        return self.shown(sources, text)

    def shown(self, sources: list[Source], text: str) -> str:
        """SELECT list, FROM and what follows, over sources that are joined already."""
        where = self.condition(self.rng.choice(sources), 0.3)
        if self.writer.chance(0.3):
            self.writer.note("composed:grouped")
            key = self.rng.choice(sources)["k"]
            most = f"max({sources[-1]['x']}) AS m"
            return f"{key} AS k, count(*) AS n, {most} FROM {text}{where} GROUP BY {key}"
        items = [f"{s[c]} AS c{i}{j}" for i, s in enumerate(sources)
                 for j, c in enumerate(self.rng.sample(self.shared(s), 2))]  # fmt: skip
        return f"{', '.join(items)} FROM {text}{where}"

    def subquery(self) -> str:
        """A relation inside FROM, alone or joined."""
        inner = self.inner_relation()
        sub = Source("", "q", ("k", "x"), f"({inner}) q")
        if self.writer.chance(0.4):
            return self.shown([sub], sub.text)
        other = self.source("s2", "b")
        self.writer.note("subquery:joined")
        text = f"{sub.text} JOIN {other.text} ON q.k = {other['k']}"
        if self.writer.chance(0.3):
            text = text.replace(" JOIN ", f" {self.rng.choice(OUTER[:3])} JOIN ", 1)
            self.writer.note("subquery:outer")
        return self.shown([sub, other], text)

    def inner_relation(self) -> str:
        source = self.source("s1", "i")
        if self.writer.chance(0.5):
            self.writer.note("inner:grouped")
            return (
                f"SELECT {source['k']} AS k, {self.rng.choice(('sum', 'max', 'count'))}"
                f"({source['x']}) AS x FROM {source.text}{self.condition(source)} "
                f"GROUP BY {source['k']}"
            )
        self.writer.note("inner:distinct")
        return f"SELECT DISTINCT {source['k']} AS k, {source['x']} AS x FROM {source.text}"

    def stream(self) -> str:
        """The stream that a subquery emits, under a window of its own."""
        emit = self.rng.choice(("ISTREAM", "DSTREAM", "RSTREAM"))
        self.writer.note(f"inner:{emit.lower()}")
        if self.writer.chance(0.3):
            return self.windowed(self.sequence())
        source = self.source("s1", "i")
        inner = f"SELECT {emit} {source['k']} AS k, {source['x']} AS x FROM {source.text}"
        if self.writer.chance(0.4):
            inner = (
                f"SELECT {emit} {source['k']} AS k, count(*) AS x FROM {source.text} "
                f"GROUP BY {source['k']}"
            )
        return self.windowed(inner)

    def sequence(self) -> str:
        """A stream that looks at other rows of a stream."""
        rng = self.rng
        over = rng.choice(("PARTITION BY k", "PARTITION BY k ORDER BY ts", "", "PARTITION BY k, x"))
        function = rng.choice(("lag", "lag", "lead", "row_number"))
        self.writer.note(f"over:{function}")
        call = f"{function}(x{rng.choice(('', ', 2', ', 0', ', 1, 7'))})"
        if function == "row_number":
            call = "row_number()"
        where = f" WHERE {rng.choice(('k > 0', '10 % k > 0'))}" if self.writer.chance(0.4) else ""
        return f"SELECT k, {call} OVER ({over}) AS x FROM s1{where}"

    def looking_around(self) -> str:
        return self.sequence().removeprefix("SELECT ")

    def windowed(self, inner: str) -> str:
        """The stream that a query emits under a window, alone or joined."""
        kinds = ("now", "range", "slide", "rows", "partition", "unbounded", "session", "every")
        window = self.writer.window(self.rng.choice(kinds), self.time, ("k", "x"))
        sub = Source("", "q", ("k", "x"), f"({inner}) {window} q")
        if self.writer.chance(0.5):
            return self.shown([sub], sub.text)
        self.writer.note("stream:joined")
        other = self.source("s2", "b")
        return self.shown([sub, other], f"{sub.text} JOIN {other.text} ON q.k = {other['k']}")

    def aggregate_of(self) -> str:
        """A set operation or an outer join inside FROM, grouped outside."""
        inner = self.set_operation if self.writer.chance(0.5) else self.plain_outer
        self.writer.note(f"of:{inner.__name__}")
        text = f"SELECT {inner()}"
        named = text.split(" FROM ", 1)[0]
        first = "k" if "a.k" in named else "x"
        return f"q.{first} AS v, count(*) AS n FROM ({text}) q GROUP BY q.{first}"

    def member(self) -> str:
        """Rows whose key is, or is not, among the answers of another query."""
        source = self.source("s1", "a")
        column = self.rng.choice(("k", "x"))
        asked = self.rng.choice(("IN", "IN", "NOT IN"))
        self.writer.note(f"member:{asked.lower()}")
        inner = f"SELECT {self.plain((column,), 'b')}"
        conditions = [f"{source[column]} {asked} ({inner})"]
        if self.writer.chance(0.3):
            conditions.insert(0, self.simple(source))
        if self.writer.chance(0.2):
            conditions.append(f"{source['k']} IN ({self.inner_keys()})")
            self.writer.note("member:two")
        items = ", ".join(source[c] for c in self.shared(source))
        conditions = [f"({c})" for c in conditions]
        return f"{items} FROM {source.text} WHERE {' AND '.join(conditions)}"

    def inner_keys(self) -> str:
        source = self.source("s3", "c")
        return f"SELECT {source['k']} FROM {source.text} GROUP BY {source['k']} HAVING count(*) > 1"

    def plain_outer(self) -> str:
        left, right = self.source("s1", "a"), self.source("s2", "b")
        return f"a.k, b.x FROM {left.text} FULL JOIN {right.text} ON a.k = b.k"
