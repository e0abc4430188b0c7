"""EXPLAIN: the plan in words, indented, one decision a line."""

from __future__ import annotations

from collections.abc import Sequence

from thalweg.plan.bounded import Verdict
from thalweg.plan.cubes import replication, shape
from thalweg.plan.expr import Predicate
from thalweg.plan.physical import (
    Block,
    Counted,
    Leaf,
    Merged,
    Pipeline,
    QueryPlan,
    Relation,
    RoutingKind,
    Sequenced,
    Subresult,
)


def explain(plan: QueryPlan, verdict: Verdict, notes: dict[str, str] | None = None) -> str:
    """The physical plan as text; equal plans give equal texts. `notes` say more about streams."""
    lines = [f"{plan.kind.value} ({', '.join(f'{f.name} {f.type}' for f in plan.schema)})"]
    lines += _order(plan)
    if len(plan.relations) == 1:
        lines += _relation(plan.root, notes or {})
    else:
        for number, relation in reversed(list(enumerate(plan.relations))):
            lines.append(f"  relation {number}")
            lines += [f"  {line}" for line in _relation(relation, notes or {})]
    lines.append(_routing(plan))
    lines.append(_netting(plan))
    lines.append(_verdict(verdict))
    return "\n".join(lines)


def _relation(relation: Relation, notes: dict[str, str]) -> list[str]:
    if isinstance(relation, Merged):
        return [f"  all rows of {_numbers(relation.inputs)}"]
    if isinstance(relation, Counted):
        return [f"  rows of {_numbers(relation.inputs)}: {relation.rule.value}"]
    if isinstance(relation, Sequenced):
        by = f" within {', '.join(relation.partition_by)}" if relation.partition_by else ""
        columns = ", ".join(map(str, relation.columns))
        return [f"  {columns} in the order of the stream{by}", *_leaf(relation.leaf, notes)]
    return _block(relation, notes)


def _numbers(relations: Sequence[int]) -> str:
    return "relation " + " and ".join(str(i) for i in relations)


def _block(block: Block, notes: dict[str, str]) -> list[str]:
    lines = []
    if block.having:
        lines.append(f"  having {_listed(block.having)}")
    if block.grouping is not None:
        keys = ", ".join(k.name for k in block.grouping.keys) or "everything"
        calls = ", ".join(a.name for a in block.grouping.aggregates) or "presence"
        lines.append(f"  group by {keys}: {calls}")
    if block.top:
        lines.append(f"  judge {_listed(block.top)}  (may raise: asked of whole results)")
    if any(p.probes for p in block.pipelines):
        lines += ["  join"] + [f"    {_pipeline(block, p)}" for p in block.pipelines]
    for leaf in block.leaves:
        lines += _leaf(leaf, notes)
    return lines


def _pipeline(block: Block, pipeline: Pipeline) -> str:
    steps = [f"Δ{block.leaves[pipeline.leaf].alias}"]
    for probe in pipeline.probes:
        unit = block.unit(probe.leaf)
        on = ", ".join(
            f"{unit.full(t)} = {s}" for s, t in zip(probe.source, probe.target, strict=True)
        )
        residual = f" where {_listed(probe.residual)}" if probe.residual else ""
        if probe.outer is not None:
            residual += f" ({probe.outer.value.lower()} look-up)"
        shown = f"{unit.alias} (product)" if not on else f"{_unit(unit)} on {on}"
        steps.append(shown + residual)
    return " → ".join(steps)


def _unit(unit: Leaf | Subresult) -> str:
    if isinstance(unit, Leaf):
        return unit.alias
    return f"{'kept' if unit.whole else 'cached'} {unit.alias}"


def _leaf(leaf: Leaf, notes: dict[str, str]) -> list[str]:
    window = "" if leaf.window is None else f" {leaf.window}"
    note = notes.get(leaf.relation)
    note_text = f"; {note}" if note and not leaf.is_table else ""
    columns = ", ".join(leaf.bare(f.name) for f in leaf.untracked) or "no columns"
    if leaf.source is not None:
        emitted = "" if leaf.emits is None else f"{leaf.emits.value} of "
        lines = [f"  {emitted}relation {leaf.source}{window} ({columns})"]
    else:
        kind = "table" if leaf.is_table else "stream"
        lines = [f"  {kind} {leaf.relation}{window} as {leaf.alias} ({columns}{note_text})"]
    if leaf.filters:
        lines.append(f"    filter {_listed(leaf.filters)}")
    for member in leaf.members:
        lines.append(f"    filter {member}  (looked up at the row's instant)")
    if leaf.hints:
        lines.append(f"    prefilter {_listed(leaf.hints)}")
    if leaf.post_filters:
        lines.append(f"    filter above the window {_listed(leaf.post_filters)}")
    return lines


def _routing(plan: QueryPlan) -> str:
    routing = plan.routing
    axes = [
        ", ".join(
            f"{leaf.alias}.{c}"
            for leaf, columns in zip(plan.leaves, axis, strict=True)
            for c in columns
        )
        for axis in routing.axes
    ]
    if routing.kind is RoutingKind.KEYS:
        return f"routing: by {axes[0]} over 256 buckets, replication 1"
    if routing.kind is RoutingKind.CUBE:
        return f"routing: a grid by {' x '.join(f'({axis})' for axis in axes)}, {_replicated(plan)}"
    if routing.kind is RoutingKind.ANY:
        return "routing: any split, replication 1"
    return f"routing: one bucket ({routing.reason})"


def _replicated(plan: QueryPlan) -> str:
    """What a row costs on grids of some sizes: how many depends on where the plan runs."""
    shown = []
    for tasks in (2, 8, 32):
        sizes = shape(plan.routing, plan.stream_leaves, tasks)
        copies = replication(plan.routing, plan.stream_leaves, sizes)
        shown.append(f"{copies:.3g} on {tasks} tasks ({' x '.join(map(str, sizes))})")
    return f"replication {', '.join(shown)}"


def _order(plan: QueryPlan) -> list[str]:
    shown = [f"sorted by {', '.join(map(str, plan.order))}"] if plan.order else []
    shown += [] if plan.limit is None else [f"at most {plan.limit} rows per instant"]
    return [f"  {line}" for line in shown]


def _netting(plan: QueryPlan) -> str:
    if plan.needs_netting:
        return "netting: equal results that appear and vanish at one instant cancel"
    return "netting: not needed"


def _verdict(verdict: Verdict) -> str:
    if verdict.bounded:
        return f"state: bounded ({'; '.join(verdict.bounds)})"
    return f"state: unbounded ({'; '.join(verdict.reasons)})"


def _listed(predicates: Sequence[Predicate]) -> str:
    return ", ".join(str(p) for p in predicates)
