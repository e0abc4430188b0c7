"""EXPLAIN: the plan as indented text, one decision a line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from thalweg.plan.bounded_state import Verdict
from thalweg.plan.grid_routing import replication, shape
from thalweg.plan.leaf import Leaf
from thalweg.plan.logical import EmitKind
from thalweg.plan.physical import QueryPlan, RoutingKind
from thalweg.plan.relations.block import listed


def explain(plan: QueryPlan, verdict: Verdict, notes: dict[str, str] | None = None) -> str:
    """The physical plan as text; equal plans give equal texts. `notes` add details about
    streams."""
    columns = ", ".join(f"{f.name} {f.type}" for f in plan.schema)
    lines = [f"{plan.root.called or plan.kind.value} ({columns})"]
    lines += _order(plan)
    show = _Describer(notes or {})
    if len(plan.relations) == 1:
        lines += plan.root.explained(show)
    else:
        for number, relation in reversed(list(enumerate(plan.relations))):
            lines.append(f"  relation {number}")
            lines += [f"  {line}" for line in relation.explained(show)]
    lines.append(_routing(plan))
    lines.append(_netting(plan))
    lines.append(_verdict(verdict))
    return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class _Describer:
    """Leaves and inputs as text; `notes` add details about streams."""

    notes: dict[str, str]

    def leaf(self, leaf: Leaf) -> list[str]:
        return _leaf(leaf, self.notes)

    def inputs(self, numbers: Sequence[int]) -> str:
        return "relation " + " and ".join(str(i) for i in numbers)


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
        lines.append(f"    filter {listed(leaf.filters)}")
    for member in leaf.members:
        lines.append(f"    filter {member}  (looked up at the row's instant)")
    if leaf.hints:
        lines.append(f"    prefilter {listed(leaf.hints)}")
    if leaf.post_filters:
        lines.append(f"    filter above the window {listed(leaf.post_filters)}")
    return lines


def _routing(plan: QueryPlan) -> str:
    routing = plan.routing
    axes = [
        ", ".join(
            dict.fromkeys(
                f"{leaf.alias}.{c}"
                for leaf, columns in zip(plan.leaves, axis, strict=True)
                for c in columns
            )
        )
        for axis in routing.axes
    ]
    if routing.kind is RoutingKind.KEYS:
        return f"routing: by {axes[0]}, in 256 shares over the tasks; each row goes to one task"
    if routing.kind is RoutingKind.CUBE:
        return f"routing: a grid by {' x '.join(f'({axis})' for axis in axes)}; {_replicated(plan)}"
    if routing.kind is RoutingKind.ANY:
        return "routing: each row goes to one task, whichever"
    return f"routing: all rows go to one task ({routing.reason})"


def _replicated(plan: QueryPlan) -> str:
    """How many tasks a row is sent to on grids of some sizes: it depends on where the plan runs."""
    shown = []
    for tasks in (2, 8, 32):
        sizes = shape(plan.routing, plan.stream_leaves, tasks)
        copies = replication(plan.routing, plan.stream_leaves, sizes)
        shown.append(f"{copies:.3g} of {tasks} tasks ({' x '.join(map(str, sizes))})")
    return f"on average a row goes to {', '.join(shown)}"


def _order(plan: QueryPlan) -> list[str]:
    shown = [f"sorted by {', '.join(map(str, plan.order))}"] if plan.order else []
    shown += [] if plan.limit is None else [f"at most {plan.limit} rows per instant"]
    return [f"  {line}" for line in shown]


def _netting(plan: QueryPlan) -> str:
    if plan.needs_netting:
        return "netting: equal results that appear and vanish at one instant cancel"
    if plan.kind is EmitKind.RSTREAM:
        return "netting: not needed (RSTREAM emits answers, not changes)"
    return "netting: not needed (no equal results appear and vanish at one instant)"


def _verdict(verdict: Verdict) -> str:
    if verdict.bounded:
        return f"state: bounded ({'; '.join(verdict.bounds)})"
    return f"state: unbounded ({'; '.join(verdict.reasons)})"
