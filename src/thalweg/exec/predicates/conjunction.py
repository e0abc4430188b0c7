"""Conjunctions over a shrinking selection, slice by slice, with the error rule.

A row is dropped as soon as one predicate is false or NULL. A row on which a predicate errs stays in
play: if nothing else drops it, it is rejected under the first erring predicate *in text order*, so
neither rows nor rejects depend on the order of evaluation. Where a tactic observes a conjunction,
it gives the order of each slice and a sample of rows on which every predicate is evaluated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter

import numpy as np

from thalweg.columns.frame import Frame
from thalweg.columns.vector import Codes, Mask, Vector
from thalweg.exec.context import Reject, TaskContext
from thalweg.exec.predicates.ask import Questions
from thalweg.exec.tactics import (
    DROPPED,
    ERRED,
    PASSED,
    UNKNOWN,
    Conjunction,
    JoinTactic,
    Observation,
    PipelineTactic,
    Tactic,
)
from thalweg.instants import Ints
from thalweg.plan.expr import Predicate
from thalweg.plan.predicate_order import in_text_order, is_movable


@dataclass(slots=True)
class Judged:
    """Rows that pass, and rows that no predicate drops but some err on (with predicate and
    code)."""

    passing: Ints
    erring: Ints
    predicates: list[Predicate]
    codes: Codes

    def only(self, some: Mask) -> Judged:
        """The same, with some of the erring rows only."""
        kept = [p for p, wanted in zip(self.predicates, some, strict=True) if wanted]
        return Judged(self.passing, self.erring[some], kept, self.codes[some])


def judge(
    predicates: Sequence[Predicate],
    columns: Mapping[str, Vector],
    length: int,
    ctx: TaskContext,
    questions: Questions | None = None,
) -> Judged:
    """Evaluate all predicates, each only on rows still in play."""
    run = _Conjunction(predicates, questions or Questions(columns, length, ctx), length)
    tactic = ctx.tactics.get(run.predicates) if len(predicates) > 1 else None
    if tactic is None or isinstance(tactic, (PipelineTactic, JoinTactic)):
        return run.judged([run.narrowed(run.written, 0, length)])
    return run.judged(_sliced(run, tactic, length, ctx))


def _sliced(run: _Conjunction, tactic: Tactic, length: int, ctx: TaskContext) -> list[Ints]:
    pieces = []
    low = 0
    while low < length:
        size = tactic.slice_rows()
        high = length if length - low < size + size // 2 else low + size
        sample = low + tactic.sample(high - low)
        watched = _Watched(tuple(tactic.order), high - low, sample)
        pieces.append(run.narrowed(tactic.order, low, high, watched))
        run.profile(tactic, watched)
        seen = watched.observation()
        tactic.observe(seen)
        ctx.observations.setdefault(run.predicates, []).append(seen)
        low = high
    return pieces


@dataclass(slots=True)
class _Watched:
    """The record of one slice; predicates are numbered in text order."""

    order: tuple[int, ...]
    rows: int
    sample: Ints
    evaluated: Ints = field(init=False)
    extra: Ints = field(init=False)
    seconds: np.ndarray = field(init=False)
    extra_seconds: np.ndarray = field(init=False)
    gathering: np.ndarray = field(init=False)
    survivors: Ints = field(init=False)
    verdicts: np.ndarray = field(init=False)
    dropped_at: Ints = field(init=False)
    unasked: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        n = len(self.order)
        self.evaluated, self.extra = np.zeros(n, np.int64), np.zeros(n, np.int64)
        self.seconds, self.extra_seconds, self.gathering = np.zeros((3, n))
        self.survivors = np.zeros(n, np.int64)
        self.verdicts = np.full((len(self.sample), n), UNKNOWN, np.int8)
        self.dropped_at = np.full(len(self.sample), n, np.int64)

    def note(self, position: int, rows: Ints, true: Mask, errors: Codes | None) -> None:
        """Find the sample's rows among those that were evaluated."""
        alive = np.flatnonzero(self.dropped_at == len(self.order))
        if not len(alive):
            return
        at = np.searchsorted(rows, self.sample[alive])
        seen = _verdicts(true[at], None if errors is None else errors[at])
        self.verdicts[alive, self.order[position]] = seen
        self.dropped_at[alive[seen == DROPPED]] = position

    def unprotected(self, rows: Ints, number: int, guards: frozenset[int]) -> Ints:
        """Those of the sample's rows that no guard of a predicate drops; the others count as
        passed, since the predicate will never be evaluated on them."""
        if not guards:
            return rows
        said = self.verdicts[rows][:, sorted(guards)]
        protected = (said == DROPPED).any(1)
        self.verdicts[rows[protected], number] = PASSED
        asked: Ints = rows[~protected & (said != UNKNOWN).all(1)]
        return asked

    def observation(self) -> Observation:
        dropped = self.dropped_at < len(self.order)
        return Observation(
            self.order, self.rows, self.evaluated, self.extra, self.seconds, self.extra_seconds,
            self.gathering, self.survivors, self.verdicts[dropped], int((~dropped).sum()),
            self.unasked,
        )  # fmt: skip


