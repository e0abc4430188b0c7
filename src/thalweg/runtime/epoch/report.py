"""What an epoch did, for progress, listeners and tests."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, fields
from typing import Any

from thalweg.runtime.state.engine_state import EngineState
from thalweg.store.packs import PackMeta

Tallies = dict[str, Counter[str]]
Growth = dict[str, Any]
"""What was added to tallies, by the fields of a report."""


@dataclass(slots=True)
class EpochReport:
    """One committed epoch.

    `seconds` is the epoch from taking rows in to its commit; of these `step_seconds` went into the
    queries and `commit_seconds` into the manifest. `ingest_seconds` is what reading the batches of
    this epoch took, before it began. `own_seconds` is driver code of ours (epoch and ingest)
    outside the executor's jobs. `state_bytes` is what streams and queries keep afterwards.
    Counts by name hold only names with something to count.
    """

    epoch: int
    rows_in: int
    rows_out: dict[str, int]
    late: int
    rejected: int
    seconds: float
    step_seconds: float
    own_seconds: float = 0.0
    outputs: dict[str, list[PackMeta]] = field(default_factory=dict)
    ingest_seconds: float = 0.0
    commit_seconds: float = 0.0
    state_bytes: int = 0
    late_by_stream: dict[str, int] = field(default_factory=dict)
    rejected_by_stream: dict[str, int] = field(default_factory=dict)
    rejected_by_query: dict[str, int] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types; the packs of the output are left out."""
        found = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "outputs"}
        return {k: dict(v) if isinstance(v, dict) else v for k, v in found.items()}


def tallies(state: EngineState) -> Tallies:
    """Counters that only grow, under the names the report has for their growth."""
    streams, queries = state.streams.items(), state.queries.items()
    return {
        "late_by_stream": Counter({n: s.late for n, s in streams}),
        "rejected_by_stream": Counter({n: s.rejected for n, s in streams}),
        "rejected_by_query": Counter(
            {n: q.operators.counts.get("rejected", 0) for n, q in queries}
        ),
    }


def growth(before: Tallies, after: Tallies) -> Growth:
    """What was added in between, as fields of a report."""
    return {name: dict(after[name] - before[name]) for name in after}


def state_bytes(state: EngineState) -> int:
    """Bytes of the packs that streams and queries keep."""
    kept = sum(p.bytes for s in state.streams.values() for p in s.packs)
    held = [p for q in state.queries.values() for slot in q.operators.slots.values() for p in slot]
    held += [p for store in state.window_stores.values() for p in store.packs]
    return kept + sum(p.meta.bytes for p in held)
