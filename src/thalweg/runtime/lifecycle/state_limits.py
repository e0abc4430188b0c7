"""Limits of state: where a join would keep more than it may, its oldest rows are given up.

Rows of a stream before a *floor* leave the query's windows early, at the next instant it processes,
as if the windows were shorter for once. The query goes on; what it emits from then on may lack
results and is flagged as approximate. State that cannot be shortened so (groups, row windows) ends
the query with an error that says so.
"""

from __future__ import annotations

from collections.abc import Mapping

from thalweg.instants import BEFORE_TIME
from thalweg.plan.physical import QueryPlan
from thalweg.runtime.lifecycle.transitions import Event, after
from thalweg.runtime.lifecycle.window_reach import needed_by_stream
from thalweg.runtime.state.engine_state import EngineState
from thalweg.runtime.state.query_state import Limits, QueryState
from thalweg.store.packs import PackMeta


def enforce(
    state: EngineState,
    plans: Mapping[str, QueryPlan],
    limits: Mapping[str, int],
    whole: int | None,
) -> None:
    """Bring every query below its own limit (`limits`) and all together below the engine's."""
    for name, limit in limits.items():
        query = state.queries[name]
        if query.runs:
            _shorten(name, plans[name], query, state, limit)
    if whole is not None:
        _shorten_all(state, plans, whole)


def state_of(plan: QueryPlan, query: QueryState, state: EngineState) -> int:
    """Bytes that a query needs: its own state, and packs of its streams within its reach."""
    own = sum(p.meta.bytes for slot in query.operators.slots.values() for p in slot)
    return own + sum(p.bytes for packs in _reach(plan, query, state).values() for p in packs)


def _reach(plan: QueryPlan, query: QueryState, state: EngineState) -> dict[str, list[PackMeta]]:
    """Per stream the packs that hold rows the query has gone through and still needs."""
    return {
        stream: [
            p
            for p in state.seen_by(query, stream)
            if p.max_ts >= low and p.min_ts < query.progress.frontier
        ]
        for stream, low in needed_by_stream(plan, query).items()
    }


def _evictable(plan: QueryPlan) -> set[str]:
    """Streams whose rows may leave early: all their windows in the query are time windows."""
    found: dict[str, bool] = {}
    for relation in plan.relations:
        for leaf in relation.leaves:
            if leaf.is_stored and not leaf.is_table:
                timed = not leaf.keeps_rows and not relation.sees_rows_once
                found[leaf.relation] = found.get(leaf.relation, True) and timed
    return {stream for stream, may in found.items() if may}


def _shorten(name: str, plan: QueryPlan, query: QueryState, state: EngineState, limit: int) -> None:
    reach = _reach(plan, query, state)
    # rows go with the next step, and by then as many will have come as came last
    over = state_of(plan, query, state) + sum(map(_newest, reach.values())) - limit
    if over <= 0:
        return
    packs = [(p, s) for s in _evictable(plan) for p in reach.get(s, ())]
    floors: dict[str, int] = {}
    for pack, stream in sorted(packs, key=lambda found: found[0].max_ts):
        if over <= 0:
            break
        floors[stream] = max(floors.get(stream, BEFORE_TIME), pack.max_ts + 1)
        over -= pack.bytes
    if over > 0:
        error = (
            f"the state of query {name} exceeds its limit of {limit:,} bytes and cannot be "
            "shortened: give its streams shorter windows, or raise state_limit"
        )
        query.lifecycle = after(query.lifecycle, Event.FAIL, error)
        return
    _raise_floors(query, floors)


def _newest(packs: list[PackMeta]) -> int:
    """Bytes that the last log entry brought."""
    last = max((p.seq for p in packs), default=0)
    return sum(p.bytes for p in packs if p.seq == last)


def _raise_floors(query: QueryState, given: Mapping[str, int]) -> None:
    floors, evicted = dict(query.limits.floors), dict(query.limits.evicted)
    for stream, floor in given.items():
        before = floors.get(stream, BEFORE_TIME)
        now = min(max(before, floor), query.progress.frontier)
        if now > before:
            floors[stream] = now
            evicted[stream] = evicted.get(stream, (before, before))[0], now
    if floors != query.limits.floors:
        since = query.limits.approximate_since
        since = query.progress.frontier if since is None else since
        query.limits = Limits(floors, evicted, since)


def _shorten_all(state: EngineState, plans: Mapping[str, QueryPlan], limit: int) -> None:
    """The largest query gives first."""
    sizes = {
        n: state_of(plans[n], q, state) for n, q in state.queries.items() if n in plans and q.runs
    }
    over = _total(state, plans) + _growth(state, plans) - limit
    for name in sorted(sizes, key=lambda n: -sizes[n]):
        if over <= 0:
            return
        _shorten(name, plans[name], state.queries[name], state, max(sizes[name] - over, 0))
        over = _total(state, plans) + _growth(state, plans) - limit


def _growth(state: EngineState, plans: Mapping[str, QueryPlan]) -> int:
    streams: dict[str, list[PackMeta]] = {}
    for name, query in state.queries.items():
        if name in plans and query.runs:
            streams |= _reach(plans[name], query, state)
    return sum(map(_newest, streams.values()))


def _total(state: EngineState, plans: Mapping[str, QueryPlan]) -> int:
    """Bytes that all queries need together; packs they share count once."""
    packs: dict[str, int] = {}
    for name, query in state.queries.items():
        if name in plans and query.runs:
            for found in _reach(plans[name], query, state).values():
                packs |= {p.name: p.bytes for p in found}
            packs |= {
                p.meta.name: p.meta.bytes for slot in query.operators.slots.values() for p in slot
            }
    return sum(packs.values())
