"""The logical algebra: the meaning of a query, before any decision how to run it.

A relation at instant τ is a bag of rows. `Scan` is a raw stream or table, `Window` turns a stream
into a relation, `Filter`, `Join`, `Aggregate` and `Project` are relational, `Emit` turns the final
relation into output (CQL's three operator classes).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, ClassVar

from thalweg.plan.expr import AggregateCall, Column, Expr, Predicate, columns_of
from thalweg.plan.types import DataType
from thalweg.windows.protocol import WindowSpec


@dataclass(frozen=True, slots=True)
class Field:
    """A named, typed column."""

    name: str
    type: DataType
    nullable: bool = True

    def column(self) -> Column:
        return Column(self.type, self.nullable, self.name)


Schema = tuple[Field, ...]


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
    """Any relational node. A feature's own node defines how it is lowered by
    `plan/planner.py:lowers`, and its meaning by `by_definition`."""

    row_by_row: ClassVar[bool] = False
    """Whether each of its rows comes of one combination of rows of the inputs, whatever other rows
    there are."""

    @property
    def schema(self) -> Schema:
        raise AssertionError(f"{type(self).__name__} has no schema")

    @property
    def inputs(self) -> tuple[Node, ...]:
        return ()

    def with_inputs(self, inputs: tuple[Node, ...]) -> Node:
        """The same node over other inputs."""
        return replace(self, input=inputs[0])  # type: ignore[call-arg]

    def reads(self) -> Iterator[str]:
        """The input columns that it reads."""
        return iter(())

    def keeps_for_ever(self, endless: str) -> list[str]:
        """The state that it would have to keep for ever over streams that grow without end."""
        return []

    def bounded_by(self) -> str | None:
        """What bounds its rows, although those of its inputs may never leave; None: nothing."""
        return None

    def recorded(self) -> Node | None:
        """The relation whose changes a view with RETAIN keeps; None where it cannot."""
        return None

    def answered(self, rows: Any, instant: int) -> Any:
        """The answer at an instant, made of the rows that are there (a table)."""
        return rows

    def by_definition(self, evaluator: Any, instant: int) -> Any:
        """Its rows at an instant, from those of its inputs (`evaluator.relation(node, instant)`);
        None for the nodes that the reference evaluator knows itself."""
        return None


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

    def reads(self) -> Iterator[str]:
        return iter(self.window.partition_by)


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
    appears when the row it refers to arrives."""

    input: Node
    partition_by: tuple[str, ...]
    columns: tuple[SequenceColumn, ...]

    @property
    def schema(self) -> Schema:
        return self.input.schema + tuple(c.field() for c in self.columns)

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    def reads(self) -> Iterator[str]:
        yield from self.partition_by
        yield from (c.column for c in self.columns)


@dataclass(frozen=True, slots=True)
class Filter(Node):
    """Keeps the rows on which every predicate is true."""

    row_by_row = True
    input: Node
    predicates: tuple[Predicate, ...]

    @property
    def schema(self) -> Schema:
        return self.input.schema

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    def reads(self) -> Iterator[str]:
        return _read_by(self.predicates)


@dataclass(frozen=True, slots=True)
class Join(Node):
    """The inner join of all inputs in FROM order; without predicates, their product."""

    row_by_row = True
    members: tuple[Node, ...]
    predicates: tuple[Predicate, ...] = ()

    @property
    def schema(self) -> Schema:
        return tuple(f for m in self.members for f in m.schema)

    @property
    def inputs(self) -> tuple[Node, ...]:
        return self.members

    def with_inputs(self, inputs: tuple[Node, ...]) -> Node:
        return replace(self, members=inputs)

    def reads(self) -> Iterator[str]:
        return _read_by(self.predicates)

    def keeps_for_ever(self, endless: str) -> list[str]:
        return _joined_for_ever(self, endless)


class CountRule(Enum):
    """The multiplicity of a row, given its multiplicity in each input."""

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

    def with_inputs(self, inputs: tuple[Node, ...]) -> Node:
        return replace(self, members=inputs)


@dataclass(frozen=True, slots=True)
class Count(Node):
    """Rows of equal content counted per member; the rule gives their multiplicity."""

    rule: CountRule
    members: tuple[Node, ...]

    @property
    def schema(self) -> Schema:
        return Union(self.members).schema

    @property
    def inputs(self) -> tuple[Node, ...]:
        return self.members

    def with_inputs(self, inputs: tuple[Node, ...]) -> Node:
        return replace(self, members=inputs)

    def keeps_for_ever(self, endless: str) -> list[str]:
        words = "a join" if self.rule in (CountRule.SEMI, CountRule.ANTI) else self.rule.name
        return [f"{words.replace('_', ' ')} over all of {endless} keeps every row"]


class OuterKind(Enum):
    """Joins that test whether a row has a partner."""

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

    def with_inputs(self, inputs: tuple[Node, ...]) -> Node:
        return replace(self, left=inputs[0], right=inputs[1])

    def reads(self) -> Iterator[str]:
        return _read_by(self.predicates)

    def keeps_for_ever(self, endless: str) -> list[str]:
        if self.kind is OuterKind.FULL and not _joined_for_ever(self, endless):
            return [f"FULL JOIN must keep every row of {endless}"]
        return _joined_for_ever(self, endless)


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

    def reads(self) -> Iterator[str]:
        for expr in (*(k.expr for k in self.keys), *(a.call for a in self.aggregates)):
            yield from columns_of(expr)

    def keeps_for_ever(self, endless: str) -> list[str]:
        if self.closing is not None:
            return []
        if self.keys:
            return [f"GROUP BY over all of {endless} keeps every group ever seen"]
        calls = (a.call for a in self.aggregates)
        return [f"{c} keeps every value of {endless}" for c in calls if c.holds_values]


@dataclass(frozen=True, slots=True)
class Project(Node):
    row_by_row = True
    input: Node
    columns: tuple[Named, ...]

    @property
    def schema(self) -> Schema:
        return tuple(c.field() for c in self.columns)

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    def reads(self) -> Iterator[str]:
        for column in self.columns:
            yield from columns_of(column.expr)


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


def has_streams(node: Node) -> bool:
    """Whether any leaf below is a stream: tables change by commands only."""
    return any(isinstance(n, Scan) and not n.is_table for n in walk(node))


def _joined_for_ever(node: Node, endless: str) -> list[str]:
    changing = sum(map(has_streams, node.inputs))
    return [f"a join must keep every row of {endless}"] if changing > 1 else []


def _read_by(predicates: tuple[Predicate, ...]) -> Iterator[str]:
    for predicate in predicates:
        yield from columns_of(predicate.expr)


def transform(node: Node, change: Callable[[Node], Node]) -> Node:
    """Rebuild bottom-up, passing every node through `change`."""
    below = tuple(transform(child, change) for child in node.inputs)
    return change(node if below == node.inputs else node.with_inputs(below))


def scans(node: Node) -> tuple[Scan, ...]:
    """The leaves in FROM order."""
    return tuple(n for n in walk(node) if isinstance(n, Scan))
