"""How a query runs: small frozen values, comparable, printable and picklable.

A plan is a list of relations, each made from streams, tables and relations before it; the last is
the answer. Most queries are one relation, a *block*: leaves (windows over the log), one pipeline
per leaf that may bring a change, then what happens to the joined rows. The routing says how rows
are split over tasks.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property

from thalweg.plan.expr import Predicate
from thalweg.plan.logical import (
    Closing,
    CountRule,
    EmitKind,
    Field,
    Named,
    NamedAggregate,
    OuterKind,
    Schema,
    SequenceColumn,
    SortKey,
)
from thalweg.plan.types import BIGINT
from thalweg.windows.protocol import OrderedWindow, TimeWindow, WindowSpec

REFERENCE, START, END = TRACKS = ("__reference", "__start", "__end")
"""Columns of rows that subresults refer to: where the row is, its first instant, and its last."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A windowed stream, a table (`window` None), or a relation of the plan (`source`): its rows
    as they stand, or, with `emits`, the stream it emits under a window.

    `filters` decide for good. `hints` may raise: they drop rows on which they are false and are
    asked again above the join. `post_filters` stand above a row window. `stream_columns` is the
    whole content of the stream, the tie-break inside an instant, listed for row windows only.
    `changes` marks a table that has had several versions, `is_static` a relation of tables alone.
    `members` look rows under [NOW] up in other leaves, beside `filters`.
    """

    alias: str
    relation: str
    fields: Schema
    window: WindowSpec | None
    filters: tuple[Predicate, ...] = ()
    hints: tuple[Predicate, ...] = ()
    post_filters: tuple[Predicate, ...] = ()
    stream_columns: tuple[str, ...] = ()
    order_by: tuple[str, ...] = ()
    source: int | None = None
    emits: EmitKind | None = None
    changes: bool = False
    is_static: bool = False
    members: tuple[Predicate, ...] = ()

    @property
    def is_table(self) -> bool:
        return self.window is None and self.source is None

    @property
    def is_standing(self) -> bool:
        """Whether its rows are always there."""
        return self.is_table and not self.changes

    @property
    def untracked(self) -> Schema:
        """The columns of the stream itself."""
        if self.fields and self.fields[-1].name == self.full(TRACKS[-1]):
            return self.fields[: -len(TRACKS)]
        return self.fields

    def tracked(self) -> Leaf:
        """The same with columns that say which row it is, and when it is there."""
        tracks = tuple(Field(self.full(t), BIGINT, False) for t in TRACKS)
        return replace(self, fields=self.untracked + tracks)

    @property
    def is_stored(self) -> bool:
        """Whether its rows are in packs that ingest or a table brought."""
        return self.source is None

    @property
    def keeps_rows(self) -> bool:
        """Whether the window's content is state of its own."""
        return self.window is not None and self.window.is_ordered

    @property
    def time_window(self) -> TimeWindow:
        assert isinstance(self.window, TimeWindow)
        return self.window

    @property
    def ordered_window(self) -> OrderedWindow:
        assert isinstance(self.window, OrderedWindow)
        return self.window

    def bare(self, name: str) -> str:
        """The stream's own name of one of its columns."""
        return name if self.source is not None else name[len(self.alias) + 1 :]

    def full(self, name: str) -> str:
        """The name in this query of a column of the stream."""
        return name if self.source is not None else f"{self.alias}.{name}"


@dataclass(frozen=True, slots=True)
class Check:
    """How drop probing looks a leaf up: by columns of one leaf, the one it hangs on. `is_all` says
    that these are all its keys; otherwise the others are asked when results are enumerated."""

    parent: int
    source: tuple[str, ...]
    target: tuple[str, ...]
    is_all: bool


@dataclass(frozen=True, slots=True)
class Probe:
    """One step of a pipeline: look up rows of `leaf` whose `target` equals `source`.

    `verify` repeats the equality where the hash alone does not settle it (`exact` says that it
    does, for keys without NULLs). `residual` are predicates that can be decided here. With `outer`
    rows without a match go on beside NULLs (LEFT), or only they do, or only the others. Without a
    `check` a leaf is not asked before results are enumerated.
    """

    leaf: int
    source: tuple[str, ...]
    target: tuple[str, ...]
    exact: bool
    verify: tuple[Predicate, ...] = ()
    residual: tuple[Predicate, ...] = ()
    outer: OuterKind | None = None
    check: Check | None = None


