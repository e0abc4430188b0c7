"""A view that keeps segments: they are fitted once, and read by whoever asks later.

The view's stream has the segments as they appear and vanish. What reads it has them back as a
relation. Of a segment that began before what is kept, only the end may be left: it is skipped.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from thalweg.columns.frame import Changes, Frame, concat_frames, empty_frame
from thalweg.columns.netting import net
from thalweg.columns.sort_codes import row_codes
from thalweg.columns.vector import Mask, concat, from_arrow
from thalweg.exec.relations.emit import SIGN
from thalweg.exec.relations.protocol import RelationStep, runs
from thalweg.lang.parsing.select_clauses import SourceRelation
from thalweg.models.functions.curve import START, Curve, Curves
from thalweg.models.relations.state import ALIVE, all_alive, keep_alive
from thalweg.plan.catalog import StreamDef
from thalweg.plan.leaf import Leaf
from thalweg.plan.logical import Node, Scan, Schema, Window
from thalweg.plan.planner import Drafts, lowers
from thalweg.plan.relations.protocol import (
    Describer,
    Need,
    Relation,
    Reorder,
    Together,
    reordered_leaf,
)
from thalweg.plan.types import DOUBLE
from thalweg.store.packs import TIME
from thalweg.windows.range import NOW


@dataclass(frozen=True, slots=True)
class Restore(Node):
    """The relation whose changes a stream has; `columns` are those of its rows."""

    input: Node
    columns: Schema

    @property
    def schema(self) -> Schema:
        return self.columns

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    def bounded_by(self) -> str | None:
        return f"{self.columns[0].name.split('.', 1)[0]}: the segments that are there at an instant"

    def reads(self) -> Iterator[str]:
        yield from (f.name for f in self.input.schema)


@dataclass(frozen=True, slots=True)
class Restored(Relation):
    slots = (ALIVE,)
    sees_rows_once = True
    is_netted = True
    leaf: Leaf = field()
    schema: Schema = field()

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        return (self.leaf,)

    @property
    def inputs(self) -> tuple[int, ...]:
        return ()

    @property
    def only_grows(self) -> bool:
        return False

    def needs(self) -> tuple[Need, ...]:
        return (Need(Together.CONTENT),)

    def reordered(self, order: Reorder) -> Restored:
        return replace(self, leaf=reordered_leaf(self.leaf, order))

    def explained(self, show: Describer) -> list[str]:
        return [f"  segments that the view {self.leaf.relation} keeps", *show.leaf(self.leaf)]


@lowers(Restore)
def _lower(drafts: Drafts, node: Restore) -> int:
    leaf = drafts.leaf(Window(node.input, NOW), (), 1, whole=True)
    return drafts.append(Restored(leaf, node.schema))


@runs(Restored)
def run_restored(step: RelationStep, relation: Restored) -> Changes:
    tables = [t for t in step.arriving(0) if t.num_rows]
    if not tables:
        none = np.empty(0, np.int64)
        return Changes(empty_frame(relation.schema), none, none.astype(np.int8))
    table = pa.concat_tables(tables).combine_chunks()
    leaf = relation.leaf
    columns = {f.name: from_arrow(table.column(leaf.bare(f.name)), f.type) for f in relation.schema}
    signs = table.column(SIGN).to_numpy().astype(np.int8)
    found = Changes(Frame(columns, table.num_rows), table.column(TIME).to_numpy(), signs)
    found = net(found.take(np.flatnonzero(~_orphaned(step, relation, found))))
    keep_alive(step, relation.schema, found, ())
    return found


def _orphaned(step: RelationStep, relation: Restored, changes: Changes) -> Mask:
    """Ends of segments whose beginning is not kept."""
    start = np.asarray(changes.frame.columns[relation.schema[-1].name].data)
    found = changes.signs < 0
    found &= start < (step.ctx.start or 0)
    if not found.any():
        return found
    begun = changes.take(np.flatnonzero(changes.signs > 0)).frame
    known = concat_frames([all_alive(step, relation.schema).frame, begun], relation.schema)
    suspects = np.flatnonzero(found)
    both = [
        concat([known.columns[f.name], changes.frame.columns[f.name].take(suspects)])
        for f in relation.schema
    ]
    codes = row_codes(both, known.length + len(suspects))
    found[suspects] = ~np.isin(codes[known.length :], codes[: known.length])
    return found


# -- in the text of queries ------------------------------------------------------------------------


class SegmentView:
    """A stream that a view of segments feeds, as a source of queries."""

    def applies(self, stream: StreamDef) -> bool:
        return stream.source.kind == "view" and any(f.name == START for f in stream.fields)

    def bind(self, scan: Scan) -> SourceRelation:
        columns = tuple(f for f in scan.fields if f.name != f"{scan.alias}.{SIGN}")
        curves = _curves(columns, f"{scan.alias}.{START}")
        hidden = {n for _, c in curves for n in c.hidden} | {f"{scan.alias}.{START}"}
        shown = tuple(f for f in columns if f.name not in hidden)
        return SourceRelation(Restore(scan, columns), shown, curves)


def _curves(columns: Schema, start: str) -> Curves:
    """The modeled columns, which are never NULL, by the names of their coefficients."""
    names = [f.name for f in columns]
    found = []
    for one in columns:
        bare = one.name.split(".", 1)[1]
        if one.nullable or one.type != DOUBLE or "^" in bare or "/" in bare:
            continue
        higher = tuple(n for n in names if n.startswith(f"{one.name}^"))
        below = tuple(n for n in names if n.startswith(f"{one.name}/"))
        found.append((one.name, Curve((one.name, *higher), start, below)))
    return tuple(found)
