"""The state of a stream, and of rows that windows over its order hold in common."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

from thalweg.exec.aggregate.group_state import StatePack
from thalweg.instants import BEFORE_TIME
from thalweg.runtime.state.field_readers import packs, state_packs
from thalweg.runtime.state.query_state import Described
from thalweg.runtime.state.serialization import READ, Json, from_json, plain
from thalweg.store.packs import PackMeta


@dataclass(slots=True)
class StreamState:
    """`watermark` is W at the end of the last epoch: older rows are late from then on. `heartbeat`
    is the instant before which the source has said no row will come. Since `kept_since` nothing was
    discarded: earlier rows may still be in packs but count as gone. Rows of a view that came late
    are what they should be since `whole_since`."""

    packs: list[PackMeta] = field(default_factory=list, metadata={READ: packs})
    rejects: list[Described] = field(default_factory=list, metadata={READ: list})
    max_ts: int = BEFORE_TIME
    watermark: int = BEFORE_TIME
    last_clock: int = 0
    rows: int = 0
    late: int = 0
    rejected: int = 0
    heartbeat: int = BEFORE_TIME
    kept_since: int = BEFORE_TIME
    whole_since: int = BEFORE_TIME

    def to_json(self) -> Json:
        found = {f.name: getattr(self, f.name) for f in fields(self)}
        lists = {"packs": [p.to_json() for p in self.packs], "rejects": list(self.rejects)}
        return found | lists

    @staticmethod
    def from_json(data: Json) -> StreamState:
        return from_json(StreamState, data)


@dataclass(slots=True)
class WindowStore:
    """Rows before the `frontier` that windows over the order of a stream hold, once for several
    queries; `reach` is the furthest of them (see `runtime/sharing/window_stores.py`)."""

    stream: str
    reach: int
    frontier: int
    packs: tuple[StatePack, ...] = field(default=(), metadata={READ: state_packs})

    def to_json(self) -> Json:
        return {f.name: plain(getattr(self, f.name)) for f in fields(self)}

    @staticmethod
    def from_json(data: Json) -> WindowStore:
        return from_json(WindowStore, data)