@dataclass(frozen=True, slots=True)
class Pipeline:
    """What a change of one leaf goes through. `order` are the other leaves as they are joined, also
    where a probe meets several of them at once in a subresult."""

    leaf: int
    probes: tuple[Probe, ...]
    order: tuple[int, ...] = ()

    @property
    def branches(self) -> bool:
        """Whether a leaf has several that hang on it, so that rows can be dropped by one before
        they meet the others."""
        parents = [p.check.parent for p in self.probes if p.check is not None]
        return len(set(parents)) < len(parents)


@dataclass(frozen=True, slots=True)
class Subresult:
    """The join of some leaves, kept so that others need not compute it again.

    It is looked up by the `key` columns of its members. As a cache (not `whole`) it knows some keys
    and learns others by `fill`, a pipeline that starts from a key instead of a row; `buckets` keys
    at most, and no more than `limit` bytes. A whole one, as in a tree of binary joins, knows all.
    Where the pipeline of a member joins just the other members first, changes come by there; for
    the other members `upkeep` has pipelines of its own.
    """

    members: tuple[int, ...]
    key: tuple[str, ...]
    fields: Schema
    fill: Pipeline
    whole: bool = False
    buckets: int = 0
    limit: int = 0
    upkeep: tuple[Pipeline, ...] = ()

    @property
    def alias(self) -> str:
        names = dict.fromkeys(f.name.split(".", 1)[0] for f in self.fields)
        return "⋈".join(names)

    @property
    def is_standing(self) -> bool:
        return False

    def full(self, name: str) -> str:
        return name


class RoutingKind(Enum):
    """How a fragment's rows are split over tasks."""

    KEYS = "keys"
    CUBE = "cube"
    ANY = "any"
    SINGLE = "one bucket"


@dataclass(frozen=True, slots=True)
class Routing:
    """Tasks form a grid. Each of its `axes` names, per leaf, the stream's columns that are hashed;
    with () a leaf's rows go to every task along it."""

    kind: RoutingKind
    axes: tuple[tuple[tuple[str, ...], ...], ...] = ()
    reason: str = ""

    def keys_of(self, place: int) -> tuple[tuple[str, ...], ...]:
        """The keys a leaf is split by."""
        return tuple(axis[place] for axis in self.axes if axis[place])


@dataclass(frozen=True, slots=True)
class Grouping:
    """GROUP BY and its aggregates."""

    keys: tuple[Named, ...]
    aggregates: tuple[NamedAggregate, ...]
    closing: Closing | None = None


@dataclass(frozen=True, slots=True)
class Block:
    """FROM, WHERE, GROUP BY, HAVING and SELECT. With `outer`, rows of the first leaf looked up in
    the second, whatever comes of it. `joins` are the predicates that pipelines are made from. Where
    pipelines look `subresults` up, `plain` are the same without them."""

    leaves: tuple[Leaf, ...]
    pipelines: tuple[Pipeline, ...]
    top: tuple[Predicate, ...]
    grouping: Grouping | None
    having: tuple[Predicate, ...]
    columns: tuple[Named, ...]
    outer: OuterKind | None = None
    joins: tuple[Predicate, ...] = ()
    subresults: tuple[Subresult, ...] = ()
    plain: tuple[Pipeline, ...] = ()

    @property
    def orders(self) -> dict[int, tuple[int, ...]]:
        """Per leaf that brings changes the others as they are joined."""
        return {p.leaf: p.order for p in self.pipelines}

    @property
    def is_many_way(self) -> bool:
        """Whether it joins three leaves or more."""
        return len(self.leaves) > 2 and self.outer is None

    @property
    def leaf_probes(self) -> tuple[Probe, ...]:
        """All probes that meet leaves, subresults or not."""
        return tuple(p for pipe in self.plain or self.pipelines for p in pipe.probes)

    def unit(self, number: int) -> Leaf | Subresult:
        """What a probe meets: a leaf, or, numbered after them, a subresult."""
        count = len(self.leaves)
        return self.leaves[number] if number < count else self.subresults[number - count]

    @property
    def schema(self) -> Schema:
        return tuple(c.field() for c in self.columns)

    @property
    def is_static(self) -> bool:
        """Whether it reads tables alone: then it appears as a whole when the query starts."""
        return all(leaf.is_table for leaf in self.leaves)

    @property
    def inputs(self) -> tuple[int, ...]:
        return tuple(leaf.source for leaf in self.leaves if leaf.source is not None)


