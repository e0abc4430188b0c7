"""One pipeline in two phases: drop probing, then output generation.

*Drop probing* looks every row up in the other leaves in pipeline order and stops at the first where
it has no partner. Nothing is fetched or multiplied meanwhile, except that a leaf on which other
leaves depend is expanded along that path. *Output generation* enumerates the results of the
remaining rows. The order of a pipeline changes the number of look-ups in the first phase, and
nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from thalweg.columns.frame import Changes, Frame
from thalweg.columns.vector import Vector
from thalweg.exec.context import TaskContext
from thalweg.exec.joins.enumerate import Output
from thalweg.exec.joins.lookup import Found, Unit, find
from thalweg.exec.joins.partial_results import Node
from thalweg.exec.joins.probe_keys import keyed_rows
from thalweg.exec.leaves.protocol import Needles
from thalweg.exec.predicates.conjunction import judge
from thalweg.exec.tactics import DROPPED, PASSED, Verdicts
from thalweg.instants import Ints
from thalweg.plan.expr import Predicate, columns_of
from thalweg.plan.pipeline import Pipeline, Probe
from thalweg.plan.relations.block import Block
from thalweg.store.hashing import Hashes


@dataclass(slots=True)
class Work:
    """Counts of rows looked up in a unit, and of tuples made from the matches."""

    looked_up: int = 0
    made: int = 0


@dataclass(slots=True)
class _Lookup:
    """The result of a probe for the rows of its parent; needle i stands for row `rows[i]`."""

    parent: Node
    rows: Ints
    found: Found


class TwoPhases:
    """Probes of one pipeline over one set of changes. `wanted` are the columns that are read;
    `at_hand` are leaves whose columns the changes have already. `source` is the place in FROM that
    decides which of the changes at an instant they meet, if not that of the leaf."""

    def __init__(
        self,
        ctx: TaskContext,
        block: Block,
        units: Sequence[Unit],
        pipeline: Pipeline,
        wanted: frozenset[str],
        changes: Changes,
        departing: bool,
        at_hand: Sequence[int] = (),
        source: int | None = None,
    ) -> None:
        self.ctx = ctx
        self.block = block
        self.units = units
        self.pipeline = pipeline
        self.wanted = wanted
        self.departing = departing
        self.changes = changes
        self.at_hand = at_hand
        self.root = Node(changes.frame, changes.ts, changes.ends)
        self.source = pipeline.leaf if source is None else source
        self._nodes: dict[int, Node] = dict.fromkeys([pipeline.leaf, *at_hand], self.root)
        self._lookups: dict[int, _Lookup] = {}
        self.work = {probe.leaf: Work() for probe in pipeline.probes}
        self._unit_of = {
            member: probe.leaf
            for probe in pipeline.probes
            if probe.leaf >= len(block.leaves)
            for member in block.subresults[probe.leaf - len(block.leaves)].members
        }

    @property
    def left(self) -> int:
        """The number of rows of the source that may still have results."""
        return int(np.count_nonzero(self.root.alive))

    def sampled(self, rows: Ints, other: Pipeline | None = None) -> TwoPhases:
        """The same pipeline, or another of the same leaf, over some of the rows."""
        return TwoPhases(
            self.ctx, self.block, self.units, other or self.pipeline, self.wanted,
            self.changes.take(rows), self.departing, self.at_hand, self.source,
        )  # fmt: skip

    # -- drop probing ------------------------------------------------------------------------

    def drop_all(self) -> None:
        for probe in self.pipeline.probes:
            if self.left:
                self.drop(probe)

    def drop(self, probe: Probe) -> None:
        """Drop rows that have no partner in a leaf."""
        if probe.check is not None:
            looked = self._look_up(probe)
            looked.parent.keep(looked.rows[looked.found.hit])

    def verdict(self, probe: Probe) -> Verdicts:
        """Per row of the source whether it has a partner in a leaf, along the path that leads
        there; nothing is dropped."""
        verdicts = np.full(len(self.changes), DROPPED, np.int8)
        if probe.check is None:
            verdicts[:] = PASSED
            return verdicts
        looked = self._look_up(probe)
        verdicts[looked.parent.sources(looked.rows[looked.found.hit])] = PASSED
        return verdicts

    def _look_up(self, probe: Probe) -> _Lookup:
        assert probe.check is not None
        parent = self._expanded(probe.check.parent)
        rows, hashes = parent.keyed(probe.check.source)
        needles = self._needles(probe, hashes, rows, parent.instants, parent.frame)
        self.work[probe.leaf].looked_up += len(rows)
        want_ends = self.changes.ends is not None
        unit = self.units[probe.leaf]
        found = find(unit, needles, probe.check.target, want_ends, self._columns(probe))
        looked = _Lookup(parent, rows, found)
        if probe.check.is_all:
            self._lookups[probe.leaf] = looked
        return looked

    def _needles(
        self, probe: Probe, hashes: Hashes, rows: Ints, instants: Ints, frame: Frame
    ) -> Needles:
        values: Sequence[Vector] = ()
        if probe.leaf >= len(self.block.leaves):
            values = [frame.columns[c].take(rows) for c in probe.source]
        return Needles(hashes, instants[rows], self.departing, self.source, values)

    def _expanded(self, leaf: int) -> Node:
        """The rows of a leaf, fetched for the parent rows that are still alive."""
        leaf = self._unit_of.get(leaf, leaf)
        if leaf in self._nodes:
            return self._nodes[leaf]
        looked = self._lookups[leaf]
        probe = next(p for p in self.pipeline.probes if p.leaf == leaf)
        parent = looked.parent
        matches = looked.found.rows(parent.usable()[looked.rows])
        up, frame, ends = looked.rows[matches.needle], matches.frame, matches.ends
        self._count_made(leaf, len(up))
        asked = self._local(probe)
        if asked and len(up):
            names = {c for p in asked for c in columns_of(p.expr)}
            above = {n: v.take(up) for n, v in parent.frame.columns.items() if n in names}
            kept = judge(asked, {**above, **frame.columns}, len(up), self.ctx).passing
            up, frame, ends = up[kept], frame.take(kept), None if ends is None else ends[kept]
        node = Node(frame, parent.instants[up], ends, parent, up)
        self._nodes[leaf] = node
        return node

    def _local(self, probe: Probe) -> tuple[Predicate, ...]:
        """Predicates that reference only a leaf and the one it depends on."""
        assert probe.check is not None
        known = {f.name for f in self.block.unit(probe.leaf).fields}
        known |= set(self._expanded(probe.check.parent).frame.columns)
        asked = self._verify(probe) + probe.residual
        return tuple(p for p in asked if columns_of(p.expr) <= known)

    def _verify(self, probe: Probe) -> tuple[Predicate, ...]:
        settled = probe.exact and not self.units[probe.leaf].has_null_keys(probe.target)
        return () if settled else probe.verify

    def _columns(self, probe: Probe) -> frozenset[str]:
        own = {f.name for f in self.block.unit(probe.leaf).fields}
        return frozenset(own & self.wanted)

    def _count_made(self, leaf: int, rows: int, how: str = "enumerated") -> None:
        self.work[leaf].made += rows
        self.ctx.counts[f"{how}:{self.block.unit(leaf).alias}"] += rows

    # -- output generation -------------------------------------------------------------------

    def results(
        self, names: frozenset[str], watch: Callable[[int, Output], None] | None = None
    ) -> Changes:
        """All results of the remaining rows. `watch` is called with the tuples before each probe,
        and after the last."""
        out = Output(self.ctx, self.root)
        for place, probe in enumerate(self.pipeline.probes):
            if watch is not None:
                watch(place, out)
            elif not len(out):
                return self.changes.take(np.empty(0, np.int64))
            asked = self._verify(probe) + probe.residual
            if probe.leaf in self._lookups:
                alone = out.attach(self._expanded(probe.leaf))
                if not alone:
                    self._count_made(probe.leaf, len(out), "combined")
                settled = self._local(probe)
                asked = tuple(p for p in asked if p not in settled)
            else:
                self._nodes[probe.leaf] = self._joined(out, probe)
            out.judge(asked)
        if watch is not None:
            watch(len(self.pipeline.probes), out)
        return out.changes(self.changes, names, self._knows_ends())

    def _joined(self, out: Output, probe: Probe) -> Node:
        """Look all results so far up by all of a probe's keys at once."""
        frame = out.frame(set(probe.source))
        instants = out.instants
        rows, hashes = keyed_rows(frame, instants, None, probe.source)
        needles = self._needles(probe, hashes, rows, instants, frame)
        self.work[probe.leaf].looked_up += len(rows)
        want_ends = self.changes.ends is not None
        unit = self.units[probe.leaf]
        matches = unit.probe(needles, probe.target, want_ends, self._columns(probe))
        which = rows[matches.needle]
        self._count_made(probe.leaf, len(which))
        node = Node(matches.frame, instants[which], matches.ends)
        out.append(node, which)
        return node

    def _knows_ends(self) -> bool:
        if self.changes.ends is None:
            return False
        return all(
            node is self.root or node.ends is not None or self.block.unit(i).is_standing
            for i, node in self._nodes.items()
        )
