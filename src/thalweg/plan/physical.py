"""The physical plan: how a query runs, as small frozen values, comparable, printable and picklable.

A plan is a list of relations, each made from streams, tables and relations before it; the last is
the answer. Most queries are one relation, a *block*: leaves (windows over the log), one pipeline
per leaf that may bring a change, then grouping or projection of the joined rows. The routing says
how rows are split over tasks.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from math import lcm

from thalweg.instants import AFTER_TIME, BEFORE_TIME
from thalweg.plan.leaf import Leaf
from thalweg.plan.logical import EmitKind, Schema, SortKey
from thalweg.plan.relations.block import Block, blocks_of
from thalweg.plan.relations.protocol import Relation, stored_leaves
from thalweg.windows.protocol import WindowSpec


class RoutingKind(Enum):
    """How a fragment's rows are split over tasks."""

    KEYS = "keys"
    CUBE = "cube"
    ANY = "any"
    SINGLE = "one bucket"


@dataclass(frozen=True, slots=True)
class Routing:
    """Tasks form a grid. Each of its `axes` names, per leaf, the stream's columns that are hashed;
    with () a leaf's rows are sent to every task along it. `shown` names, per relation of a plan of
    several, a column that shows what its rows are routed by ("" where none does)."""

    kind: RoutingKind
    axes: tuple[tuple[tuple[str, ...], ...], ...] = ()
    reason: str = ""
    shown: tuple[str, ...] = ()

    def keys_of(self, place: int) -> tuple[tuple[str, ...], ...]:
        """The keys a leaf is split by."""
        return tuple(axis[place] for axis in self.axes if axis[place])


@dataclass(frozen=True)
class QueryPlan:
    """All decisions for one query. The axes of `routing` belong to `leaves`, one for one.

    Derived properties are computed once: the driver reads them in every epoch, of every query.
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

    def block(self, number: int) -> Block:
        """The relation of this number, which is a block."""
        return dict(blocks_of(self.relations))[number]

    def with_block(self, number: int, block: Block) -> QueryPlan:
        relations = (*self.relations[:number], block, *self.relations[number + 1 :])
        return replace(self, relations=relations)

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        return tuple(block for _, block in blocks_of(self.relations))

    @cached_property
    def only_block(self) -> Block | None:
        """The relation of a plan that is one block."""
        return self.blocks[0] if len(self.relations) == len(self.blocks) == 1 else None

    @cached_property
    def leaves(self) -> tuple[Leaf, ...]:
        """The streams and tables read, relation by relation."""
        return tuple(stored_leaves(self.relations))

    @cached_property
    def stream_leaves(self) -> tuple[int, ...]:
        return tuple(i for i, leaf in enumerate(self.leaves) if not leaf.is_table)

    @cached_property
    def streams(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.leaves[i].relation for i in self.stream_leaves))

    @cached_property
    def stored_leaves(self) -> tuple[tuple[Relation, Leaf], ...]:
        """The leaves that are streams, with the relations that read them."""
        return tuple(
            (r, leaf) for r in self.relations for leaf in r.leaves
            if leaf.is_stored and not leaf.is_table
        )  # fmt: skip

    @cached_property
    def keys_wanted(self) -> tuple[tuple[str, tuple[str, ...], int], ...]:
        """Useful key indexes on the packs of streams: which stream, its columns, how much."""
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

    def last_change(self, last: int, *, emptied: bool = False) -> int:
        """The last instant at which rows of streams up to `last` make something appear; with
        `emptied`, at which time alone changes anything."""
        found: list[int] = []
        for relation in self.relations:
            own = [found[i] for i in relation.inputs]
            for leaf in relation.leaves:
                if leaf.window is not None:
                    below = last if leaf.source is None else found[leaf.source]
                    window = leaf.window
                    own.append(window.emptied(below) if emptied else window.settled(below))
            found.append(max(own, default=last) + (relation.lasts if emptied else 0))
        return found[-1]

    @cached_property
    def grain(self) -> int:
        """Epochs end at multiples of this many microseconds since 1970."""
        return lcm(*(r.grain for r in self.relations))

    def begun(self, instant: int) -> int:
        """The last end of an epoch up to an instant."""
        return instant - instant % self.grain if BEFORE_TIME < instant < AFTER_TIME else instant

    def ended(self, instant: int) -> int:
        """The first end of an epoch from an instant on."""
        return instant + -instant % self.grain if BEFORE_TIME < instant < AFTER_TIME else instant

    @cached_property
    def windows(self) -> tuple[WindowSpec, ...]:
        windows = (leaf.window for r in self.relations for leaf in r.leaves)
        return tuple(w for w in windows if w is not None)
