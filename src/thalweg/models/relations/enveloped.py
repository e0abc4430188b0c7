"""The largest, or smallest, of the functions of a group's rows at each instant.

The envelope of what lives is kept as pieces up to the end of time; a change of it is written down
as changes of rows that are due when its pieces begin and end. Rows are looked up only where one
that vanishes has pieces of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from thalweg.columns.frame import Changes, Frame, concat_changes, concat_frames
from thalweg.columns.netting import net
from thalweg.columns.runs import key_hashes
from thalweg.columns.sort_codes import order_codes
from thalweg.columns.vector import Vector
from thalweg.exec.aggregate.group_by import normalized
from thalweg.exec.relations.protocol import RelationStep, runs
from thalweg.instants import AFTER_TIME, Ints
from thalweg.models.envelopes import envelopes
from thalweg.models.functions.curve import START, Curve, Curves, curve_named, fields_of, start_field
from thalweg.models.polynomials import Floats
from thalweg.models.relations.groups import Grouped, by_words, grouped_need
from thalweg.models.relations.state import (
    ALIVE,
    DUE,
    Standing,
    alive_by_key,
    all_alive,
    keep_alive,
    scheduled,
)
from thalweg.plan.logical import Field, Schema
from thalweg.plan.planner import Drafts, lowers
from thalweg.plan.relations.protocol import Describer, Need, Relation
from thalweg.plan.state_slots import SlotKind, SlotRule
from thalweg.plan.types import BIGINT

PIECES = SlotKind("pieces", SlotRule.SUMMED, "envelopes by group")
END, BEGIN, UNTIL = "__end", "__begin", "__until"
"""When a row ends at the latest, if it is a column of the input; when a piece begins and ends."""


@dataclass(frozen=True, slots=True)
class Envelope(Grouped):
    """One row per group with any row: the largest (`upper`) or the smallest of its functions, as
    the column `name`."""

    name: str
    argument: str
    upper: bool

    @property
    def ends(self) -> bool:
        return any(f.name == END for f in self.input.schema)

    @property
    def curve(self) -> Curve:
        argument = dict(self.curves)[self.argument]
        return curve_named(self.name, argument.degree, START, is_root=argument.is_root)

    @property
    def made(self) -> Curves:
        return ((self.name, self.curve),)

    @property
    def schema(self) -> Schema:
        known = {f.name: f for f in self.input.schema}
        return (*(known[k] for k in self.keys), *fields_of(self.curve), start_field(START))

    def reads(self) -> Iterator[str]:
        yield from self.keys
        yield from dict(self.curves)[self.argument].columns
        if self.ends:
            yield END


@dataclass(frozen=True, slots=True)
class Enveloped(Relation):
    slots = (ALIVE, PIECES, DUE)
    is_netted = True
    inputs: tuple[int, ...] = field()
    schema: Schema = field()
    keys: tuple[str, ...]
    argument: Curve
    result: Curve
    upper: bool
    ends: bool

    @property
    def only_grows(self) -> bool:
        return False

    def needs(self) -> tuple[Need, ...]:
        return (grouped_need(self.keys),)

    def shows(self, place: int, column: str) -> frozenset[str]:
        return frozenset((column,)) & frozenset(self.keys)

    @property
    def functions(self) -> Schema:
        """The columns of a function: those of the answer, and when it ends."""
        return (*self.schema, start_field(END)) if self.ends else self.schema

    @property
    def pieces(self) -> Schema:
        return (*self.functions, *(Field(n, BIGINT, False) for n in (BEGIN, UNTIL)))

    def stored(self, slot: str) -> tuple[Schema, tuple[tuple[str, ...], ...]]:
        by = (self.keys,) if self.keys else ()
        kinds = {ALIVE.name: (self.functions, by), PIECES.name: (self.pieces, by)}
        return kinds.get(slot, (self.schema, ()))

    def explained(self, show: Describer) -> list[str]:
        which = "largest" if self.upper else "smallest"
        return [
            f"  {self.result.coefficients[0]}: the {which} value of {show.inputs(self.inputs)}"
            f"{by_words(self.keys)}, at each instant"
        ]


@lowers(Envelope)
def _lower(drafts: Drafts, node: Envelope) -> int:
    below = drafts.relation(node.input)
    argument = dict(node.curves)[node.argument]
    return drafts.append(
        Enveloped((below,), node.schema, node.keys, argument, node.curve, node.upper, node.ends)
    )


# -- running ---------------------------------------------------------------------------------------


@runs(Enveloped)
def run_enveloped(step: RelationStep, relation: Enveloped) -> Changes:
    (changes,) = step.raw_inputs()
    changes = _of_functions(relation, changes)
    found: list[Changes] = []
    if len(changes) and relation.ends:
        found = _changed_with_peaks(step, relation, changes)
    elif len(changes):
        found = _changed(step, relation, changes)
    return net(scheduled(step, relation.schema, concat_changes(found, relation.schema)))


def _of_functions(relation: Enveloped, changes: Changes) -> Changes:
    """Changes of the functions that there are: rows without a value are none."""
    frame, old, new = changes.frame, relation.argument, relation.result
    columns = {k: normalized(frame.columns[k]) for k in relation.keys}
    there = np.ones(len(changes), np.bool_)
    for given, name in zip(old.coefficients, new.coefficients, strict=True):
        vector = frame.columns[given]
        data = np.asarray(vector.data, np.float64) + 0.0
        there &= np.isfinite(data) if vector.valid is None else vector.valid & np.isfinite(data)
        columns[name] = Vector(relation.schema[len(relation.keys)].type, data)
    columns[START] = frame.columns[old.start]
    if relation.ends:
        columns[END] = frame.columns[END]
        there &= (changes.signs > 0) | (np.asarray(columns[END].data) == AFTER_TIME)
    found = Changes(Frame(columns, len(changes)), changes.ts, changes.signs)
    return found if there.all() else found.take(np.flatnonzero(there))


def _changed(step: RelationStep, relation: Enveloped, changes: Changes) -> list[Changes]:
    """Changes of the pieces of the groups that are touched."""
    stored = _stored(step, relation, relation.pieces, changes.frame, PIECES)
    groups = [_Groups(relation, changes, stored, None)]
    found = groups[0].enveloped(step)
    lacking = groups[0].lacking
    if lacking.any():
        part = changes.take(np.flatnonzero(lacking[groups[0].group_of_event]))
        own = groups[0].group_of_piece
        pieces = stored.take(np.flatnonzero((own >= 0) & lacking[own]))
        alive = _stored(step, relation, relation.functions, part.frame, ALIVE)
        groups.append(_Groups(relation, part, pieces, alive))
        found += groups[1].enveloped(step)
    _keep(step, relation, groups, changes)
    return found


def _changed_with_peaks(step: RelationStep, relation: Enveloped, changes: Changes) -> list[Changes]:
    """The same where what has an end is constant: of such rows few are kept, and all are known."""
    pieces = _stored(step, relation, relation.pieces, changes.frame, PIECES)
    alive = _stored(step, relation, relation.functions, changes.frame, ALIVE)
    groups = _Groups(relation, changes, pieces, alive)
    found = groups.enveloped(step)
    lasting = np.flatnonzero(np.asarray(changes.frame.columns[END].data) == AFTER_TIME)
    unknown = changes.take(lasting)
    _keep(step, relation, [groups], concat_changes([unknown, groups.peaked], relation.functions))
    return found


def _keep(step: RelationStep, relation: Enveloped, groups: list[_Groups], alive: Changes) -> None:
    keys = (relation.keys,) if relation.keys else ()
    kept = concat_changes([g.kept for g in groups], relation.pieces)
    keep_alive(step, relation.pieces, net(kept), keys, PIECES)
    keep_alive(step, relation.functions, alive, keys)


@dataclass(slots=True)
class _Rows:
    """Stored rows, with how often each is there."""

    frame: Frame
    weights: Ints

    def take(self, rows: Ints) -> _Rows:
        return _Rows(self.frame.take(rows), self.weights[rows])


def _stored(
    step: RelationStep, relation: Enveloped, schema: Schema, wanted: Frame, slot: SlotKind
) -> _Rows:
    """The stored rows of the groups of the wanted ones."""
    found: Standing
    if relation.keys:
        found = alive_by_key(step, schema, relation.keys, wanted, slot)
    else:
        found = all_alive(step, schema, slot)
    return _Rows(found.frame, found.weights)


class _Groups:
    """The groups of changes, with what is stored of them; `alive` are all their functions, if they
    are known. Stored rows of other groups, whose hashes are the same, are left out."""

    def __init__(
        self, relation: Enveloped, changes: Changes, pieces: _Rows, alive: _Rows | None
    ) -> None:
        self.relation = relation
        self.complete = alive is not None
        self.changes = changes
        others = [pieces.frame.select([f.name for f in relation.functions])]
        others += [] if alive is None else [alive.frame]
        rows = concat_frames([changes.frame, *others], relation.functions)
        sizes = [len(changes), pieces.frame.length]
        group = _group_of(relation, rows, len(changes))
        self.group_of_event, self.group_of_piece, live = np.split(group, np.cumsum(sizes))
        known = np.flatnonzero(group >= 0)
        self.count = int(group.max()) + 1
        self.function, self.examples, self.first = _numbered(relation, rows, group, known)
        self.functions = rows.take(self.examples)
        event, piece, living = np.split(self.function, np.cumsum(sizes))
        self.event_function, self.piece_function = event, piece
        self.alive = np.zeros(len(self.examples), np.int64)
        self.end = np.full(len(self.examples), AFTER_TIME, np.int64)
        if relation.ends:
            self.end = np.asarray(self.functions.columns[END].data)
        own = np.flatnonzero(live >= 0)
        if alive is not None:
            np.add.at(self.alive, living[own], alive.weights[own])
        self.peak, self.group_of_peak = self._peaks(living[own], live[own])
        there = np.flatnonzero(self.group_of_piece >= 0)
        begins = np.asarray(pieces.frame.columns[BEGIN].data)
        self.piece = there[np.lexsort((begins[there], self.group_of_piece[there]))]
        self.begin = begins[self.piece]
        self.until = np.asarray(pieces.frame.columns[UNTIL].data)[self.piece]
        self.lacking = np.zeros(self.count, np.bool_)
        self.kept = Changes(pieces.frame.take(_NONE), _NONE, np.empty(0, np.int8))
        self.peaked = Changes(changes.frame.take(_NONE), _NONE, np.empty(0, np.int8))

    def _peaks(self, living: Ints, group: Ints) -> tuple[Ints, Ints]:
        """What has an end, of each group in that order; and the groups."""
        lasting = np.flatnonzero(self.end[living] < AFTER_TIME)
        order = lasting[np.lexsort((self.end[living[lasting]], group[lasting]))]
        return living[order], group[order]

    def enveloped(self, step: RelationStep) -> list[Changes]:
        """The changes of rows; those of the stored pieces are `kept`, and groups that are `lacking`
        functions are left out."""
        changes = self.changes
        order = np.lexsort((self.event_function, changes.ts, self.group_of_event))
        coefficients, start = self._columns()
        numbers = np.arange(self.count + 1)
        groups = self.group_of_piece[self.piece]
        function, begin, until, peaks, lacking, solves = envelopes(
            coefficients, start, self.end, self.first, self.alive,
            (np.searchsorted(groups, numbers), self.piece_function[self.piece], self.begin,
             self.until),
            (np.searchsorted(self.group_of_peak, numbers), self.peak),
            (np.searchsorted(self.group_of_event[order], numbers), self.event_function[order],
             changes.ts[order], changes.signs[order].astype(np.int64)),
            self.relation.upper, self.complete,
        )  # fmt: skip
        step.ctx.counts["equations solved"] += solves
        self.lacking = lacking
        old = np.flatnonzero(~lacking[groups])
        place = self.piece[old]
        gone = (self.piece_function[place], self.begin[old], self.until[old])
        lasting = np.flatnonzero(until > step.ctx.until)
        keep = (function[lasting], begin[lasting], until[lasting])
        self.kept = self._stored_changes(gone, keep)
        self.peaked = self._peak_changes(peaks)
        return [self._rows(*gone, -1), self._rows(function, begin, until, 1)]

    def _peak_changes(self, peaks: Ints) -> Changes:
        """From the peaks before to those now."""
        both = np.concatenate([self.peak, peaks])
        signs = np.repeat([-1, 1], [len(self.peak), len(peaks)]).astype(np.int8)
        rows = self.functions.take(both).select([f.name for f in self.relation.functions])
        return net(Changes(rows, np.zeros(len(both), np.int64), signs))

    def _columns(self) -> tuple[Floats, Ints]:
        columns, names = self.functions.columns, self.relation.result.coefficients
        coefficients = np.stack([np.asarray(columns[n].data) for n in names], axis=1)
        return coefficients, np.asarray(columns[START].data)

    def _rows(self, function: Ints, begin: Ints, until: Ints, sign: int) -> Changes:
        """The pieces as rows that appear and vanish."""
        ending = np.flatnonzero(until < AFTER_TIME)
        rows = self.functions.take(np.concatenate([function, function[ending]]))
        ts = np.concatenate([begin, until[ending]])
        signs = np.concatenate([np.full(len(begin), sign), np.full(len(ending), -sign)])
        return Changes(
            rows.select([f.name for f in self.relation.schema]), ts, signs.astype(np.int8)
        )

    def _stored_changes(
        self, gone: tuple[Ints, Ints, Ints], new: tuple[Ints, Ints, Ints]
    ) -> Changes:
        function, begin, until = (np.concatenate(p) for p in zip(gone, new, strict=True))
        signs = np.repeat([-1, 1], [len(gone[0]), len(new[0])]).astype(np.int8)
        columns = {BEGIN: Vector(BIGINT, begin), UNTIL: Vector(BIGINT, until)}
        rows = self.functions.take(function).merged(columns)
        return Changes(rows, np.zeros(len(function), np.int64), signs)


_NONE = np.empty(0, np.int64)


def _group_of(relation: Enveloped, rows: Frame, count: int) -> Ints:
    """The number of each row's group among those of the first `count` rows; -1: none of them."""
    first, second = key_hashes([rows.columns[k] for k in relation.keys], rows.length)
    pairs = np.stack([first, second if len(second) else np.zeros_like(first)])
    _, group = np.unique(pairs, axis=1, return_inverse=True)
    group = group.reshape(-1)
    own, numbers = np.unique(group[:count], return_inverse=True)
    place = np.full(int(group.max()) + 1, -1, np.int64)
    place[own[numbers.reshape(-1)]] = numbers.reshape(-1)
    found: Ints = place[group]
    return found


def _numbered(
    relation: Enveloped, rows: Frame, group: Ints, known: Ints
) -> tuple[Ints, Ints, Ints]:
    """The function of each row, numbered by group in the order of preference; an example of each;
    and the first of each group."""
    names = [START, *relation.result.coefficients, *((END,) if relation.ends else ())]
    codes = [order_codes([rows.columns[n]])[0][known] for n in names]
    table = np.stack([*reversed(codes), group[known]])
    order = np.lexsort(table)
    new = np.append(True, (table[:, order[1:]] != table[:, order[:-1]]).any(axis=0))
    found = np.full(rows.length, -1, np.int64)
    found[known[order]] = np.cumsum(new) - 1
    examples = known[order[new]]
    starts = np.searchsorted(group[examples], np.arange(int(group.max()) + 2))
    return found, examples, starts
