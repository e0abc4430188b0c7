"""How fast queries process the past beside new rows, and whether an index finds it at once."""

from __future__ import annotations

from dataclasses import dataclass

from thalweg.exec.predicates.constant_lookup import constants_of, find_by_constants
from thalweg.plan.physical import QueryPlan
from thalweg.runtime.state.engine_state import EngineState
from thalweg.runtime.state.query_state import QueryState
from thalweg.store.packs import Pack
from thalweg.store.storage import Storage

SLICE_SECONDS = 0.02
"""How long a slice may take where nothing else is to be done: so long new rows may have to wait."""
BUSY = 0.25
"""The part of such a slice that goes into an epoch with new rows, if it must."""
PATIENCE = 2
"""After so many epochs with new rows and none without, the past is no longer left out of them."""
PUSH, PULL, AUTO = "push", "pull", "auto"
FIRST_ROWS = 50_000
FEWEST_ROWS = 5_000
MOST_ROWS = 200_000
"""However fast a slice was: the rows of the next one may not be at hand as these were."""


@dataclass(slots=True)
class Pace:
    """How many rows of the past an epoch processes; learned from how long they took, unless it
    is `fixed`.

    The place of the past is between epochs with new rows: within one, even few rows cost a step
    and its files. Where new rows come without a pause there is no such place, so they share.
    """

    rows: float = FIRST_ROWS
    fixed: bool = False
    busy_epochs: int = 0

    def budget(self, busy: bool) -> float:
        """For the next epoch, which has new rows or not."""
        self.busy_epochs = self.busy_epochs + 1 if busy else 0
        if self.fixed or not busy:
            return self.rows
        return self.rows * BUSY if self.busy_epochs > PATIENCE else 0.0

    def learn(self, rows: float, seconds: float) -> None:
        """A slice of so many rows took so long, and nothing was done beside it."""
        cut_short = rows < self.rows / 2 and seconds < SLICE_SECONDS
        if not self.fixed and rows > 0 and not cut_short:
            factor = min(max(SLICE_SECONDS / max(seconds, 1e-6), 0.25), 2.0)
            self.rows = max(min(rows * factor, 2 * self.rows, MOST_ROWS), FEWEST_ROWS)


def chosen_backfill(
    wanted: str,
    plan: QueryPlan,
    query: QueryState,
    state: EngineState,
    storage: Storage,
    rows: float,
) -> str:
    """How a query goes through the past: what an index finds is pulled at once if it is no more
    than the `rows` of a slice; otherwise everything is pushed through, slice by slice."""
    if wanted != AUTO:
        return wanted
    total = 0
    for place in plan.stream_leaves:
        leaf = plan.leaves[place]
        constants = constants_of(leaf)
        for meta in state.streams[leaf.relation].packs:
            if meta.max_ts < query.progress.frontier:
                continue
            if meta.is_cold:
                return PUSH  # all of them would have to be opened at once
            found = None
            if constants:
                pack = Pack(meta.name, storage.read_table(meta.name))
                found = find_by_constants(pack, constants)
            total += meta.rows if found is None else len(found)
            if total > rows:
                return PUSH
    return PULL