class _Conjunction:
    """Predicates in text order, and the rows they err on."""

    def __init__(self, predicates: Sequence[Predicate], questions: Questions, length: int) -> None:
        self.predicates: Conjunction = in_text_order(predicates)
        self.written = _numbers(predicates)
        self.questions = questions
        self.length = length
        self._first: Ints | None = None
        self._codes: Codes = np.empty(0, np.uint8)

    def narrowed(
        self, order: Sequence[int], low: int, high: int, watched: _Watched | None = None
    ) -> Ints:
        """The rows of a slice that no predicate drops."""
        selected = np.arange(low, high)
        for position, number in enumerate(order):
            if not len(selected):
                break
            begun = perf_counter()
            true, errors = self.questions.ask(self.predicates[number], selected)
            if watched is not None:
                watched.seconds[number] = perf_counter() - begun
                watched.gathering[number] = self.questions.gathering
                watched.evaluated[number] = len(selected)
                watched.note(position, selected, true, errors)
            if errors is not None:
                self._note_errors(number, selected, errors)
                true = true | (errors != 0)
            if not true.all():
                selected = selected[true]
            if watched is not None:
                watched.survivors[position] = len(selected)
        return selected

    def profile(self, tactic: Tactic, watched: _Watched) -> None:
        """Evaluate further predicates that the tactic wants on the sample's dropped rows."""
        for position, number in enumerate(watched.order):
            rows = np.flatnonzero(watched.dropped_at < position)
            if not len(rows) or not is_movable(self.predicates[number]):
                continue
            wanted = tactic.wanted(position, watched.dropped_at[rows])
            if not wanted.all():
                watched.unasked |= {number}
            rows = rows[wanted]
            rows = watched.unprotected(rows, number, tactic.guards[number])
            if not len(rows):
                continue
            begun = perf_counter()
            places = watched.sample[rows]
            true, errors = self.questions.ask(self.predicates[number], places, extra=True)
            watched.extra_seconds[number] = perf_counter() - begun
            watched.gathering[number] += self.questions.gathering
            watched.extra[number] = len(rows)
            watched.verdicts[rows, number] = _verdicts(true, errors)

    def judged(self, pieces: Sequence[Ints]) -> Judged:
        selected = pieces[0] if len(pieces) == 1 else np.concatenate([*pieces, _NO_ROWS])
        if self._first is None:
            return Judged(selected, _NO_ROWS, [], self._codes)
        erred = self._first[selected] >= 0
        bad = selected[erred]
        blamed = [self.predicates[n] for n in self._first[bad]]
        return Judged(selected[~erred], bad, blamed, self._codes[bad])

    def _note_errors(self, number: int, rows: Ints, errors: Codes) -> None:
        """Assign a row to the first predicate in the text that errs on it."""
        if self._first is None:
            self._first = np.full(self.length, -1, np.int64)
            self._codes = np.zeros(self.length, np.uint8)
        bad = rows[errors != 0]
        earlier = (self._first[bad] < 0) | (self._first[bad] > number)
        self._first[bad[earlier]] = number
        self._codes[bad[earlier]] = errors[errors != 0][earlier]


_NO_ROWS = np.empty(0, np.int64)


def _numbers(predicates: Sequence[Predicate]) -> list[int]:
    """For each predicate of the plan its rank in the text."""
    ranked = sorted(range(len(predicates)), key=lambda i: predicates[i].rank)
    return [ranked.index(i) for i in range(len(predicates))]


def _verdicts(true: Mask, errors: Codes | None) -> np.ndarray:
    found = np.where(true, PASSED, DROPPED).astype(np.int8)
    if errors is not None:
        found[errors != 0] = ERRED
    return found


def reject(judged: Judged, frame: Frame, ts: Ints, ctx: TaskContext) -> None:
    """Note the erring rows of a judgement, one entry per predicate."""
    texts = np.array([str(p) for p in judged.predicates], object)
    for text in dict.fromkeys(texts):
        chosen = texts == text
        rows = judged.erring[chosen]
        ctx.rejects.append(Reject(str(text), judged.codes[chosen], ts[rows], frame.take(rows)))
