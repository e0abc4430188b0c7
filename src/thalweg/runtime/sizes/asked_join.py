"""The join of a SELECT whose size is asked for, as of one frontier."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from thalweg.estimate.bounds import Bounds, SubJoin
from thalweg.estimate.figure import UNKNOWN
from thalweg.estimate.from_select import SelectedJoins, joins_of
from thalweg.estimate.join_query import JoinInput
from thalweg.estimate.keys.keyed_table import KeyedTable
from thalweg.plan.expr import UserCall, walk
from thalweg.plan.logical import Node
from thalweg.runtime.sizes.living_rows import NEVER, LivingRows, scan_of

MOST_LOOKED_AT = 2_000_000
"""With more rows at hand nothing is looked at that was not asked for."""


@dataclass(frozen=True, slots=True)
class AskedJoin:
    """The joins of a SELECT, and where the rows of each input come from, as of one frontier."""

    selected: SelectedJoins
    frontier: int
    rows: LivingRows

    @staticmethod
    def by(root: Node, rows: LivingRows) -> AskedJoin:
        selected = joins_of(root)
        return AskedJoin(selected, rows.frontier(selected.sources.values()), rows)

    def of(self, one: JoinInput) -> KeyedTable:
        return self.rows.of(self.selected.sources[one.alias], self.frontier)

    @property
    def is_at_hand(self) -> bool:
        """Whether all rows that live are kept, and few enough to be looked at unasked."""
        if self.frontier == NEVER or self.not_kept():
            return False
        sources = self.selected.sources.values()
        return sum(len(self.rows.of(s, self.frontier)) for s in sources) <= MOST_LOOKED_AT

    @property
    def calls_functions(self) -> bool:
        """Whether a condition calls a Python function, which is not called unasked."""
        exprs = (p.expr for r in self.selected.joins[0].inputs for p in r.predicates)
        return any(isinstance(e, UserCall) for expr in exprs for e in walk(expr))

    def not_kept(self) -> list[str]:
        """The inputs of which rows that live are not kept."""
        sources = self.selected.sources.items()
        return [a for a, s in sources if not self.rows.is_complete(s, self.frontier)]

    def unknown(self, gone: Sequence[str], basis: str, degrees: str) -> Bounds:
        """The answer where rows that live in some inputs are not at hand."""
        sources = self.selected.sources
        streams = ", ".join(dict.fromkeys(scan_of(sources[a]).relation for a in gone))
        told = f"rows that live in {', '.join(gone)} are not kept: give {streams} a RETAIN"
        return Bounds((SubJoin(tuple(sources), UNKNOWN, degrees, ""),), basis, told)
