"""Predicates on one stream that several queries share, evaluated once per row.

The results of a predicate on a pack's rows are cached beside the pack for as long as the process
keeps it: the next query, in whatever order its own plan evaluates, reads the results for rows that
were evaluated before and evaluates the predicate on the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import numpy as np

from thalweg.columns.frame import Frame
from thalweg.columns.vector import Codes, Mask
from thalweg.exec.context import TaskContext
from thalweg.exec.predicates.ask import Questions
from thalweg.instants import Ints
from thalweg.plan.expr import Column, Expr, Predicate, transform
from thalweg.plan.functions import is_deterministic
from thalweg.plan.leaf import Leaf
from thalweg.plan.physical import QueryPlan
from thalweg.store.packs import Pack

Common = frozenset[tuple[str, str]]
"""A stream and a predicate on it, in the stream's own names."""
_FALSE, _TRUE, _ERRED = 1, 2, 3  # 0: not evaluated yet; errors are _ERRED and their code


def common_predicates(plans: Iterable[QueryPlan]) -> Common:
    """Predicates that at least two leaves of all queries evaluate on the same stream."""
    asked = Counter(
        (leaf.relation, own_text(leaf, predicate))
        for plan in plans
        for leaf in plan.leaves
        if not leaf.is_table and not leaf.members
        for predicate in {*leaf.filters, *leaf.hints}
        if is_deterministic(predicate.expr)
    )
    return frozenset(key for key, times in asked.items() if times > 1)


def own_text(leaf: Leaf, predicate: Predicate) -> str:
    """A predicate in the column names of the stream, independent of a query's alias."""

    def bare(expr: Expr) -> Expr:
        if isinstance(expr, Column):
            return Column(expr.type, expr.nullable, leaf.bare(expr.name))
        return expr

    return str(transform(predicate.expr, bare))


class SharedQuestions(Questions):
    """Evaluates a predicate only on rows on which no other query has evaluated it before."""

    def __init__(self, frame: Frame, ctx: TaskContext, leaf: Leaf, pack: Pack, rows: Ints) -> None:
        super().__init__(frame.columns, frame.length, ctx)
        self._leaf = leaf
        self._pack = pack
        self._rows = rows
        self._known: dict[tuple[int, int], np.ndarray | None] = {}

    def ask(
        self, predicate: Predicate, rows: Ints, extra: bool = False
    ) -> tuple[Mask, Codes | None]:
        known = self._memory(predicate)
        if known is None:
            return super().ask(predicate, rows, extra)
        places = self._rows[rows]
        unasked = np.flatnonzero(known[places] == 0)
        self.gathering = 0.0
        if len(unasked):
            true, errors = super().ask(predicate, rows[unasked], extra)
            known[places[unasked]] = _encoded(true, errors)
        true, errors = _decoded(known[places])
        if not extra and len(unasked) < len(rows):
            self.ctx.counts[f"shared:{predicate.label}"] += len(rows) - len(unasked)
            answered = np.count_nonzero(true) - np.count_nonzero(true[unasked])
            self.ctx.counts[f"passed:{predicate.label}"] += int(answered)
        return true, errors

    def _memory(self, predicate: Predicate) -> np.ndarray | None:
        if predicate.rank not in self._known:
            text = own_text(self._leaf, predicate)
            found = None
            if (self._leaf.relation, text) in self.ctx.common:
                key = ("verdicts", self._pack.name, text)
                found = self.ctx.cache.derived(key)
                if found is None:
                    found = np.zeros(len(self._pack), np.uint8)
                    self.ctx.cache.remember(key, found, found.nbytes)
            self._known[predicate.rank] = found
        return self._known[predicate.rank]


def _decoded(codes: np.ndarray) -> tuple[Mask, Codes | None]:
    errors: Codes = np.where(codes >= _ERRED, codes - np.uint8(_ERRED), 0).astype(np.uint8)
    return codes == _TRUE, errors if errors.any() else None


def _encoded(true: Mask, errors: Codes | None) -> np.ndarray:
    codes = np.where(true, _TRUE, _FALSE).astype(np.uint8)
    if errors is not None:
        codes[errors != 0] = errors[errors != 0] + _ERRED
    return codes


def selectivity(counts: Mapping[str, int], text: str) -> float | None:
    """The share of rows that passed a predicate, among those it was evaluated on."""
    asked = counts.get(f"evaluations:{text}", 0) + counts.get(f"shared:{text}", 0)
    return counts.get(f"passed:{text}", 0) / asked if asked else None
