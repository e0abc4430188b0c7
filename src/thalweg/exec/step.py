"""One query, one epoch, one task: the step.

`step(task, ...)` reads packs, computes what changes at the instants [since, until), writes its
output and new state as packs and returns their names with a profile. It depends on nothing but
its arguments; running it again writes the same rows under other names.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from thalweg.columns.frame import Changes, Frame, arrow_columns, concat_changes
from thalweg.columns.vector import from_arrow
from thalweg.exec import slots
from thalweg.exec.aggregate import aggregate
from thalweg.exec.context import TaskContext, rejects_table
from thalweg.exec.counted import count
from thalweg.exec.derived import DerivedLeaf
from thalweg.exec.emit import (
    arrival_instants,
    in_order,
    output_table,
    projected,
    repeat,
    revised,
    select_sign,
)
from thalweg.exec.expressions import UserFunction
from thalweg.exec.filters import judge, reject
from thalweg.exec.groupstate import StatePack
from thalweg.exec.instantleaf import InstantLeaf
from thalweg.exec.joins.joined import Joined
from thalweg.exec.joins.keeping import Keeper
from thalweg.exec.keptleaf import KeptLeaf, arriving_rows
from thalweg.exec.leaf import Floor, InstantSet, LeafReader, TimeLeaf
from thalweg.exec.many.matching import wanted_rows
from thalweg.exec.many.roll import Roll
from thalweg.exec.netting import net
from thalweg.exec.sequenced import sequence
from thalweg.exec.share import Ranges, Share, share_of
from thalweg.exec.shared import Common
from thalweg.exec.tactics import AnyTactic, Seen, Subject
from thalweg.exec.versioned import VersionedLeaf
from thalweg.instants import AFTER_TIME, Ints
from thalweg.plan.expr import Member
from thalweg.plan.logical import EmitKind, Schema
from thalweg.plan.physical import (
    Block,
    Leaf,
    Merged,
    QueryPlan,
    Reading,
    Sequenced,
)
from thalweg.store.packs import TIME, Key, PackCache, PackMeta, arrange, write_pack


@dataclass(frozen=True, slots=True)
class StepTask:
    """Everything a step needs to know.

    `packs` are per leaf of the plan; `state` maps slots (see `exec/slots.py`) to packs, oldest
    first. `start` is the query's first instant, None while there is none. `floors` are streams
    whose oldest rows are given up, with the floor before this step and the floor now. `tactics`
    order conjunctions while the step runs; `ranges` are the hashes of its share along each axis of
    the routing; `common` predicates are asked by other queries too. With a `roll` the output goes
    to its members. Slots that are `shared` hold what others hold too, as of the instants given.
    """

    query: str
    plan: QueryPlan
    since: int
    until: int
    start: int | None
    packs: tuple[tuple[PackMeta, ...], ...]
    state: Mapping[str, tuple[StatePack, ...]]
    ranges: Ranges = ()
    part: int = 0
    parts: int = 1
    prefix: str = ""
    seq: int = 0
    floors: tuple[tuple[str, int, int], ...] = ()
    tactics: tuple[tuple[Subject, AnyTactic], ...] = ()
    common: Common = frozenset()
    roll: Roll | None = None
    shared: tuple[tuple[str, int], ...] = ()

    def floor_of(self, stream: str) -> Floor | None:
        return next((Floor(b, n) for s, b, n in self.floors if s == stream), None)


@dataclass(slots=True)
class StepResult:
    """What a step wrote and counted. `state` lists new packs per slot; slots in `replaced` drop
    what this task's share held before. `observations` belong to the task's tactics, by number.
    `wakes_at` is the first instant after the epoch at which the output may change though no row
    comes; None if there is none. `error` is set when the query's own code failed."""

    query: str
    outputs: list[PackMeta] = field(default_factory=list)
    rejects: list[PackMeta] = field(default_factory=list)
    state: dict[str, StatePack] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    observations: list[tuple[int, Seen]] = field(default_factory=list)
    wakes_at: int | None = None
    error: str | None = None


