"""The life of a query: which states there are, and where each event leads.

A query is in three states at once. Its *status* is stored. Its *stage* follows from how far it is:
`filling` its windows silently, `catching up` with the past, or `live`. Its *placement* is where it
runs: by its `own` plan, as a `member` of a cohort, or `dormant` behind a leader.

| event | status | stage | placement |
|---|---|---|---|
| CREATE, history seed / replay / none | running | filling / catching up / live | own or member |
| frontier reaches `silent_until` | | filling to catching up or live | |
| target reached | | catching up to live | |
| PAUSE | to paused | kept | own first |
| RESUME of what is paused or failed | to running | catching up, or still filling | |
| ALTER ... AS, SET WINDOW | kept | filling, replacing the earlier version | own first |
| ALTER ... SET (options) | kept | kept | own first |
| an error in a step, a limit that cannot be kept | to failed | kept | |
| settling: a bare filter that is live | | | own to member |
| settling: mode `none` or `p`, as far as the leader | | | own to dormant |
| DROP | gone, refused while others read it | | |

Under mode `c` a query is silent for ever: its answer is pending until it is invoked, and it is live
once it is not behind.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import Enum

from thalweg.runtime.state.query_state import FAILED, PAUSED, RUNNING, C, Lifecycle, QueryState


class Event(Enum):
    PAUSE = "PAUSE"
    RESUME = "RESUME"
    FAIL = "failure"


class Stage(Enum):
    FILLING = "filling"
    CATCHING_UP = "catching up"
    LIVE = "live"


STATUS_AFTER: Mapping[tuple[str, Event], str] = {
    (RUNNING, Event.PAUSE): PAUSED,
    (PAUSED, Event.PAUSE): PAUSED,
    (FAILED, Event.PAUSE): PAUSED,
    (RUNNING, Event.RESUME): RUNNING,
    (PAUSED, Event.RESUME): RUNNING,
    (FAILED, Event.RESUME): RUNNING,
    (RUNNING, Event.FAIL): FAILED,
}
"""What is not here cannot happen: only a query that runs fails."""


def after(lifecycle: Lifecycle, event: Event, error: str | None = None) -> Lifecycle:
    """The status after an event; an error stays until the query is resumed."""
    status = STATUS_AFTER[lifecycle.status, event]
    if event is Event.RESUME:
        return Lifecycle(status)
    return replace(lifecycle, status=status, error=error or lifecycle.error)


def stage_of(query: QueryState) -> Stage:
    if query.is_silent and query.definition.mode != C:
        return Stage.FILLING
    return Stage.CATCHING_UP if query.progress.behind else Stage.LIVE
