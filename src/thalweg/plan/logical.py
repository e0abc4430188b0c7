"""The logical algebra: what a query means, before any decision how to run it.

A relation at instant τ is a bag of rows. `Scan` is a raw stream or table, `Window` turns a stream
into a relation, `Filter`, `Join`, `Aggregate` and `Project` are relational, `Emit` turns the final
relation into output (CQL's three operator classes).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any

from thalweg.plan.expr import AggregateCall, Column, Expr, Predicate
from thalweg.plan.types import DataType


@dataclass(frozen=True, slots=True)
class Field:
    """A named, typed column."""

    name: str
    type: DataType
    nullable: bool = True

    def column(self) -> Column:
        return Column(self.type, self.nullable, self.name)


Schema = tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """`[RANGE d]` (closed at both ends), `[NOW]` (range 0), `[UNBOUNDED]` (range None).

    With `slide` the content changes only at boundaries b = k·slide and holds b-range ≤ ts < b. With
    `every` it holds what has come since the last multiple of it (LANDMARK EVERY). Only rows with
    since ≤ ts ≤ until ever enter (LANDMARK t, FROM t TO u).
    """

    range: int | None
    slide: int | None = None
    every: int | None = None
    since: int | None = None
    until: int | None = None

    @property
    def is_endless(self) -> bool:
        """Whether rows never leave again."""
        return self.range is None and self.every is None

    @property
    def grows(self) -> bool:
        """Whether the content grows for ever."""
        return self.is_endless and self.until is None

    def __str__(self) -> str:
        if self.every is not None:
            return f"[LANDMARK EVERY {format_duration(self.every)}]"
        if self.until is not None and self.since is not None:
            return f"[FROM {format_instant(self.since)} TO {format_instant(self.until)}]"
        if self.since is not None:
            return f"[LANDMARK {format_instant(self.since)}]"
        if self.range is None:
            return "[UNBOUNDED]"
        if self.range == 0 and self.slide is None:
            return "[NOW]"
        slide = "" if self.slide is None else f" SLIDE {format_duration(self.slide)}"
        return f"[RANGE {format_duration(self.range)}{slide}]"


@dataclass(frozen=True, slots=True)
class RowWindow:
    """`[ROWS n]`, or `[PARTITION BY cols ROWS n]` when `partition_by` is not empty.

    `partition_by` holds unique column names (`alias.column`).
    """

    rows: int
    partition_by: tuple[str, ...] = ()

    def __str__(self) -> str:
        by = f"PARTITION BY {', '.join(self.partition_by)} " if self.partition_by else ""
        return f"[{by}ROWS {self.rows}]"


@dataclass(frozen=True, slots=True)
class SessionWindow:
    """`[SESSION GAP d]`: rows of a partition no further apart than the gap are a session. At the
    instant at which it is certain that no row joins it any more, gap and one tick after its last,
    the window holds the whole session, and only then."""

    gap: int
    partition_by: tuple[str, ...] = ()

    def __str__(self) -> str:
        by = f"PARTITION BY {', '.join(self.partition_by)} " if self.partition_by else ""
        return f"[{by}SESSION GAP {format_duration(self.gap)}]"


KeptWindow = RowWindow | SessionWindow
"""Windows over the order of rows: later rows decide how long a row stays, so the content is kept,
and dropping rows before the window would change it."""
WindowSpec = TimeWindow | KeptWindow
UNBOUNDED = TimeWindow(None)
NOW = TimeWindow(0)

_UNITS = ((86_400_000_000, "d"), (3_600_000_000, "h"), (60_000_000, "min"), (1_000_000, "s"),
          (1_000, "ms"), (1, "µs"))  # fmt: skip


def format_duration(micros: int) -> str:
    """A duration in its largest whole unit."""
    for size, unit in _UNITS:
        if micros and micros % size == 0:
            return f"{micros // size} {unit}"
    return f"{micros} µs"


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def format_instant(micros: int) -> str:
    moment = _EPOCH + timedelta(microseconds=micros)
    return f"'{moment.replace(tzinfo=None).isoformat(' ')}'"


def instant_of(at: datetime | int) -> int:
    """Microseconds since 1970; a time without a zone is UTC."""
    if isinstance(at, int):
        return at
    zoned = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    return (zoned - _EPOCH) // timedelta(microseconds=1)


class EmitKind(Enum):
    """How the final relation becomes output."""

    ISTREAM = "ISTREAM"
    DSTREAM = "DSTREAM"
    RSTREAM = "RSTREAM"
    RELATION = "RELATION"


@dataclass(frozen=True, slots=True)
class Named:
    """An output column: its name and what it computes."""

    name: str
    expr: Expr

    def field(self) -> Field:
        return Field(self.name, self.expr.type, self.expr.nullable)


@dataclass(frozen=True, slots=True)
class NamedAggregate:
    name: str
    call: AggregateCall

    def field(self) -> Field:
        return Field(self.name, self.call.type, self.call.nullable)


@dataclass(frozen=True, slots=True)
class Node:
    """Any relational node."""

    @property
    def schema(self) -> Schema:
        raise AssertionError(f"{type(self).__name__} has no schema")

    @property
    def inputs(self) -> tuple[Node, ...]:
        return ()


@dataclass(frozen=True, slots=True)
class Scan(Node):
    """A stream (or static table) under an alias. Fields are named `alias.column`; the event time
    of a stream's row is not among them unless the stream has it as a column."""

    relation: str
    alias: str
    fields: Schema
    is_table: bool = False

    @property
    def schema(self) -> Schema:
        return self.fields


