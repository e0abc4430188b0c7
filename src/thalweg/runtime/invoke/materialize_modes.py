"""Queries that only answer when they are invoked: how they come, change their mode and go."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from thalweg.errors import ConfigError
from thalweg.exec.frame import AFTER_TIME
from thalweg.plan.logical import EmitKind
from thalweg.plan.pairs import pairs_of
from thalweg.plan.query import BoundQuery
from thalweg.plan.snapshots import (
    has_snapshots,
)
from thalweg.plan.standing import StandingFilter, where_filter
from thalweg.runtime.invoke.instant_answers import NotThere, Snapshots
from thalweg.runtime.lifecycle.history_start import REPLAY, SEED, begin, beginning
from thalweg.runtime.sharing.dormant_queries import committed_query
from thalweg.runtime.sharing.filter_cohorts import Members
from thalweg.runtime.state.engine_state import ASLEEP, NONE, PAUSED, WHERES, C, P, QueryState

if TYPE_CHECKING:
    from thalweg.runtime.session.session import Session

AUTO = "auto"
DECIDE_EVERY = 16
"""Epochs between two looks at how often a query under `auto` is invoked."""
OFTEN = 1.0
"""Invocations an epoch from which on the answer is kept up to date; without any, nothing is."""
ATTEMPTS = 5


class Standing:
    """The part of a session that answers invocations."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.coordinator = session.coordinator
        self.wheres = Members(WHERES, self.coordinator, session.cohort_plan, self._condition)
        self.wheres.load()
        self.snapshots = Snapshots(session, self.wheres)
        self._users: dict[str, set[str]] = {}
        for name, query in self.coordinator.state.asleep.items():
            if query.mode == P:
                self._users.setdefault(query.condition, set()).add(name)
        self._invoked: Counter[str] = Counter()
        self._looked_at: dict[str, int] = {}
        """Queries under `auto` by the epoch they were last looked at, the longest ago first."""
        self._answering = threading.Lock()  # whoever asks: trees and open packs are common
        self.composite = True
        """Whether joins that differ only in what they ask of each side are made once."""
        self.coordinator.before_commit.insert(0, self.decide)

    def _condition(self, text: str) -> StandingFilter | None:
        return self._asked(self.session.bind(text))

    def _asked(self, bound: BoundQuery) -> StandingFilter | None:
        """What a query asks of rows, or of the sides of a join."""
        if len(bound.scans) == 1:
            return where_filter(self.session.physical(bound))
        found = pairs_of(bound, self.session.catalog)
        if found is None or self.composite:
            return None if found is None else found.asked
        return replace(found.asked, stream=f"{found.asked.stream}-{condition_key(found.asked)}")

    # -- coming, changing, going -------------------------------------------------------------

    def refuse(self, name: str, bound: BoundQuery) -> None:
        """Refuse what cannot be done, before anything is."""
        wanted = bound.options.materialize
        if wanted is None:
            return
        if bound.root.kind is not EmitKind.RELATION:
            kind = bound.root.kind.value
            raise ConfigError(
                f"query {name} emits {kind}: there is nothing to invoke",
                remedy=f"leave out materialize, or {kind}",
            )
        if bound.sink is not None:
            raise ConfigError(
                f"query {name} answers when it is invoked and puts nothing out",
                remedy="leave out materialize, or INTO",
            )
        if wanted in (NONE, P) and wanted not in self.modes(bound):
            raise ConfigError(
                f"the answer of {name} does not follow from which rows its windows hold, or its "
                "WHERE from single rows",
                remedy="say materialize = 'c', or 'auto'",
            )

    def mode_after(self, name: str, bound: BoundQuery, query: QueryState) -> str:
        """The mode of a query that is to say something else, or a refusal; none if it emits."""
        mode, wanted = query.mode, bound.options.materialize
        if not mode:
            if wanted is not None:
                raise ConfigError(
                    f"query {name} emits its changes",
                    remedy="drop it and create it WITH (materialize = ...)",
                )
            return mode
        chosen = mode if wanted in (None, AUTO) else wanted
        if wanted == AUTO and mode not in self.modes(bound):
            chosen = self._usual(bound)
        self.refuse(name, replace(bound, options=replace(bound.options, materialize=chosen)))
        if chosen == C and query.status == PAUSED:
            raise ConfigError(
                f"the answer of {name} cannot be made while it is paused",
                remedy=f"RESUME QUERY {name} first",
            )
        return chosen

    def modes(self, bound: BoundQuery) -> tuple[str, ...]:
        """How it could be answered, the least work in advance first."""
        if not has_snapshots(bound) or self._has_changing_tables(bound):
            return (C,)
        return (NONE, C) if self._asked(bound) is None else (NONE, P, C)

    def _usual(self, bound: BoundQuery) -> str:
        """What `auto` begins with."""
        return P if P in self.modes(bound) else C

    def _has_changing_tables(self, bound: BoundQuery) -> bool:
        tables = self.session.catalog.tables
        return any(s.is_table and tables[s.relation].changes for s in bound.scans)

    def come(self, name: str, bound: BoundQuery) -> None:
        """Begin to answer for a query that has just been added."""
        query = self.coordinator.state.queries[name]
        wanted = bound.options.materialize
        if query.mode:
            if query.mode == P:
                self._use(name, query, bound)
        elif wanted == AUTO:
            self.switch(name, self._usual(bound), bound)
        elif wanted is not None:
            self.switch(name, wanted, bound)
        self.watch(name, bound)

    def watch(self, name: str, bound: BoundQuery) -> None:
        """Under `auto`, count how often it is invoked."""
        self._looked_at.pop(name, None)
        if bound.options.materialize == AUTO:
            self._looked_at[name] = self.coordinator.state.epoch

    def switch(self, name: str, mode: str, bound: BoundQuery) -> None:
        """Another mode from here on; the answers stay the same."""
        query, plan = self.coordinator.state.queries[name], self.coordinator.plans[name]
        self.leave(name)
        self.coordinator.drop_state(query)
        streams = [self.coordinator.state.streams[s] for s in plan.streams]
        now = query.frontier
        if query.status != PAUSED:  # streams that it has not read before may be behind
            now = min((s.watermark for s in streams), default=now)
        history = SEED if mode == C else REPLAY
        given = beginning(plan, history, self.coordinator.state, now)
        begin(query, given, self.coordinator.state, self.coordinator.storage)
        query.mode = mode
        if mode == C:
            query.silent_until = AFTER_TIME
            packs = [p for s in streams for p in s.packs]
            kept = any(p.max_ts >= query.frontier and p.min_ts < now for p in packs)
            if not kept and any(s.rows for s in streams):
                query.start = query.frontier  # what was there is not in the windows any more
        else:
            query.frontier, query.behind = now, False
        if mode == P:
            self._use(name, query, bound)
        if mode in ASLEEP:
            self.session.sleeping.tire(name)

    def _use(self, name: str, query: QueryState, bound: BoundQuery) -> None:
        found = self._asked(bound)
        assert found is not None
        key = query.condition = condition_key(found)
        if key not in self.wheres.by_name:
            self.wheres.admit(key, query.text, found, REPLAY)
        self._users.setdefault(key, set()).add(name)

    def leave(self, name: str) -> None:
        """A condition that nobody asks about any more is forgotten."""
        with self._answering:
            self._forget(name)

    def _forget(self, name: str) -> None:
        query = self.coordinator.state.known(name)
        assert query is not None
        self._looked_at.pop(name, None)
        self.snapshots.forget(name)
        users = self._users.get(query.condition, set())
        if name in users:
            users.remove(name)
            if not users:
                del self._users[query.condition]
                self.wheres.leave(query.condition)
                self.snapshots.ranked.forget(query.condition)

    def decide(self) -> None:
        """Under `auto`, look every so often at how often queries are invoked."""
        epoch = self.coordinator.state.epoch
        while self._looked_at:
            name, since = next(iter(self._looked_at.items()))
            if epoch - since < DECIDE_EVERY:
                return
            rate = self._invoked.pop(name, 0) / (epoch - since)
            self._decide(name, NONE if not rate else (C if rate >= OFTEN else P))
            self._looked_at.pop(name, None)
            self._looked_at[name] = epoch

    def _decide(self, name: str, wanted: str) -> None:
        query, known = self.coordinator.state.known(name), self.session.queries.get(name)
        if query is None or known is None or wanted == query.mode:
            return
        if wanted in self.modes(known.bound):
            self.session.unfold(name)
            self.switch(name, wanted, known.bound)

    # -- answering ---------------------------------------------------------------------------

    def is_uncommitted(self, name: str) -> bool:
        """Whether it came, or changed, after the last commit: what is committed does not know."""
        query = self.coordinator.state.known(name)
        known = committed_query(self.coordinator.committed, name) or {}
        return query is not None and query.mode != "" and known.get("mode") != query.mode

    def is_behind(self, name: str) -> bool:
        """Whether it, or the condition it asks about, has still to go through the past. Answers
        are made from what is committed, so that counts."""
        committed = self.coordinator.committed
        known = committed_query(committed, name)
        if known is None or known["mode"] != P:
            return known is None or bool(known["behind"])
        query = self.coordinator.state.known(name)
        assert query is not None
        cohort = committed["queries"].get(self.wheres.by_name[query.condition].cohort)
        if cohort is None or cohort["behind"]:
            return True
        return bool(cohort["frontier"] < known["frontier"])

    def answer(self, name: str, at: int | None) -> pa.Table:
        """The rows of the answer, at an instant or now. Files may go while they are read, and how
        the query is answered may change: then a newer state is committed."""
        if name in self._looked_at:
            self._invoked[name] += 1
        for attempt in range(ATTEMPTS):
            try:
                with self._answering:
                    return self.snapshots.answer(name, at)
            except (FileNotFoundError, NotThere):
                if attempt == ATTEMPTS - 1:
                    raise
                self.session.catch_up(name)
        raise AssertionError


def condition_key(found: StandingFilter) -> str:
    """Equal for conditions that say the same, in whatever order."""
    said = sorted(f"{c.column} {c.operator} {c.constant!r}" for c in found.comparisons)
    return " AND ".join([found.stream, *said, *sorted(map(str, found.rest))])
