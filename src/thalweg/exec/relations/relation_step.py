"""One relation in one step: its inputs, its leaves, and its state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from thalweg.columns.frame import Changes, Frame, arrow_columns
from thalweg.columns.vector import Mask, from_arrow
from thalweg.exec.aggregate.group_state import StatePack
from thalweg.exec.context import TaskContext
from thalweg.exec.leaves.now_membership import InstantLeaf
from thalweg.exec.leaves.ordered_window import KeptLeaf, arriving_rows
from thalweg.exec.leaves.protocol import LeafReader
from thalweg.exec.leaves.subrelation import DerivedLeaf
from thalweg.exec.leaves.task_share import Share, share_of
from thalweg.exec.leaves.time_window import TimeLeaf
from thalweg.exec.leaves.versioned_table import VersionedLeaf
from thalweg.exec.predicates.conjunction import judge, reject
from thalweg.exec.relations.rstream import stream_of
from thalweg.exec.step_state import StepState
from thalweg.plan import state_slots
from thalweg.plan.expr import Member
from thalweg.plan.leaf import Leaf
from thalweg.plan.physical import RoutingKind
from thalweg.plan.relations.block import Block
from thalweg.plan.state_slots import SlotKind
from thalweg.store.hashing import hash_columns
from thalweg.store.packs import TIME, Key, PackMeta, arrange


class RelationInStep:
    """The `RelationStep` of relation `number`."""

    def __init__(self, state: StepState, number: int, only_new: bool) -> None:
        self.state = state
        self.ctx: TaskContext = state.ctx
        self.number = number
        self.only_new = only_new
        self.keeps_state = state.keeps_state

    def inputs(self) -> list[Changes]:
        relation = self.state.plan.relations[self.number]
        return [self._renamed(i) for i in relation.inputs]

    def raw_inputs(self) -> list[Changes]:
        relation = self.state.plan.relations[self.number]
        return [self.state.changes[i] for i in relation.inputs]

    def own_rows(self, frame: Frame) -> Mask | None:
        task, routing = self.state.task, self.state.plan.routing
        if task.parts == 1 or routing.kind is not RoutingKind.KEYS:
            return None
        (low, high), column = task.ranges[0], routing.shown[self.number]
        hashes = hash_columns([frame.columns[column].to_arrow()], frame.length)
        found: Mask = (hashes >= np.uint64(low)) & (hashes <= np.uint64(high))
        return found

    def _renamed(self, number: int) -> Changes:
        """Columns of an input by position, under the names they have from here on."""
        changes, relations = self.state.changes[number], self.state.plan.relations
        own, schema = relations[number].schema, relations[self.number].schema
        columns = {
            new.name: changes.frame.columns[old.name] for new, old in zip(schema, own, strict=False)
        }
        return Changes(Frame(columns, len(changes)), changes.ts, changes.signs)

    def stored(self, kind: SlotKind, leaf: int | None = None) -> tuple[StatePack, ...]:
        return self.state.stored(state_slots.slot(self.number, kind, leaf))

    def tables(self, kind: SlotKind, leaf: int | None = None) -> list[pa.Table]:
        return self.state.tables(state_slots.slot(self.number, kind, leaf))

    def keep(
        self,
        kind: SlotKind,
        table: pa.Table | None,
        keys: tuple[Key, ...] = (),
        leaf: int | None = None,
    ) -> None:
        self.state.keep(state_slots.slot(self.number, kind, leaf), table, keys)

    def wake(self, instant: int) -> None:
        self.state.wakes.append(instant)

    def arriving(self, leaf: int) -> list[pa.Table]:
        one = self.state.plan.relations[self.number].leaves[leaf]
        if one.source is not None:
            emitted = stream_of(self.state, self.number, leaf)
            return [self._passing(one, _emitted_rows(one, emitted))]
        share = self._share(leaf)
        since, names = self.state.since(one), one.stream_columns
        packs = self.state.packs(self.number, leaf)
        tables = [arriving_rows(self.ctx, names, meta, share, since) for meta in packs]
        return [self._passing(one, t) for t in tables if t.num_rows]

    def _passing(self, leaf: Leaf, table: pa.Table) -> pa.Table:
        """The rows that pass the leaf's filters."""
        if not leaf.filters:
            return table
        columns = {f.name: from_arrow(table.column(leaf.bare(f.name)), f.type) for f in leaf.fields}
        judged = judge(leaf.filters, columns, table.num_rows, self.ctx)
        if len(judged.erring):
            frame = Frame(columns, table.num_rows)
            reject(judged, frame, table.column(TIME).to_numpy(), self.ctx)
        return table.take(pa.array(judged.passing))

    def _share(self, leaf: int) -> Share:
        task, place = self.state.task, self.state.place(self.number, leaf)
        return share_of(self.state.plan, place, task.ranges, task.part, task.parts)

    # -- leaves of blocks ----------------------------------------------------------------------

    def leaves(self, block: Block) -> list[LeafReader]:
        """Readers of all leaves; those that are looked up in others are last."""
        found: dict[int, LeafReader] = {}
        for i in sorted(range(len(block.leaves)), key=lambda i: bool(block.leaves[i].members)):
            found[i] = self._leaf(block, i, found)
            self.wake(found[i].wakes_at())
        return [found[i] for i in range(len(found))]

    def _leaf(self, block: Block, i: int, others: Mapping[int, LeafReader]) -> LeafReader:
        leaf, task = block.leaves[i], self.state.task
        if leaf.source is not None:
            return self._derived(block, i)
        packs = self.state.packs(self.number, i)
        if leaf.is_table and leaf.changes:
            follows = all(p.leaf != i for p in block.pipelines)
            return VersionedLeaf(self.ctx, leaf, i, packs, follows)
        share = self._share(i)
        if leaf.members:
            return self._instant(i, leaf, share, others)
        if leaf.keeps_rows:
            return self._kept(i, leaf, packs, share)
        floor = None if leaf.is_table else task.floor_of(leaf.relation)
        probed = any(p.leaf == i for p in block.leaf_probes)
        once = not leaf.is_table and leaf.time_window.is_endless and not probed
        return TimeLeaf(self.ctx, leaf, i, packs, share, floor, once)

    def _kept(self, i: int, leaf: Leaf, packs: Sequence[PackMeta], share: Share) -> LeafReader:
        name = state_slots.slot(self.number, state_slots.LEAF, i)
        stored = [s.meta for s in self.state.stored(name)]
        store = dict(self.state.task.shared).get(name)
        since = self.state.since(leaf) if store is None else store
        rows = KeptLeaf(self.ctx, leaf, i, packs, share, stored, since, store is not None)
        if leaf.ordered_window.waits:
            self.state.closings[self.number, i] = rows.closings()
        if store is None:
            self.state.keep(name, rows.state(), (share.key,) if share.key else ())
        return rows

    def _instant(
        self, i: int, leaf: Leaf, share: Share, others: Mapping[int, LeafReader]
    ) -> LeafReader:
        stored = [s.meta for s in self.stored(state_slots.LEAF, i)]
        packs, since = self.state.packs(self.number, i), self.state.since(leaf)
        rows = InstantLeaf(self.ctx, leaf, i, packs, share, stored, others, since)
        self.keep(state_slots.LEAF, rows.state(), (share.key,) if share.key else (), i)
        return rows

    def _derived(self, block: Block, i: int) -> LeafReader:
        leaf = block.leaves[i]
        assert leaf.source is not None
        changes = self.state.changes[leaf.source]
        probed = tuple(
            dict.fromkeys(block.probed_keys(i))
            | {m.target: None for m in _members(block) if m.leaf == i}
        )
        if leaf.emits is not None:
            return self._emitted(i, leaf, probed)
        stored = [s.meta for s in self.stored(state_slots.ROWS, i)]
        follows = all(p.leaf != i for p in block.pipelines)
        rows = DerivedLeaf(self.ctx, leaf, -1 if follows else i, changes, stored)
        if probed or any(other.is_table for other in block.leaves):  # a table may begin to change
            self.keep(state_slots.ROWS, rows.state(), probed, i)
        return rows

    def _emitted(self, i: int, leaf: Leaf, keys: tuple[Key, ...]) -> LeafReader:
        """The stream that a relation emits, stored as packs for as long as the window reaches
        back."""
        name = state_slots.slot(self.number, state_slots.STREAM, i)
        stored = [s.meta for s in self.state.stored(name)]
        emitted = stream_of(self.state, self.number, i)
        if len(emitted):
            columns = arrow_columns(emitted.frame, leaf.fields)
            table = arrange(pa.table(columns), emitted.ts, keys)
            meta = self.state.write(name, table)
            self.state.result.state[name] = StatePack(meta)
            stored.append(meta)
        if leaf.keeps_rows:
            return self._kept(i, leaf, stored, Share())
        return TimeLeaf(self.ctx, leaf, i, stored, Share())


def _emitted_rows(leaf: Leaf, changes: Changes) -> pa.Table:
    columns = arrow_columns(changes.frame, leaf.fields)
    return pa.table({**columns, TIME: pa.array(changes.ts)})


def _members(block: Block) -> list[Member]:
    asked = [p.expr for leaf in block.leaves for p in leaf.members]
    return [m for m in asked if isinstance(m, Member)]
