"""The state of a query: a few values, each changed by few, written flat into the manifest.

All but `Progress` are frozen: they are replaced, never changed. So queries of which nothing is
known beyond the defaults share them, a commit finds out by identity what it need not write again,
and other threads see a value as a whole or not at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Any

from thalweg.exec.aggregate.group_state import StatePack
from thalweg.instants import BEFORE_TIME
from thalweg.runtime.state import serialization
from thalweg.runtime.state.field_readers import no_entries, pairs, slots
from thalweg.runtime.state.serialization import READ, Json

RUNNING, PAUSED, FAILED = "running", "paused", "failed"
NONE, P, C, AUTO = "none", "p", "c", "auto"
"""Modes of queries that answer when they are invoked (see `runtime/invoke/row_fetch.py`)."""
ON_DEMAND = (NONE, P)
"""Modes in which a query works only when it is invoked."""
QUERY, VIEW, FILTERS, CONDITIONS = "query", "view", "filters", "conditions"
"""Kinds of queries: one that somebody registered, the query of a view with RETAIN, and the cohorts
of queries that only filter a stream and of conditions that rows are asked for others."""

Described = list[Any]
"""A pack in its manifest form. What only grows (results, rejects) is kept so, described once:
a commit must not cost more the longer the engine has run."""
Slots = Mapping[str, tuple[StatePack, ...]]


@dataclass(frozen=True, slots=True)
class Definition:
    """What the query says. `created` is the text it was registered with, `altered` are options that
    ALTER QUERY has set, `materialize` the mode that was asked for and `mode` the one in force,
    `learned` are the choices in force and the end of the plan log. `schema` is that of the output,
    for readers from outside; `reads` are the names a dormant query was made from; the query of a
    view `feeds` the stream that others read."""

    text: str = ""
    created: str = ""
    altered: Mapping[str, Any] = field(default_factory=no_entries)
    schema: str = ""
    reads: tuple[str, ...] = field(default=(), metadata={READ: tuple})
    mode: str = ""
    materialize: str = ""
    learned: Mapping[str, Any] = field(default_factory=no_entries)
    kind: str = QUERY
    feeds: str = ""


@dataclass(frozen=True, slots=True)
class Lifecycle:
    """Whether the query runs; see `runtime/lifecycle/transitions.py`."""

    status: str = RUNNING
    error: str | None = None


@dataclass(frozen=True, slots=True)
class HistoryStart:
    """Where the query began. `first_seq` is the first log entry it sees; `begins` has, per stream,
    the instant from which on it sees every row, `rows_before` the rows that the stream had before.
    What it emits before `silent_until` is not output; `had_rows` says that there were rows before
    that instant, whether they are kept or not."""

    first_seq: int = 0
    begins: Mapping[str, int] = field(default_factory=no_entries)
    rows_before: Mapping[str, int] = field(default_factory=no_entries)
    silent_until: int = BEFORE_TIME
    had_rows: bool = False


@dataclass(slots=True)
class Progress:
    """How far the query is, after each epoch. All instants below the `frontier` have been
    processed; `delivered` is the last epoch its sinks have; `start` its first instant. It is
    `behind` while it goes through the past, which is pushed or pulled (`backfill`). It changes
    next, though no row comes, at `wakes_at` or later; None: not at all, and before its first step
    that is not known. A final run lets time go on beyond the data, which has `ended` before that
    instant."""

    frontier: int = BEFORE_TIME
    delivered: int = 0
    start: int | None = None
    behind: bool = False
    backfill: str = ""
    wakes_at: int | None = BEFORE_TIME
    ended: int | None = None

    @property
    def _all(self) -> tuple[Any, ...]:
        return (
            self.frontier, self.delivered, self.start, self.behind, self.backfill, self.wakes_at,
            self.ended,
        )  # fmt: skip

    def to_json(self) -> Json:
        """All fields, default or not: they are compared by place at every commit."""
        return dict(zip(_PROGRESS, self._all, strict=True))

    def since(self, before: Json) -> Json:
        """The JSON of a query of which at most the progress has changed since `before`."""
        now = self._all
        if _progress_in(before) == now:
            return before
        return {**before, **dict(zip(_PROGRESS, now, strict=True))}


_PROGRESS = ("frontier", "delivered", "start", "behind", "backfill", "wakes_at", "ended")
_progress_in = itemgetter(*_PROGRESS)


@dataclass(frozen=True, slots=True)
class OperatorState:
    """What operators keep: packs by slot, slots whose rows are in a window store that is shared,
    and counters."""

    slots: Slots = field(default_factory=no_entries, metadata={READ: slots})
    shared_slots: Mapping[str, str] = field(default_factory=no_entries)
    counts: Mapping[str, int] = field(default_factory=no_entries)

    def with_slot(self, slot: str, packs: tuple[StatePack, ...]) -> OperatorState:
        """Other packs in a slot; a slot without any is left out."""
        rest = {s: p for s, p in self.slots.items() if s != slot}
        return replace(self, slots={**rest, slot: packs} if packs else rest)

    @property
    def packs(self) -> list[StatePack]:
        return [p for packs in self.slots.values() for p in packs]

    @property
    def files(self) -> list[str]:
        return [f for p in self.packs for f in p.files]


@dataclass(frozen=True, slots=True)
class Output:
    """What was put out. The changes of a relation up to instant `base_until` are added up in
    `base`; up to `forgotten` the output of epochs is kept no longer. While windows are filled,
    changes are added up in `pending`, which then becomes the base, or, where the query `replaces`
    an earlier version of itself, its next output."""

    forgotten: int = 0
    base: tuple[Described, ...] = field(default=(), metadata={READ: tuple})
    base_until: int = BEFORE_TIME
    pending: tuple[Described, ...] = field(default=(), metadata={READ: tuple})
    replaces: bool = False
    rejects: tuple[Described, ...] = field(default=(), metadata={READ: tuple})


@dataclass(frozen=True, slots=True)
class Limits:
    """Where a limit of state is reached, rows of a stream before its floor are given up: `evicted`
    has, for the next step, the floor before and the floor now; from `approximate_since` on the
    output may lack results."""

    floors: Mapping[str, int] = field(default_factory=no_entries)
    evicted: Mapping[str, tuple[int, int]] = field(
        default_factory=no_entries,
        metadata={READ: pairs},
    )
    approximate_since: int | None = None


@dataclass(frozen=True, slots=True)
class Cohort:
    """What the members of a cohort are about (a stream, or a join by its key), and its number."""

    about: str
    number: int


@dataclass(frozen=True, slots=True)
class Sharing:
    """What the query shares with others. A cohort has a `roll` of members, some of them `struck`
    off; a query that `was_member` has earlier results among those of members. A dormant query is
    represented by the leader of its `dormant_group`; rows are asked its `condition` under `p`."""

    roll: tuple[Described, ...] = field(default=(), metadata={READ: tuple})
    struck: tuple[int, ...] = field(default=(), metadata={READ: tuple})
    was_member: tuple[Described, ...] = field(default=(), metadata={READ: tuple})
    dormant_group: str = ""
    condition: str = ""
    cohort: Cohort | None = field(default=None, metadata={READ: lambda given: Cohort(*given)})


@dataclass(slots=True, eq=False)
class QueryState:
    """One query. `_json` is its manifest form as it was last asked for, made of `_values`."""

    definition: Definition
    lifecycle: Lifecycle = Lifecycle()
    history: HistoryStart = HistoryStart()
    operators: OperatorState = OperatorState()
    output: Output = Output()
    limits: Limits = Limits()
    sharing: Sharing = Sharing()
    progress: Progress = field(default_factory=Progress)
    _json: Json | None = field(default=None, repr=False)
    _values: tuple[object, ...] = field(default=(), repr=False)

    @property
    def is_silent(self) -> bool:
        """Whether its windows are being filled: what it emits is not output yet."""
        return self.progress.frontier < self.history.silent_until

    @property
    def runs(self) -> bool:
        return self.lifecycle.status == RUNNING

    def wakes_before(self, frontier: int) -> bool:
        """Whether something happens before a frontier though no row comes. Where that is not known
        yet, it may if there is any state."""
        at = self.progress.wakes_at
        if at is None or at >= frontier:
            return False
        return at > BEFORE_TIME or bool(self.operators.slots or self.operators.shared_slots)

    @property
    def works_on_demand(self) -> bool:
        """Whether it works only when it is invoked."""
        return self.definition.mode in ON_DEMAND

    @property
    def holds_files(self) -> bool:
        """Whether packs are kept for it alone, output aside."""
        operators, output = self.operators, self.output
        return any(
            (operators.slots, operators.shared_slots, output.rejects, output.base, output.pending)
        )

    def as_far(self, definition: Definition) -> QueryState:
        """Another query that has seen the same and has the same frontier."""
        seen = replace(self.history, silent_until=BEFORE_TIME, had_rows=False)
        own = Progress(self.progress.frontier, start=self.progress.start)
        own.behind = self.progress.behind
        limits = Limits(self.limits.floors)
        return QueryState(definition, history=seen, limits=limits, progress=own)

    # -- as JSON -----------------------------------------------------------------------------

    def to_json(self, before: Json | None = None) -> Json:
        """`before` is what it was at the last commit: of most of many queries at most the
        progress has changed since then."""
        values = (
            self.definition, self.lifecycle, self.history, self.operators, self.output,
            self.limits, self.sharing,
        )  # fmt: skip
        if before is None or before is not self._json:
            found = {k: v for value in values for k, v in serialization.to_json(value).items()}
            found |= self.progress.to_json()
        elif values == self._values:
            found = self.progress.since(before)
        else:
            found = {**before, **self.progress.to_json()}
            for value, old in zip(values, self._values, strict=True):
                if value is not old:
                    serialization.update(found, value)
        self._json, self._values = found, values
        return found

    def dormant_to_json(self) -> Json:
        """Of a dormant query: there may be very many of them, so defaults are left out."""
        found = {k: v for k, v in self.to_json().items() if k not in _PROGRESS}
        return found | serialization.to_json(self.progress)

    @staticmethod
    def from_json(data: Json) -> QueryState:
        read = serialization.from_json
        return QueryState(
            read(Definition, data),
            read(Lifecycle, data),
            read(HistoryStart, data),
            read(OperatorState, data),
            read(Output, data),
            read(Limits, data),
            read(Sharing, data),
            read(Progress, data),
        )