def step(task: StepTask, cache: PackCache, functions: Mapping[str, UserFunction]) -> StepResult:
    ctx = TaskContext(
        cache, functions, task.since, task.until, task.start, dict(task.tactics), task.common
    )
    run = _Step(task, ctx)
    changes = run.output_changes()
    run.write_output(changes)
    rejected = rejects_table(ctx.rejects)
    if rejected is not None:
        run.result.rejects.append(run.write("rejects", rejected))
        ctx.counts["rejected"] += rejected.num_rows
    run.result.counts = dict(ctx.counts)
    run.result.wakes_at = min((at for at in run.wakes if at < AFTER_TIME), default=None)
    run.result.observations = [
        (number, seen)
        for number, (watched, _) in enumerate(task.tactics)
        for seen in ctx.observations.get(watched, ())
    ]
    return run.result


class _Step:
    def __init__(self, task: StepTask, ctx: TaskContext) -> None:
        self.task = task
        self.ctx = ctx
        self.plan = task.plan
        self.result = StepResult(task.query)
        self._changes: list[Changes] = []
        self._places = _places(task.plan)
        self.wakes: list[int] = []
        self._closings: dict[tuple[int, int], Ints] = {}
        self._streams: dict[tuple[int, int], Changes] = {}

    # -- the relations' changes --------------------------------------------------------------

    def output_changes(self) -> Changes:
        """What the answer's relation becomes as output; relations below it come first."""
        plan = self.plan
        last = len(plan.relations) - 1
        for number in range(last):
            self._changes.append(net(self._relation(number)))
        if plan.kind is EmitKind.RSTREAM:
            repeated = self._repeated(last, self._relation(last), slots.slot(last, slots.BAG))
            return in_order(plan, repeated)
        only_new = plan.kind is EmitKind.ISTREAM
        changes = self._relation(last, only_new=only_new)
        if plan.needs_netting:
            changes = net(changes)
        return select_sign(changes, plan.kind)

    def _relation(self, number: int, only_new: bool = False) -> Changes:
        """All changes of a relation; with `only_new`, of what vanishes only what netting needs."""
        relation = self.plan.relations[number]
        if isinstance(relation, Block):
            return self._block(number, relation, only_new)
        if isinstance(relation, Sequenced):
            return self._sequenced(number, relation)
        inputs = [self._renamed(i, relation.schema) for i in relation.inputs]
        if isinstance(relation, Merged):
            return concat_changes(inputs, relation.schema)
        name = slots.slot(number, slots.COUNTS)
        stored = self.task.state.get(name, ())
        found = count(self.ctx, relation.rule, inputs, relation.schema, stored)
        self._keep(name, found.state)
        return found.changes

    def _sequenced(self, number: int, relation: Sequenced) -> Changes:
        leaf = relation.leaf
        if leaf.source is None:
            packs = self.task.packs[self._places[number, 0]]
            since, names = self._since(leaf), leaf.stream_columns
            tables = [arriving_rows(self.ctx, names, meta, Share(), since) for meta in packs]
            tables = [self._passing(leaf, t) for t in tables if t.num_rows]
        else:
            emitted = self._stream_of(number, 0, leaf)
            tables = [self._passing(leaf, _emitted_rows(leaf, emitted))]
        name = slots.slot(number, slots.LAST)
        before = [self.ctx.cache.open(s.meta.name).table for s in self.task.state.get(name, ())]
        changes, last = sequence(self.ctx, relation, [*before, *tables])
        self._keep(name, last)
        return changes

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

    def _renamed(self, number: int, schema: Schema) -> Changes:
        """Columns of an input by position, under the names they have from here on."""
        changes = self._changes[number]
        own = self.plan.relations[number].schema
        columns = {
            new.name: changes.frame.columns[old.name] for new, old in zip(schema, own, strict=True)
        }
        return Changes(Frame(columns, len(changes)), changes.ts, changes.signs)

    def _block(self, number: int, block: Block, only_new: bool) -> Changes:
        leaves: dict[int, LeafReader] = {}
        for i in sorted(range(len(block.leaves)), key=lambda i: bool(block.leaves[i].members)):
            leaves[i] = self._leaf(number, block, i, leaves)
            self.wakes.append(leaves[i].wakes_at())
        task = self.task
        keeper = Keeper(
            self.ctx, (task.query, number, task.ranges, task.part, task.parts),
            not task.floors,
        )  # fmt: skip
        joined = Joined(self.ctx, number, block, [leaves[i] for i in range(len(leaves))], keeper)
        if block.grouping is not None:
            changes = self._grouped(number, block, joined, only_new)
        else:
            changes = self._plain(block, joined, only_new)
        joined.settle()
        return changes

    def _plain(self, block: Block, joined: Joined, only_new: bool) -> Changes:
        appear = projected(self.ctx, block, joined.arrivals(), note=True)
        if only_new and not self.plan.needs_netting:
            return appear
        at = InstantSet(appear.ts) if only_new else None
        vanish = projected(self.ctx, block, joined.departures(at), note=False)
        return concat_changes([appear, vanish], block.schema)

    def _grouped(self, number: int, block: Block, joined: Joined, only_new: bool) -> Changes:
        task = self.task
        assert block.grouping is not None
        needs_ends = any(a.call.kind.wants_ends for a in block.grouping.aggregates)
        known = needs_ends and all(_has_ends(leaf) for leaf in block.leaves)
        appear = joined.arrivals(want_ends=known)
        vanish = joined.departures()
        if known:
            if appear.ends is None:
                appear.ends = np.empty(0, np.int64)
            vanish.ends = np.zeros(len(vanish), np.int64)
        changes = concat_changes([appear, vanish], joined.schema)
        if known and changes.ends is None:
            changes.ends = np.zeros(len(changes), np.int64)
        name = slots.slot(number, slots.GROUPS)
        found = aggregate(
            self.ctx,
            block.grouping,
            changes,
            task.state.get(name, ()),
            task.start if self.ctx.begins else None,
        )
        self._keep(name, found.state, sides=found.sides)
        skip_old = only_new and not self.plan.needs_netting
        return revised(self.ctx, block, found.revisions, skip_old)

    def _repeated(self, number: int, changes: Changes, slot: str) -> Changes:
        """RSTREAM of a relation."""
        if self.task.start is None:
            return changes.take(np.empty(0, np.int64))
        schema = self.plan.relations[number].schema
        stored = [self.ctx.cache.open(s.meta.name).table for s in self.task.state.get(slot, ())]
        instants = np.unique(self._due(number, self.task.start))
        emitted, bag = repeat(schema, stored, changes, instants)
        self._keep(slot, bag)
        if bag is not None and bag.num_rows:
            self.wakes.append(_next_boundary(self.plan, self.ctx.until))
        return emitted

    def _due(self, number: int, start: int) -> Ints:
        """Instants at which RSTREAM emits: those of arrivals on the sources of a relation, of SLIDE
        boundaries and of the ends of sessions."""
        relation = self.plan.relations[number]
        if not isinstance(relation, Reading):
            found = [self._due(i, start) for i in relation.inputs]
        else:
            found = [self._due_to(number, i, start) for i in range(len(relation.leaves))]
        return np.concatenate(found)

    def _due_to(self, number: int, i: int, start: int) -> Ints:
        relation = self.plan.relations[number]
        assert isinstance(relation, Reading)
        leaf = relation.leaves[i]
        if leaf.is_table:
            return np.empty(0, np.int64)
        if (number, i) in self._closings:
            return self._closings[number, i]
        if leaf.window is not None:
            boundaries = leaf.window.boundaries(max(self.ctx.since, start + 1), self.ctx.until)
            if boundaries is not None:
                return boundaries
        if leaf.source is None:
            packs = self.task.packs[self._places[number, i]]
            return arrival_instants(self.ctx, packs, self._since(leaf))
        if leaf.emits is None:
            return self._due(leaf.source, start)
        return self._stream_of(number, i, leaf).ts

    # -- leaves ------------------------------------------------------------------------------

    def _since(self, leaf: Leaf) -> int:
        """Rows before this are not of this epoch, or the query does not see them."""
        floor = self.task.floor_of(leaf.relation) if leaf.is_stored else None
        return self.ctx.since if floor is None else max(self.ctx.since, floor.now)

    def _leaf(
        self, number: int, block: Block, i: int, others: Mapping[int, LeafReader]
    ) -> LeafReader:
        leaf = block.leaves[i]
        if leaf.source is not None:
            return self._derived(number, block, i)
        place = self._places[number, i]
        if leaf.is_table and leaf.changes:
            follows = all(p.leaf != i for p in block.pipelines)
            return VersionedLeaf(self.ctx, leaf, i, self.task.packs[place], follows)
        task = self.task
        share = share_of(self.plan, place, task.ranges, task.part, task.parts)
        if leaf.members:
            return self._instant(number, i, leaf, share, others)
        if leaf.keeps_rows:
            return self._kept(number, i, leaf, self.task.packs[place], share)
        floor = None if leaf.is_table else self.task.floor_of(leaf.relation)
        probed = any(p.leaf == i for p in block.leaf_probes)
        once = not leaf.is_table and leaf.time_window.is_endless and not probed
        return TimeLeaf(self.ctx, leaf, i, self.task.packs[place], share, floor, once)

    def _kept(
        self, number: int, i: int, leaf: Leaf, packs: Sequence[PackMeta], share: Share
    ) -> LeafReader:
        name = slots.slot(number, slots.LEAF, i)
        stored = [s.meta for s in self.task.state.get(name, ())]
        store = dict(self.task.shared).get(name)
        since = self._since(leaf) if store is None else store
        rows = KeptLeaf(self.ctx, leaf, i, packs, share, stored, since, store is not None)
        if leaf.window is not None and leaf.window.waits:
            self._closings[number, i] = rows.closings()
        if store is None:
            self._keep(name, rows.state(), (share.key,) if share.key else ())
        return rows

    def _instant(
        self, number: int, i: int, leaf: Leaf, share: Share, others: Mapping[int, LeafReader]
    ) -> LeafReader:
        name = slots.slot(number, slots.LEAF, i)
        stored = [s.meta for s in self.task.state.get(name, ())]
        packs = self.task.packs[self._places[number, i]]
        rows = InstantLeaf(self.ctx, leaf, i, packs, share, stored, others, self._since(leaf))
        self._keep(name, rows.state(), (share.key,) if share.key else ())
        return rows

    def _derived(self, number: int, block: Block, i: int) -> LeafReader:
        leaf = block.leaves[i]
        assert leaf.source is not None
        changes = self._changes[leaf.source]
        probed = tuple(
            {p.target: None for p in block.leaf_probes if p.leaf == i}
            | {m.target: None for m in _members(block) if m.leaf == i}
        )
        if leaf.emits is not None:
            return self._emitted(number, i, leaf, probed)
        name = slots.slot(number, slots.ROWS, i)
        stored = [s.meta for s in self.task.state.get(name, ())]
        follows = all(p.leaf != i for p in block.pipelines)
        rows = DerivedLeaf(self.ctx, leaf, -1 if follows else i, changes, stored)
        if probed or any(other.is_table for other in block.leaves):  # a table may begin to change
            self._keep(name, rows.state(), probed)
        return rows

    def _emitted(self, number: int, i: int, leaf: Leaf, keys: tuple[Key, ...]) -> LeafReader:
        """The stream a relation emits, kept as packs for as long as the window reaches back."""
        name = slots.slot(number, slots.STREAM, i)
        stored = [s.meta for s in self.task.state.get(name, ())]
        emitted = self._stream_of(number, i, leaf)
        if len(emitted):
            columns = arrow_columns(emitted.frame, leaf.fields)
            table = arrange(pa.table(columns), emitted.ts, keys)
            meta = self.write(name, table)
            self.result.state[name] = StatePack(meta)
            stored.append(meta)
        if leaf.keeps_rows:
            return self._kept(number, i, leaf, stored, Share())
        return TimeLeaf(self.ctx, leaf, i, stored, Share())

    def _stream_of(self, number: int, i: int, leaf: Leaf) -> Changes:
        """What the relation below a leaf emits in this epoch."""
        assert leaf.source is not None
        assert leaf.emits is not None
        if (number, i) not in self._streams:
            changes = self._changes[leaf.source]
            if leaf.emits is EmitKind.RSTREAM:
                found = self._repeated(leaf.source, changes, slots.slot(number, slots.BAG, i))
            else:
                found = select_sign(changes, leaf.emits)
            self._streams[number, i] = found
        return self._streams[number, i]

    # -- writing -----------------------------------------------------------------------------

    def write_output(self, changes: Changes) -> None:
        roll = self.task.roll
        if roll is None:
            table = output_table(self.plan, changes)
        else:
            table = wanted_rows(self.ctx, roll, changes, self.plan.schema)
        self.ctx.counts["emitted"] += len(changes)
        if self.plan.kind is EmitKind.RELATION:
            vanished = int(np.count_nonzero(changes.signs < 0))
            self.ctx.counts["appeared"] += len(changes) - vanished
            self.ctx.counts["vanished"] += vanished
        if table is not None:
            self.result.outputs.append(self.write("out", table))

    def write(self, slot: str, table: pa.Table) -> PackMeta:
        name = f"{self.task.prefix}{slot}-{self.task.part}-{uuid.uuid4().hex[:12]}.arrow"
        return write_pack(self.ctx.cache.storage, name, table, self.task.seq)

    def _keep(
        self,
        slot: str,
        table: pa.Table | None,
        keys: tuple[Key, ...] = (),
        sides: Mapping[str, pa.Table] | None = None,
    ) -> None:
        """Write new state; `keys` arrange it, so that it can be probed or split otherwise."""
        if table is None or not table.num_rows:
            return
        if keys:
            ts = table.column(TIME).to_numpy()
            table = arrange(table.drop_columns([TIME]), ts, keys)
        meta = self.write(slot, table)
        written = {p: self.write(f"{slot}-{p}", t) for p, t in (sides or {}).items()}
        size = meta.bytes + sum(side.bytes for side in written.values())
        named = tuple((p, side.name) for p, side in written.items())
        self.result.state[slot] = StatePack(replace(meta, bytes=size), named)


