"""Rows under [NOW] that must be members of other relations at their instant.

Each row is evaluated once, when its instant is processed: predicates on the row itself and look-ups
in the other relations are one conjunction. Rows of the epoch's last instant vanish in the next
epoch, when the other relations have advanced: those that passed are kept until then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from thalweg.columns.frame import Frame
from thalweg.columns.vector import Codes, Mask, Vector, from_arrow
from thalweg.exec.context import TaskContext
from thalweg.exec.leaves.ordered_window import Content, KeptLeaf
from thalweg.exec.leaves.protocol import AFTER_ALL, LeafReader, Needles
from thalweg.exec.leaves.task_share import Share
from thalweg.exec.predicates.ask import Questions
from thalweg.exec.predicates.conjunction import judge, reject
from thalweg.instants import Ints
from thalweg.plan.expr import Member, Predicate, columns_of
from thalweg.plan.leaf import Leaf
from thalweg.store.hashing import hash_columns
from thalweg.store.packs import TIME, PackMeta


class InstantLeaf(KeptLeaf):
    """A stream under [NOW] whose rows are looked up in other leaves."""

    def __init__(
        self,
        ctx: TaskContext,
        leaf: Leaf,
        position: int,
        packs: Sequence[PackMeta],
        share: Share,
        state: Sequence[PackMeta],
        others: Mapping[int, LeafReader],
        since: int | None = None,
    ) -> None:
        self._others = others
        super().__init__(ctx, leaf, position, packs, share, state, since)

    def _names(self) -> tuple[str, ...]:
        return tuple(self.leaf.bare(f.name) for f in self.leaf.fields)

    def _loaded(self, packs: Sequence[PackMeta], state: Sequence[PackMeta]) -> Content:
        fresh = [self._arriving(meta) for meta in packs]
        fresh = [t for t in fresh if t.num_rows]
        tables = [self._stored(m) for m in state]
        if fresh:
            tables.append(self._judged(pa.concat_tables(fresh).combine_chunks()))
        if not tables:
            return Content(pa.table({}), np.empty(0, np.int64), np.empty(0, np.int64))
        table = pa.concat_tables(tables).combine_chunks()
        ts = table.column(TIME).to_numpy()
        return Content(table, ts, ts + 1)

    def _judged(self, table: pa.Table) -> pa.Table:
        leaf, ts = self.leaf, table.column(TIME).to_numpy()
        columns = {f.name: from_arrow(table.column(leaf.bare(f.name)), f.type) for f in leaf.fields}
        asked = MemberQuestions(columns, ts, self.ctx, self._others)
        judged = judge(leaf.filters + leaf.members, columns, len(ts), self.ctx, asked)
        if len(judged.erring):
            reject(judged, Frame(columns, len(ts)), ts, self.ctx)
        return table.take(pa.array(judged.passing))


class MemberQuestions(Questions):
    """Evaluates memberships by look-up, other predicates as usual."""

    def __init__(
        self,
        columns: Mapping[str, Vector],
        instants: Ints,
        ctx: TaskContext,
        others: Mapping[int, LeafReader],
    ) -> None:
        super().__init__(columns, len(instants), ctx)
        self._instants = instants
        self._others = others

    def _evaluated(self, predicate: Predicate, rows: Ints) -> tuple[Mask, Codes | None]:
        if isinstance(predicate.expr, Member):
            self.gathering = 0.0
            return self._looked_up(predicate.expr, rows), None
        return super()._evaluated(predicate, rows)

    def _looked_up(self, member: Member, rows: Ints) -> Mask:
        view = self._view(rows)
        keys = [view[c.name] for c in member.operands]
        usable = np.logical_and.reduce([k.usable for k in keys])
        asked = np.flatnonzero(usable)
        hashes = hash_columns([k.take(asked).to_arrow() for k in keys], len(asked))
        needles = Needles(hashes, self._instants[rows[asked]], False, AFTER_ALL)
        values = self._others[member.leaf]
        verify = member.verify
        if member.exact and not values.has_null_keys(member.target):
            verify = ()
        wanted = frozenset(c for p in verify for c in columns_of(p.expr))
        found = values.probe(needles, member.target, False, wanted)
        hits = found.needle
        if verify and len(hits):
            own = {c.name: k.take(asked[hits]) for c, k in zip(member.operands, keys, strict=True)}
            pairs = {**own, **found.frame.columns}
            hits = hits[judge(verify, pairs, len(hits), self.ctx).passing]
        there = np.zeros(len(rows), np.bool_)
        there[asked[hits]] = True
        return there