@dataclass(frozen=True, slots=True)
class Window(Node):
    input: Node
    window: WindowSpec

    @property
    def schema(self) -> Schema:
        return self.input.schema

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)


@dataclass(frozen=True, slots=True)
class SequenceColumn:
    """A column computed over the order of a stream: `lag` or `lead` of a column (`offset` rows
    away, `default` where there is none), or `row_number`."""

    name: str
    type: DataType
    function: str
    column: str = ""
    offset: int = 0
    default: Any = None

    def field(self) -> Field:
        return Field(self.name, self.type, self.function != "row_number")

    def __str__(self) -> str:
        inside = f"{self.column}, {self.offset}" if self.column else ""
        return f"{self.function}({inside})"


@dataclass(frozen=True, slots=True)
class Sequence(Node):
    """A stream with further columns over the order of its rows within a partition. With LEAD a row
    comes when the row it looks ahead to does."""

    input: Node
    partition_by: tuple[str, ...]
    columns: tuple[SequenceColumn, ...]

    @property
    def schema(self) -> Schema:
        return self.input.schema + tuple(c.field() for c in self.columns)

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)


@dataclass(frozen=True, slots=True)
class Filter(Node):
    """Keeps the rows on which every predicate is true."""

    input: Node
    predicates: tuple[Predicate, ...]

    @property
    def schema(self) -> Schema:
        return self.input.schema

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)


@dataclass(frozen=True, slots=True)
class Join(Node):
    """The inner join of all inputs in FROM order; without predicates, their product."""

    members: tuple[Node, ...]
    predicates: tuple[Predicate, ...] = ()

    @property
    def schema(self) -> Schema:
        return tuple(f for m in self.members for f in m.schema)

    @property
    def inputs(self) -> tuple[Node, ...]:
        return self.members


class CountRule(Enum):
    """How often a row is there, given how often it is in each input."""

    DISTINCT = "distinct"
    EXCEPT = "except"
    EXCEPT_ALL = "except all"
    INTERSECT = "intersect"
    INTERSECT_ALL = "intersect all"
    SEMI = "where the second has it"
    ANTI = "where the second lacks it"


@dataclass(frozen=True, slots=True)
class Union(Node):
    """All rows of all members, column by column as they stand; names are the first's."""

    members: tuple[Node, ...]

    @property
    def schema(self) -> Schema:
        columns = zip(*(m.schema for m in self.members), strict=True)
        return tuple(replace(c[0], nullable=any(f.nullable for f in c)) for c in columns)

    @property
    def inputs(self) -> tuple[Node, ...]:
        return self.members


