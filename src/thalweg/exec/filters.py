"""Conjunctions over a shrinking selection, in plan order, with the error rule.

A row is dropped as soon as one predicate is false or NULL. A row on which a predicate errs stays
in play: if nothing else drops it, it is rejected under the first erring predicate *in text order*,
so neither rows nor rejects depend on the order of evaluation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from thalweg.exec.context import Reject, TaskContext
from thalweg.exec.expressions import Taken, evaluate
from thalweg.exec.frame import Frame, Ints
from thalweg.exec.vector import Codes, Mask, Vector
from thalweg.plan.expr import Predicate


@dataclass(slots=True)
class Judged:
    """Rows that pass, and rows no predicate drops but some err on (with predicate and code)."""

    passing: Ints
    erring: Ints
    predicates: list[Predicate]
    codes: Codes

    def only(self, some: Mask) -> Judged:
        """The same, with some of the erring rows only."""
        kept = [p for p, wanted in zip(self.predicates, some, strict=True) if wanted]
        return Judged(self.passing, self.erring[some], kept, self.codes[some])


def judge(
    predicates: Sequence[Predicate], columns: Mapping[str, Vector], length: int, ctx: TaskContext
) -> Judged:
    """Evaluate all predicates, each only on rows still in play."""
    selected = np.arange(length)
    first = np.full(length, -1, np.int64)
    codes = np.zeros(length, np.uint8)
    for number, predicate in enumerate(predicates):
        if not len(selected):
            break
        view = columns if len(selected) == length else Taken(columns, selected)
        found = evaluate(predicate.expr, view, len(selected), ctx.functions)
        ctx.counts[f"evaluations:{predicate}"] += len(selected)
        true = found.data if found.valid is None else found.data & found.valid
        if found.errors is not None:
            erring = found.errors != 0
            rows = selected[erring]
            earlier = np.array([_rank(predicates, first[r], number) for r in rows], np.bool_)
            first[rows[earlier]] = number
            codes[rows[earlier]] = found.errors[erring][earlier]
            true = true | erring
        if not true.all():
            selected = selected[true]
    erred = first[selected] >= 0
    bad = selected[erred]
    return Judged(selected[~erred], bad, [predicates[first[r]] for r in bad], codes[bad])


def _rank(predicates: Sequence[Predicate], current: int, candidate: int) -> bool:
    return current < 0 or predicates[candidate].position < predicates[current].position


def reject(judged: Judged, frame: Frame, ts: Ints, ctx: TaskContext) -> None:
    """Note the erring rows of a judgement, one entry per predicate."""
    texts = np.array([str(p) for p in judged.predicates], object)
    for text in dict.fromkeys(texts):
        chosen = texts == text
        rows = judged.erring[chosen]
        ctx.rejects.append(Reject(str(text), judged.codes[chosen], ts[rows], frame.take(rows)))