@dataclass(frozen=True, slots=True)
class Merged:
    """The bag union of relations."""

    inputs: tuple[int, ...]
    schema: Schema


@dataclass(frozen=True, slots=True)
class Counted:
    """Rows that are there as often as a rule over their counts in the inputs says."""

    rule: CountRule
    inputs: tuple[int, ...]
    schema: Schema


@dataclass(frozen=True, slots=True)
class Sequenced:
    """A stream whose rows get columns over their order within a partition."""

    leaf: Leaf
    partition_by: tuple[str, ...]
    columns: tuple[SequenceColumn, ...]

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        return (self.leaf,)

    @property
    def inputs(self) -> tuple[int, ...]:
        return () if self.leaf.source is None else (self.leaf.source,)

    @property
    def schema(self) -> Schema:
        return self.leaf.fields + tuple(c.field() for c in self.columns)

    @property
    def lookahead(self) -> int:
        return max((c.offset for c in self.columns if c.function == "lead"), default=0)

    @property
    def lookback(self) -> int:
        return max((c.offset for c in self.columns if c.function == "lag"), default=0)


Relation = Block | Merged | Counted | Sequenced
Reading = Block | Sequenced
"""Relations that have leaves."""


@dataclass(frozen=True)
class QueryPlan:
    """All decisions for one query. The axes of `routing` belong to `leaves`, one for one.

    What follows from them is found out once: the driver asks for it in every epoch, of every query.
    """

    relations: tuple[Relation, ...]
    kind: EmitKind
    routing: Routing
    needs_netting: bool
    order: tuple[SortKey, ...] = ()
    limit: int | None = None

    @property
    def root(self) -> Relation:
        return self.relations[-1]

    @property
    def schema(self) -> Schema:
        return self.root.schema

    @cached_property
    def readings(self) -> tuple[Reading, ...]:
        return tuple(r for r in self.relations if isinstance(r, Reading))

    def block(self, number: int) -> Block:
        """The relation of this number, which is a block."""
        found = self.relations[number]
        assert isinstance(found, Block)
        return found

    def with_block(self, number: int, block: Block) -> QueryPlan:
        relations = (*self.relations[:number], block, *self.relations[number + 1 :])
        return replace(self, relations=relations)

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        return tuple(r for r in self.relations if isinstance(r, Block))

    @cached_property
    def leaves(self) -> tuple[Leaf, ...]:
        """The streams and tables read, relation by relation."""
        return tuple(leaf for r in self.readings for leaf in r.leaves if leaf.is_stored)

    @cached_property
    def stream_leaves(self) -> tuple[int, ...]:
        return tuple(i for i, leaf in enumerate(self.leaves) if not leaf.is_table)

    @cached_property
    def streams(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.leaves[i].relation for i in self.stream_leaves))

    @cached_property
    def stored_leaves(self) -> tuple[tuple[Reading, Leaf], ...]:
        """The leaves that are streams, with the relations that read them."""
        return tuple(
            (r, leaf) for r in self.readings for leaf in r.leaves
            if leaf.is_stored and not leaf.is_table
        )  # fmt: skip

    @cached_property
    def keys_wanted(self) -> tuple[tuple[str, tuple[str, ...], int], ...]:
        """Key indexes of use on the packs of streams: which stream, its columns, how much."""
        found = []
        for place, leaf in enumerate(self.leaves):
            if not leaf.is_table:
                keys = dict.fromkeys(self.routing.keys_of(place))
                found += [(leaf.relation, key, 2) for key in keys]
        for block in self.blocks:
            for probe in block.leaf_probes:
                leaf = block.leaves[probe.leaf]
                is_indexed = leaf.is_stored and not leaf.is_table and not leaf.keeps_rows
                if probe.target and is_indexed:
                    found.append((leaf.relation, probe.target, 1))
        return tuple(found)

    @cached_property
    def windows(self) -> tuple[WindowSpec, ...]:
        windows = (leaf.window for r in self.readings for leaf in r.leaves)
        return tuple(w for w in windows if w is not None)
