"""EXPLAIN: the plan in words, indented, one decision a line."""

from __future__ import annotations

from collections.abc import Sequence

from thalweg.plan.bounded import Verdict
from thalweg.plan.expr import Predicate
from thalweg.plan.logical import format_duration
from thalweg.plan.physical import Leaf, Pipeline, QueryPlan, RoutingKind


def explain(plan: QueryPlan, verdict: Verdict, lateness: dict[str, int] | None = None) -> str:
    """The physical plan as text; equal plans give equal texts."""
    lines = [f"{plan.kind.value} ({', '.join(f'{f.name} {f.type}' for f in plan.schema)})"]
    if plan.having:
        lines.append(f"  having {_listed(plan.having)}")
    if plan.grouping is not None:
        keys = ", ".join(k.name for k in plan.grouping.keys) or "everything"
        calls = ", ".join(a.name for a in plan.grouping.aggregates) or "presence"
        lines.append(f"  group by {keys}: {calls}")
    if plan.top:
        lines.append(f"  judge {_listed(plan.top)}  (may raise: asked of whole results)")
    lines += _pipelines(plan)
    for i, leaf in enumerate(plan.leaves):
        lines += _leaf(plan, i, leaf, lateness or {})
    lines.append(_routing(plan))
    lines.append(_netting(plan))
    lines.append(_verdict(verdict))
    return "\n".join(lines)


def _pipelines(plan: QueryPlan) -> list[str]:
    if len(plan.leaves) == 1:
        return []
    return ["  join"] + [f"    {_pipeline(plan, p)}" for p in plan.pipelines]


def _pipeline(plan: QueryPlan, pipeline: Pipeline) -> str:
    steps = [f"Δ{plan.leaves[pipeline.leaf].alias}"]
    for probe in pipeline.probes:
        alias = plan.leaves[probe.leaf].alias
        on = ", ".join(
            f"{alias}.{t} = {s}" for s, t in zip(probe.source, probe.target, strict=True)
        )
        residual = f" where {_listed(probe.residual)}" if probe.residual else ""
        steps.append(f"{alias} on {on}{residual}" if on else f"{alias} (product){residual}")
    return " → ".join(steps)


def _leaf(plan: QueryPlan, i: int, leaf: Leaf, lateness: dict[str, int]) -> list[str]:
    window = "" if leaf.window is None else f" {leaf.window}"
    kind = "table" if leaf.is_table else "stream"
    late = lateness.get(leaf.relation)
    late_text = f", lateness {format_duration(late)}" if late else ""
    columns = ", ".join(leaf.bare(f.name) for f in leaf.fields) or "no columns"
    lines = [f"  {kind} {leaf.relation}{window} as {leaf.alias} ({columns}{late_text})"]
    if leaf.filters:
        lines.append(f"    filter {_listed(leaf.filters)}")
    if leaf.hints:
        lines.append(f"    prefilter {_listed(leaf.hints)}")
    if leaf.post_filters:
        lines.append(f"    filter above the window {_listed(leaf.post_filters)}")
    return lines


def _routing(plan: QueryPlan) -> str:
    routing = plan.routing
    if routing.kind is RoutingKind.KEYS:
        keys = ", ".join(
            f"{leaf.alias}.{c}"
            for leaf, columns in zip(plan.leaves, routing.columns, strict=True)
            for c in columns
        )
        return f"routing: by {keys} over 256 buckets, replication 1"
    if routing.kind is RoutingKind.ANY:
        return "routing: any split, replication 1"
    return f"routing: one bucket ({routing.reason})"


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
