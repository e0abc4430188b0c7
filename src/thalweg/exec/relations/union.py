"""UNION ALL: the changes of all inputs."""

from __future__ import annotations

from thalweg.columns.frame import Changes, concat_changes
from thalweg.exec.relations.protocol import RelationStep, runs
from thalweg.plan.relations.union import UnionAll


@runs(UnionAll)
def run_union(step: RelationStep, union: UnionAll) -> Changes:
    return concat_changes(step.inputs(), union.schema)
