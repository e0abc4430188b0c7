"""Evaluation of a predicate on some rows of a frame."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from thalweg.columns.vector import Codes, Mask, Vector
from thalweg.exec.context import TaskContext
from thalweg.exec.expressions.evaluate import Sliced, Taken, evaluate
from thalweg.instants import Ints
from thalweg.plan.expr import Predicate


class Questions:
    """Evaluates the predicate on exactly the given rows."""

    def __init__(self, columns: Mapping[str, Vector], length: int, ctx: TaskContext) -> None:
        self.columns = columns
        self.length = length
        self.ctx = ctx
        self.gathering = 0.0
        """Seconds of the last call spent on fetching rows, not on evaluation."""

    def ask(
        self, predicate: Predicate, rows: Ints, extra: bool = False
    ) -> tuple[Mask, Codes | None]:
        """The rows on which it is true, and its errors (None: nowhere). `extra` evaluations serve
        the profile, not the answer, and are counted apart."""
        kind = "profiled" if extra else "evaluations"
        self.ctx.counts[f"{kind}:{predicate.label}"] += len(rows)
        true, errors = self._evaluated(predicate, rows)
        if not extra:
            self.ctx.counts[f"passed:{predicate.label}"] += int(np.count_nonzero(true))
        return true, errors

    def _evaluated(self, predicate: Predicate, rows: Ints) -> tuple[Mask, Codes | None]:
        view = self._view(rows)
        found = evaluate(predicate.expr, view, len(rows), self.ctx.functions)
        self.gathering = view.seconds if isinstance(view, Taken) else 0.0
        true = found.data if found.valid is None else found.data & found.valid
        if found.errors is not None:
            true = true & (found.errors == 0)  # values under an error are undefined
        return true, found.errors

    def _view(self, rows: Ints) -> Mapping[str, Vector]:
        if len(rows) == self.length:
            return self.columns
        if len(rows) and rows[-1] - rows[0] + 1 == len(rows):
            return Sliced(self.columns, int(rows[0]), int(rows[-1]) + 1)
        return Taken(self.columns, rows)
