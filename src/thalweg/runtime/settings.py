"""What an engine is told when it is made; parts read it when they need it."""

from __future__ import annotations

from dataclasses import dataclass

from thalweg.config import RESULTS_RETAIN, USER_FUNCTION_DEADLINE
from thalweg.plan.catalog import DEFAULT_IDLE

EPOCH_ROWS = 1 << 19
SHARE_FROM = 16
COMPACT_FROM = 16


@dataclass(slots=True)
class Settings:
    """`tasks` is into how many a query may be split. `results_retain` (µs) is how long output is
    kept, `state_limit` how many bytes all queries together may hold. From the `share_from`-th on,
    queries that only filter a stream are run together; windows over order are kept once for all
    queries (`share_windows`). After `compact_from` epochs with output that is gathered. With
    `strict` an error in adapting is raised (in tests), not only logged. An epoch
    takes at most about `epoch_rows` rows through a query, unless more have one event time: memory
    grows with the rows of an epoch."""

    tasks: int = 1
    results_retain: int = RESULTS_RETAIN
    state_limit: int | None = None
    share_from: int = SHARE_FROM
    share_windows: bool = True
    compact_from: int = COMPACT_FROM
    strict: bool = False
    default_idle: int | None = DEFAULT_IDLE
    epoch_rows: int = EPOCH_ROWS
    function_deadline: float | None = USER_FUNCTION_DEADLINE
