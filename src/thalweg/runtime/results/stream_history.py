"""What is kept of a stream's past, in the order of time: for back-tests and a look by hand."""

from __future__ import annotations

import pyarrow as pa

from thalweg.errors import UnknownName, did_you_mean
from thalweg.instants import BEFORE_TIME
from thalweg.runtime.state.engine_state import EngineState
from thalweg.store.packs import TIME, with_times
from thalweg.store.storage import Storage


def history(
    storage: Storage,
    state: EngineState,
    stream: str,
    since: int | None = None,
    until: int | None = None,
) -> pa.Table:
    """Rows of a stream with since ≤ event time < until (µs), with `__ts`, their event time."""
    if stream not in state.streams:
        raise UnknownName(
            f"nothing is kept of a stream {stream}", remedy=did_you_mean(stream, state.streams)
        )
    tables = []
    for pack in state.streams[stream].packs:
        table = storage.read_table(pack.name)
        own = [n for n in table.column_names if not n.startswith("__")]
        tables.append(table.select([*own, TIME]))
    since = max(state.streams[stream].kept_since, BEFORE_TIME if since is None else since)
    if not tables:
        return pa.table({TIME: pa.array([], pa.timestamp("us", "UTC"))})
    whole = pa.concat_tables(tables).sort_by([(TIME, "ascending")])
    stamps = whole.column(TIME).to_numpy()
    low = int(stamps.searchsorted(since))
    high = len(stamps) if until is None else int(stamps.searchsorted(until))
    return with_times(whole.slice(low, high - low))
