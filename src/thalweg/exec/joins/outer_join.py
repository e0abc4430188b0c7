"""The look-up of rows in a table: LEFT, SEMI and ANTI. For every row it is known at once whether it
has partners."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from thalweg.columns.frame import Changes, concat_changes
from thalweg.columns.vector import nulls
from thalweg.exec.context import TaskContext
from thalweg.exec.joins.probe_keys import has_keys
from thalweg.exec.leaves.protocol import LeafReader, Needles
from thalweg.exec.predicates.conjunction import judge, reject
from thalweg.plan.expr import columns_of
from thalweg.plan.logical import OuterKind, Schema
from thalweg.plan.pipeline import Pipeline
from thalweg.plan.relations.block import Block
from thalweg.store.hashing import hash_columns


def look_up(
    ctx: TaskContext,
    block: Block,
    leaves: Sequence[LeafReader],
    pipeline: Pipeline,
    changes: Changes,
    departing: bool,
    schema: Schema,
) -> Changes:
    """Look rows up; `schema` lists the columns wanted of the result."""
    (probe,) = pipeline.probes
    keyed = np.flatnonzero(has_keys(changes.frame, probe.source))
    rows = changes.take(keyed)
    hashes = hash_columns([rows.frame.columns[c].to_arrow() for c in probe.source], len(rows))
    predicates = probe.verify + probe.residual
    beside = block.leaves[probe.leaf].fields
    needles = Needles(hashes, rows.ts, departing, pipeline.leaf)
    columns = frozenset(f.name for f in schema)
    columns |= frozenset(c for p in predicates for c in columns_of(p.expr))
    found = leaves[probe.leaf].probe(needles, probe.target, False, columns)
    pairs = rows.take(found.needle)
    pairs.frame = pairs.frame.merged(found.frame.columns)
    judged = judge(predicates, pairs.frame.columns, len(pairs), ctx)
    if len(judged.erring) and not departing:
        reject(judged, pairs.frame, pairs.ts, ctx)
    met = np.zeros(len(changes), np.bool_)
    met[keyed[found.needle[judged.passing]]] = True
    if probe.outer is OuterKind.SEMI:
        return changes.take(np.flatnonzero(met))
    alone = changes.take(np.flatnonzero(~met))
    if probe.outer is OuterKind.ANTI:
        return alone
    alone.frame = alone.frame.merged({f.name: nulls(f.type, len(alone)) for f in beside})
    parts = [pairs.take(judged.passing), alone]
    for part in parts:
        part.ends = None
    return concat_changes(parts, schema)