@dataclass(frozen=True, slots=True)
class Count(Node):
    """Rows of equal content counted per member; the rule says how often each is there."""

    rule: CountRule
    members: tuple[Node, ...]

    @property
    def schema(self) -> Schema:
        return Union(self.members).schema

    @property
    def inputs(self) -> tuple[Node, ...]:
        return self.members


class OuterKind(Enum):
    """Joins that ask whether a row has a partner."""

    LEFT = "LEFT"
    FULL = "FULL"
    SEMI = "SEMI"
    ANTI = "ANTI"


@dataclass(frozen=True, slots=True)
class OuterJoin(Node):
    """LEFT and FULL keep rows without a partner, beside NULLs; SEMI and ANTI keep the left rows
    that have one, or have none."""

    kind: OuterKind
    left: Node
    right: Node
    predicates: tuple[Predicate, ...]

    @property
    def schema(self) -> Schema:
        left, right = self.left.schema, self.right.schema
        if self.kind in (OuterKind.SEMI, OuterKind.ANTI):
            return left
        if self.kind is OuterKind.FULL:
            left = as_nullable(left)
        return left + as_nullable(right)

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.left, self.right)


def as_nullable(schema: Schema) -> Schema:
    return tuple(replace(f, nullable=True) for f in schema)


@dataclass(frozen=True, slots=True)
class Closing:
    """A group is closed, and will never change again, `period` µs after the value of a key that is
    made of the event time (a TIMESTAMP, or a DATE)."""

    key: str
    period: int


@dataclass(frozen=True, slots=True)
class Aggregate(Node):
    """One row per distinct key; without keys exactly one row, even over nothing."""

    input: Node
    keys: tuple[Named, ...]
    aggregates: tuple[NamedAggregate, ...]
    closing: Closing | None = None

    @property
    def schema(self) -> Schema:
        return tuple(k.field() for k in self.keys) + tuple(a.field() for a in self.aggregates)

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)


@dataclass(frozen=True, slots=True)
class Project(Node):
    input: Node
    columns: tuple[Named, ...]

    @property
    def schema(self) -> Schema:
        return tuple(c.field() for c in self.columns)

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)


@dataclass(frozen=True, slots=True)
class SortKey:
    """An output column that RSTREAM sorts by."""

    column: str
    descending: bool
    nulls_first: bool

    def __str__(self) -> str:
        nulls = "FIRST" if self.nulls_first else "LAST"
        return f"{self.column} {'DESC' if self.descending else 'ASC'} NULLS {nulls}"


@dataclass(frozen=True, slots=True)
class Emit(Node):
    """The root of every continuous query; below a window, the stream that a subquery emits.

    RSTREAM may be sorted, and cut after `limit` rows per instant."""

    input: Node
    kind: EmitKind
    order: tuple[SortKey, ...] = ()
    limit: int | None = None

    @property
    def schema(self) -> Schema:
        return self.input.schema

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)


def walk(node: Node) -> Iterator[Node]:
    """The node and all below it, parents first."""
    yield node
    for child in node.inputs:
        yield from walk(child)


def transform(node: Node, change: Callable[[Node], Node]) -> Node:
    """Rebuild bottom-up, passing every node through `change`."""
    below = tuple(transform(child, change) for child in node.inputs)
    return change(node if below == node.inputs else with_inputs(node, below))


def with_inputs(node: Node, inputs: tuple[Node, ...]) -> Node:
    """The same node over other inputs."""
    if isinstance(node, (Join, Union, Count)):
        return replace(node, members=inputs)
    if isinstance(node, OuterJoin):
        return replace(node, left=inputs[0], right=inputs[1])
    return replace(node, input=inputs[0])  # type: ignore[call-arg]


def scans(node: Node) -> tuple[Scan, ...]:
    """The leaves in FROM order."""
    return tuple(n for n in walk(node) if isinstance(n, Scan))
