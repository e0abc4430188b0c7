"""How far back the windows of a query reach: which rows of its streams it still needs."""

from __future__ import annotations

from thalweg.instants import BEFORE_TIME
from thalweg.plan.leaf import Leaf
from thalweg.plan.physical import QueryPlan
from thalweg.plan.relations.protocol import Relation
from thalweg.runtime.state.query_state import QueryState
from thalweg.windows.protocol import TimeWindow


def needed_by_stream(plan: QueryPlan, query: QueryState) -> dict[str, int]:
    """Per stream the event time before which all rows are out of the query's reach."""
    found: dict[str, int] = {}
    for relation, leaf in plan.stored_leaves:
        since = needed_since(relation, leaf, query)
        found[leaf.relation] = min(found.get(leaf.relation, since), since)
    return found


def needed_since(relation: Relation, leaf: Leaf, query: QueryState) -> int:
    """Rows of a leaf before this event time are out of the query's reach."""
    frontier = query.progress.frontier
    if not isinstance(leaf.window, TimeWindow) or relation.sees_rows_once:
        return frontier
    if query.works_on_demand:  # its rows are fetched at an invocation; others may lean on it
        return _held_since(leaf.window, frontier)
    floor = query.limits.floors.get(leaf.relation, BEFORE_TIME)
    if leaf.window.is_endless:
        changing = sum(not other.is_table and not other.is_static for other in relation.leaves)
        since = BEFORE_TIME if leaf.window.since is None else leaf.window.since
        return max(min(since, frontier), floor) if changing > 1 else frontier
    return max(leaf.window.reached_from(frontier), floor)


def _held_since(window: TimeWindow, frontier: int) -> int:
    if not window.is_endless:
        return window.reached_from(frontier)
    return BEFORE_TIME if window.since is None else window.since
