"""Sums over groups of segments: at each instant over the rows that are there, or, under a window,
the integral over what is covered.

Both are linear, so no row is looked up, whatever changes: a row that appears or vanishes is a
polynomial to be added or taken away. Under a window w a change at u adds the integral from u on,
A(t) - A(u), and takes it away again w later, A(t-w) - A(u); so F(t) - F(t-w) comes about over any
number of pieces and gaps. Sums are exact, and what is shown of them is rounded once: they do not
depend on the order or history of what was added, and nothing drifts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from thalweg.aggregates.accumulator import Columns, Loaded, running_counts
from thalweg.columns.frame import Changes, Frame, concat_changes
from thalweg.columns.netting import net
from thalweg.columns.runs import Runs, sort_into_runs
from thalweg.columns.vector import Mask, Vector
from thalweg.exec.aggregate.group_by import normalized, shifted
from thalweg.exec.aggregate.group_state import ROWS, look_up, state_table
from thalweg.exec.relations.protocol import RelationStep, runs
from thalweg.instants import Ints
from thalweg.models import exact_sums
from thalweg.models.functions.curve import START, Curve, Curves, curve_named, fields_of, start_field
from thalweg.models.polynomials import SECOND, Floats, antiderivative
from thalweg.models.relations.groups import Grouped, by_words, grouped_need, window_words
from thalweg.models.relations.state import DUE, scheduled
from thalweg.numeric.exact import Limbs
from thalweg.plan.logical import Field, Schema
from thalweg.plan.planner import Drafts, lowers
from thalweg.plan.relations.protocol import Describer, Need, Relation
from thalweg.plan.state_slots import SlotKind, SlotRule
from thalweg.plan.types import BIGINT, DOUBLE

SUMS = SlotKind("sums", SlotRule.NEWEST, "sums by group")
SEEN = SlotKind("seen", SlotRule.NEWEST, "entities by group")
BEGINS = SlotKind("begins", SlotRule.DUE, "groups that begin with the next tick")


@dataclass(frozen=True, slots=True)
class Total:
    """A column of the groups: `sum`, `avg` (of the rows that are there), `integral`, `mean` (the
    integral by the time covered) or `coverage`, of a column of the input that is a function."""

    name: str
    kind: str
    argument: str


@dataclass(frozen=True, slots=True)
class Piece:
    """What is added up: a column of the input, or 1 where it has a value."""

    column: str
    ones: bool


@dataclass(frozen=True, slots=True)
class Plan:
    """Which sums are kept for some totals, and what columns they make."""

    totals: tuple[Total, ...]
    curves: Curves
    window: int | None

    @property
    def pieces(self) -> tuple[Piece, ...]:
        found: dict[Piece, None] = {}
        for total in self.totals:
            if total.kind != "coverage":
                found[Piece(total.argument, False)] = None
            if total.kind in ("mean", "coverage"):
                found[Piece(total.argument, True)] = None
        return tuple(found)

    def degree(self, piece: Piece) -> int:
        own = 0 if piece.ones else dict(self.curves)[piece.column].degree
        return own if self.window is None else own + 1

    @property
    def made(self) -> Curves:
        return tuple((t.name, self._curve(t)) for t in self.totals)

    def _curve(self, total: Total) -> Curve:
        degree = self.degree(Piece(total.argument, total.kind == "coverage"))
        return curve_named(total.name, degree, START, 1 if total.kind == "mean" else -1)


@dataclass(frozen=True, slots=True)
class Sum(Grouped):
    """One row per group with any row, with some totals as functions of time. Entities, for
    `coverage`, are told apart by columns of the input."""

    totals: tuple[Total, ...]
    entities: tuple[str, ...] = ()

    @property
    def made(self) -> Curves:
        return self.plan.made

    @property
    def plan(self) -> Plan:
        return Plan(self.totals, self.curves, self.window)

    @property
    def schema(self) -> Schema:
        known = {f.name: f for f in self.input.schema}
        made = (Field(f.name, DOUBLE, True) for _, c in self.plan.made for f in fields_of(c))
        return (*(known[k] for k in self.keys), *made, start_field(START))

    def reads(self) -> Iterator[str]:
        yield from self.keys
        yield from self.entities
        for _, curve in self.curves:
            yield from curve.columns


@dataclass(frozen=True, slots=True)
class Summed(Relation):
    slots = (SUMS, SEEN, DUE, BEGINS)
    is_netted = True
    inputs: tuple[int, ...] = field()
    schema: Schema = field()
    arriving: Schema
    keys: tuple[str, ...]
    plan: Plan
    entities: tuple[str, ...]
    slides: bool = False
    """Whether the window ends before its instant: what begins with it is not in it yet."""

    @property
    def only_grows(self) -> bool:
        return False

    @property
    def lasts(self) -> int:
        return self.plan.window or 0

    def needs(self) -> tuple[Need, ...]:
        return (grouped_need(self.keys),)

    def shows(self, place: int, column: str) -> frozenset[str]:
        return frozenset((column,)) & frozenset(self.keys)

    def stored(self, slot: str) -> tuple[Schema, tuple[tuple[str, ...], ...]]:
        return (self.arriving if slot == DUE.name else self.schema), ()

    def explained(self, show: Describer) -> list[str]:
        return [
            f"  {', '.join(self._words(t) for t in self.plan.totals)} of "
            f"{show.inputs(self.inputs)}{by_words(self.keys)}{window_words(self.plan.window)}"
        ]

    def _words(self, total: Total) -> str:
        words = {
            "mean": "the mean over time: the integral by the time covered",
            "avg": "the mean of the rows that are there",
            "sum": "the sum of the rows that are there",
            "integral": "the integral: the value times seconds",
            "coverage": "the part of the time for which there is a value",
        }
        return f"{total.name} ({words[total.kind]})"


@lowers(Sum)
def _lower(drafts: Drafts, node: Sum) -> int:
    below = drafts.relation(node.input)
    return drafts.append(
        Summed(
            (below,),
            node.schema,
            node.input.schema,
            node.keys,
            node.plan,
            node.entities,
            node.slide is not None,
        )
    )


# -- running ---------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Events:
    """What is added, with `signs`, at instants `ts`: changes of the input about instants `at`;
    `members` counts the rows that a group begins or ceases to have."""

    frame: Frame
    ts: Ints
    at: Ints
    signs: Ints
    members: Ints


@runs(Summed)
def run_summed(step: RelationStep, relation: Summed) -> Changes:
    (changes,) = step.raw_inputs()
    events = _events(step, relation, changes)
    found = _Groups(step, relation, events).changes() if len(events.ts) else []
    if relation.plan.window is None:
        return net(concat_changes(found, relation.schema))
    return net(scheduled(step, relation.schema, concat_changes(found, relation.schema), BEGINS))


def _events(step: RelationStep, relation: Summed, changes: Changes) -> _Events:
    window, signs = relation.plan.window, changes.signs.astype(np.int64)
    if window is None:
        return _Events(changes.frame, changes.ts, changes.ts, signs, signs)
    later = Changes(changes.frame, changes.ts + window, changes.signs)
    due = scheduled(step, relation.arriving, later)
    gone = due.signs.astype(np.int64)
    both = concat_changes([changes, due], relation.arriving)
    return _Events(
        both.frame,
        both.ts,
        np.concatenate([changes.ts, due.ts - window]),
        np.concatenate([signs, -gone]),
        np.concatenate([np.maximum(signs, 0), np.minimum(gone, 0)]),
    )


@dataclass(slots=True)
class _Groups:
    """The groups that events touch. A version is a group as it was stored, or as it is after a
    run."""

    step: RelationStep
    relation: Summed
    events: _Events
    runs: Runs = field(init=False)
    loaded: Loaded = field(init=False)
    saved: Columns = field(init=False, default_factory=dict)
    sums: dict[Piece, Floats] = field(init=False, default_factory=dict)
    counts: dict[Piece, Ints] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        frame, events = self.events.frame, self.events
        keys = [normalized(frame.columns[k]) for k in self.relation.keys]
        self.runs = sort_into_runs(keys, events.ts)
        self.loaded = look_up(self.step.ctx, self.step.stored(SUMS), self.runs, {})
        self.step.ctx.counts["pieces added"] += len(events.ts)

    def changes(self) -> list[Changes]:
        runs_, rows = self.runs, self._counts(self.events.members, ROWS)
        self._add()
        entities, begun = (
            self._entities() if self.relation.entities else (rows, np.zeros(runs_.runs, np.int64))
        )
        about = np.concatenate([self.loaded.ints("about"), runs_.instants])
        last = runs_.last_versions
        self.saved["about"] = about[last]
        self.step.keep(SUMS, state_table(runs_, rows[last], self.saved))
        group = np.concatenate([np.arange(runs_.groups), runs_.group_of_run])
        keys = self.events.frame.select(self.relation.keys).take(runs_.example[group])
        keys = keys.merged({START: Vector(BIGINT, about)})
        if not self.relation.slides:
            begun[:] = 0
        found = self._replaced(keys.merged(self._columns(entities)), rows, begun > 0)
        if begun.any():
            found += self._held(keys, rows, entities, begun)
        return found

    def _replaced(self, versions: Frame, rows: Ints, late: Mask) -> list[Changes]:
        """Each version takes the place of the one before it, some a tick late. Where nothing was
        covered before, something is only from the next tick on."""
        runs_, groups = self.runs, self.runs.groups
        before = shifted(np.arange(groups + runs_.runs), runs_.heads, groups)
        gone, new = np.flatnonzero(rows[before] > 0), np.flatnonzero(rows[groups:] > 0)
        fresh = late | (~self._covered(rows) & (self.relation.plan.window is not None))
        vanish, appear = np.full(len(gone), -1, np.int8), np.ones(len(new), np.int8)
        return [
            Changes(versions.take(before[gone]), runs_.instants[gone], vanish),
            Changes(versions.take(new + groups), runs_.instants[new] + fresh[new], appear),
        ]

    def _covered(self, rows: Ints) -> Mask:
        """Whether a group has rows that were there before the instant of each run."""
        runs_ = self.runs
        had = rows[shifted(np.arange(len(rows)), runs_.heads, runs_.groups)]
        left = np.zeros(runs_.runs, np.int64)  # rows that the group ceases to have
        np.add.at(left, runs_.run, np.minimum(self.events.members[runs_.order], 0))
        found: Mask = had + left > 0
        return found

    def _held(self, keys: Frame, rows: Ints, entities: Ints, begun: Ints) -> list[Changes]:
        """For one tick, versions without the entities that begin with it, of which nothing is
        covered yet."""
        runs_, groups = self.runs, self.runs.groups
        held = np.flatnonzero((begun > 0) & self._covered(rows))
        without = entities - np.concatenate([np.zeros(groups, np.int64), begun])
        versions = keys.merged(self._columns(without)).take(held + groups)
        ts, plus = runs_.instants[held], np.ones(len(held), np.int8)
        return [Changes(versions, ts, plus), Changes(versions, ts + 1, -plus)]

    def _counts(self, weight: Ints, name: str) -> Ints:
        """Running counts of all versions."""
        return running_counts(weight[self.runs.order], self.runs, self.loaded.ints(name))

    # -- columns of all versions ---------------------------------------------------------------

    def _add(self) -> None:
        """Add up all pieces; how many rows they are of."""
        for i, piece in enumerate(self.relation.plan.pieces):
            self.sums[piece], self.counts[piece] = self._added(piece, f"p{i}")

    def _columns(self, entities: Ints) -> dict[str, Vector]:
        plan, sums = self.relation.plan, self.sums
        found: dict[str, Vector] = {}
        for total, (_, curve) in zip(plan.totals, plan.made, strict=True):
            whole, ones = Piece(total.argument, False), Piece(total.argument, True)
            main = ones if total.kind == "coverage" else whole
            top, count = sums[main], self.counts[main]
            if total.kind == "avg":
                top = top / np.maximum(count, 1)[:, np.newaxis]
            if total.kind == "coverage" and plan.window is not None:
                top = top / (plan.window / SECOND * np.maximum(entities, 1))[:, np.newaxis]
            parts = [(curve.coefficients, top)]
            if total.kind == "mean":
                parts.append((curve.divisor, sums[ones]))
            valid = None if (count > 0).all() else count > 0
            for names, values in parts:
                for j, name in enumerate(names):
                    found[name] = Vector(DOUBLE, values[:, j] + 0.0, valid)
        return found

    def _added(self, piece: Piece, prefix: str) -> tuple[Floats, Ints]:
        """The sums of all versions, and of how many rows they are."""
        events, runs_, degree = self.events, self.runs, self.relation.plan.degree(piece)
        coefficients, start, used = self._coefficients(piece)
        weight = np.where(used, events.signs, 0)
        shift = np.where(used, events.at - start, 0)
        low, high = exact_sums.limb_range(coefficients, shift)
        limbs, low = self._stored(prefix, degree, low, high)
        digits = exact_sums.to_digits(limbs)
        about = self.loaded.ints("about")
        new = self.loaded.rows < 0
        about[new] = runs_.instants[runs_.heads[new]]
        out = np.empty((runs_.groups + runs_.runs, degree + 1))
        exact_sums.rounded(digits, low, out)
        exact_sums.running_sums(
            coefficients, shift, self.relation.plan.window is None, runs_.order,
            weight[runs_.order], runs_.run, runs_.group_of_run, runs_.instants, digits, about, low,
            out[runs_.groups :],
        )  # fmt: skip
        self._keep(prefix, exact_sums.to_limbs(digits), low)
        counts = self._counts(np.where(used, events.members, 0), f"{prefix}n")
        self.saved[f"{prefix}n"] = counts[runs_.last_versions]
        return out, counts

    def _coefficients(self, piece: Piece) -> tuple[Floats, Ints, Mask]:
        """Those of each event, since when, and which of them count: not those without a value."""
        frame = self.events.frame
        curve = dict(self.relation.plan.curves)[piece.column]
        vectors = [frame.columns[n] for n in curve.coefficients]
        values = np.stack([np.asarray(v.data, np.float64) for v in vectors], axis=1)
        used: Mask = np.logical_and.reduce(np.isfinite(values), axis=1)
        if vectors[0].valid is not None:
            used = used & vectors[0].valid
        if piece.ones:
            values = np.ones((len(values), 1))
        if self.relation.plan.window is not None:
            values = antiderivative(values)
        values = np.ascontiguousarray(np.where(used[:, np.newaxis], values, 0.0))
        return values, np.asarray(frame.columns[curve.start].data), used

    def _stored(self, prefix: str, degree: int, low: int, high: int) -> tuple[Limbs, int]:
        """The groups' sums as they are stored, with room for more."""
        places = {
            (j, int(name.removeprefix(f"{prefix}c{j}l"))): name
            for j in range(degree + 1)
            for name in self.loaded.columns
            if name.startswith(f"{prefix}c{j}l")
        }
        limbs = [limb for _, limb in places] + ([low, high] if low <= high else [])
        low, high = min(limbs, default=0), max(limbs, default=0)
        known = self.loaded.ints("about")[self.loaded.rows >= 0]
        instants = np.concatenate([known, self.runs.instants])
        moved = int(instants.max() - instants.min())
        width = high - low + 1 + exact_sums.headroom(degree, moved)
        found = np.zeros((self.runs.groups, degree + 1, width), np.int64)
        for (j, limb), name in places.items():
            found[:, j, limb - low] = self.loaded.ints(name)
        return found, low

    def _keep(self, prefix: str, limbs: Limbs, low: int) -> None:
        for j in range(limbs.shape[1]):
            for k in np.flatnonzero(limbs[:, j].any(axis=0)):
                self.saved[f"{prefix}c{j}l{low + k}"] = np.ascontiguousarray(limbs[:, j, k])

    # -- coverage ------------------------------------------------------------------------------

    def _entities(self) -> tuple[Ints, Ints]:
        """How many entities each version has rows of, and how many of these begin with its run."""
        events, relation = self.events, self.relation
        names = dict.fromkeys((*relation.keys, *relation.entities))
        runs_ = sort_into_runs([normalized(events.frame.columns[n]) for n in names], events.ts)
        loaded = look_up(self.step.ctx, self.step.stored(SEEN), runs_, {})
        rows = running_counts(events.members[runs_.order], runs_, loaded.ints(ROWS))
        last = runs_.last_versions
        self.step.keep(SEEN, state_table(runs_, rows[last], {}))
        there = (rows > 0).astype(np.int64)
        delta = there[runs_.groups :] - shifted(there, runs_.heads, runs_.groups)
        weight = np.zeros(len(events.ts), np.int64)  # at the first event of each run
        first = np.flatnonzero(np.append(True, runs_.run[1:] != runs_.run[:-1]))
        weight[runs_.order[first]] = delta
        found = self._counts(weight, "entities")
        self.saved["entities"] = found[self.runs.last_versions]
        begun = np.zeros(self.runs.runs, np.int64)
        np.add.at(begun, self.runs.run, np.maximum(weight[self.runs.order], 0))
        return found, begun