def _next_boundary(plan: QueryPlan, since: int) -> int:
    """The first instant at which windows make RSTREAM emit."""
    found = (w.boundaries(since, w.settled(since) + 1) for w in plan.windows)
    return min((int(b[0]) for b in found if b is not None and len(b)), default=AFTER_TIME)


def _emitted_rows(leaf: Leaf, changes: Changes) -> pa.Table:
    columns = arrow_columns(changes.frame, leaf.fields)
    return pa.table({**columns, TIME: pa.array(changes.ts)})


def _members(block: Block) -> list[Member]:
    asked = [p.expr for leaf in block.leaves for p in leaf.members]
    return [m for m in asked if isinstance(m, Member)]


def _has_ends(leaf: Leaf) -> bool:
    """Whether a row's end is known when it appears."""
    stays = leaf.keeps_rows or leaf.changes
    return not stays and (leaf.source is None or leaf.emits is not None)


def _places(plan: QueryPlan) -> dict[tuple[int, int], int]:
    """Where the packs of a relation's leaf are in the task's list."""
    found: dict[tuple[int, int], int] = {}
    for number, relation in enumerate(plan.relations):
        for i, leaf in enumerate(relation.leaves if isinstance(relation, Reading) else ()):
            if leaf.is_stored:
                found[number, i] = len(found)
    return found
