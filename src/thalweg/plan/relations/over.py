"""LAG, LEAD and ROW_NUMBER OVER: columns over the order of a stream within a partition."""

from __future__ import annotations

from dataclasses import dataclass, replace

from thalweg.plan.leaf import Leaf
from thalweg.plan.logical import Schema, SequenceColumn
from thalweg.plan.relations.protocol import (
    Describer,
    Need,
    Relation,
    Reorder,
    Together,
    reordered_leaf,
)
from thalweg.plan.state_slots import LAST


@dataclass(frozen=True, slots=True)
class Sequenced(Relation):
    """A stream whose rows get columns over their order within a partition."""

    slots = (LAST,)
    sees_rows_once = True
    leaf: Leaf
    partition_by: tuple[str, ...]
    columns: tuple[SequenceColumn, ...]

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        return (self.leaf,)

    @property
    def inputs(self) -> tuple[int, ...]:
        return () if self.leaf.source is None else (self.leaf.source,)

    @property
    def schema(self) -> Schema:
        return self.leaf.fields + tuple(c.field() for c in self.columns)

    @property
    def lookahead(self) -> int:
        return max((c.offset for c in self.columns if c.function == "lead"), default=0)

    @property
    def lookback(self) -> int:
        return max((c.offset for c in self.columns if c.function == "lag"), default=0)

    @property
    def only_grows(self) -> bool:
        return True

    def needs(self) -> tuple[Need, ...]:
        if not self.partition_by:
            return (Need(Together.ALL),)
        return (Need(Together.KEYS, frozenset(self.partition_by)),)

    def reordered(self, order: Reorder) -> Sequenced:
        return replace(self, leaf=reordered_leaf(self.leaf, order))

    def explained(self, show: Describer) -> list[str]:
        by = f" within {', '.join(self.partition_by)}" if self.partition_by else ""
        columns = ", ".join(map(str, self.columns))
        return [f"  {columns} in the order of the stream{by}", *show.leaf(self.leaf)]
