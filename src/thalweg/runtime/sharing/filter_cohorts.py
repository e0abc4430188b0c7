"""Queries that only filter a stream are members of one shared query per stream.

A *cohort* is an internal query over the whole stream with a roll of members (`exec/many`); it has a
frontier, a past and a state like any other. Members that come at one boundary form a cohort of
their own, which goes through the past they asked for; when it has come as far as the stream's
first cohort, the two become one. A member that is paused or altered leaves for a query of its own;
when that runs again as far as the first cohort, and only filters, it comes back under a new number.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from thalweg.exec.many.roll import (
    CREATED,
    ID,
    NAME,
    REST,
    TEXT,
    Entry,
    write_roll,
    write_rows,
)
from thalweg.plan.expr import Expr
from thalweg.plan.physical import QueryPlan
from thalweg.plan.query import QueryOptions
from thalweg.plan.standing import StandingFilter, standing_filter
from thalweg.runtime.epoch.coordinator import Coordinator
from thalweg.runtime.lifecycle.coverage import COMPLETE, coverage
from thalweg.runtime.state.engine_state import RUNNING, Described, QueryState

MOST_PACKS = 8
MOST_STRUCK = 1_000
Membership = Sequence[Any]
"""What must be known to read a member's results: its number, its stream, and by their names the
columns that it takes from that."""
Planner = Callable[[str, str], QueryPlan]
"""From what cohorts are about (a stream, or a join by its key) and a member's text to a plan."""
Bound = Callable[[str], StandingFilter | None]


def stream_of(cohort: str) -> str:
    return cohort.split(":", 1)[1].rsplit(":", 1)[0]


def whole_stream(stream: str) -> str:
    """The query that a cohort is."""
    return f"SELECT ISTREAM * FROM {stream}"


@dataclass(slots=True)
class Member:
    id: int
    name: str
    text: str
    created: str
    cohort: str

    @property
    def stream(self) -> str:
        return stream_of(self.cohort)


@dataclass(slots=True)
class _Coming:
    """Members that come at one boundary, to one stream, with one wish for the past."""

    plan: QueryPlan
    entries: list[Entry] = field(default_factory=list)


class Members:
    """All members of one kind by name. `planned` plans a query's text, `bound` tells what it
    filters by."""

    def __init__(self, kind: str, coordinator: Coordinator, planned: Planner, bound: Bound) -> None:
        self.kind = kind
        self.coordinator = coordinator
        self.by_name: dict[str, Member] = {}
        self._planned = planned
        self._bound = bound
        self._coming: dict[tuple[str, str | None], _Coming] = {}
        self._left: set[str] = set()
        coordinator.before_commit.append(self.settle)

    def outputs(self, stream: str) -> str:
        """The name under which the results of a stream's members are kept."""
        return f"{self.kind}{stream}"

    def cohorts(self) -> list[tuple[str, QueryState]]:
        queries = self.coordinator.state.queries
        return [(n, q) for n, q in list(queries.items()) if n.startswith(self.kind)]

    # -- opening -----------------------------------------------------------------------------

    def load(self) -> None:
        """Who is on the rolls of a path."""
        for cohort, query in self.cohorts():
            self._load(cohort, query)

    def _load(self, cohort: str, query: QueryState) -> None:
        struck = set(query.struck)
        for number, name, text, created in self._lines(query, ID, NAME, TEXT, CREATED):
            if number not in struck:
                self.by_name[name] = Member(number, name, text, created, cohort)

    def _lines(self, query: QueryState, *columns: str) -> Iterator[tuple[Any, ...]]:
        for pack in query.roll:
            table = self.coordinator.storage.read_table(pack[0])
            yield from zip(*(table.column(c).to_pylist() for c in columns), strict=True)

    def resume(self) -> None:
        """Let the cohorts of an earlier run go on, once their streams are there."""
        for cohort, query in self.cohorts():
            if cohort not in self.coordinator.plans:
                plan = self._planned(stream_of(cohort), query.text)
                self.coordinator.replan(cohort, plan, QueryOptions())
                self._ask_again(cohort, query)

    def _ask_again(self, cohort: str, query: QueryState) -> None:
        """What members ask beyond comparisons, from their texts; each question once."""
        asked: set[str] = set()
        for text, rest in self._lines(query, TEXT, REST):
            if not asked.issuperset(rest):
                found = self._bound(text)
                assert found is not None
                self._ask(cohort, found.rest)
                asked.update(rest)

    # -- coming and going --------------------------------------------------------------------

    def admit(self, name: str, text: str, found: StandingFilter, history: str | None) -> Member:
        """Take a query in. It is on the roll with the next commit."""
        key = (found.stream, history)
        if key not in self._coming:
            self._coming[key] = _Coming(self._planned(found.stream, text))
        number = self._number()
        self._coming[key].entries.append(Entry(number, name, text, text, found))
        member = Member(number, name, text, text, f"{self.kind}{found.stream}:")
        self.by_name[name] = member
        return member

    def settle(self) -> None:
        """Write down who came; let cohorts that have come equally far become one."""
        coming, self._coming = self._coming, {}
        for (stream, history), one in coming.items():
            entries = [e for e in one.entries if e.name in self.by_name]
            if entries:
                self._found(stream, history, one.plan, entries)
        self._unite()
        self._forget_results()

    def _found(
        self, stream: str, history: str | None, plan: QueryPlan, entries: list[Entry]
    ) -> None:
        """A cohort of those that came together."""
        coordinator = self.coordinator
        cohort = f"{self.kind}{stream}:{entries[0].id}"
        options = QueryOptions(history=history)
        coordinator.add_query(cohort, entries[0].text, plan, options)
        self._enter(cohort, entries)
        for entry in entries:
            self.by_name[entry.name].cohort = cohort

    def _file(self, stream: str) -> str:
        epoch = self.coordinator.state.epoch + 1
        return f"q/{self.kind}{stream}-{epoch}-{uuid.uuid4().hex[:12]}.arrow"

    def _ask(self, cohort: str, rest: Iterable[Expr]) -> None:
        self.coordinator.rest.setdefault(cohort, {}).update({str(e): e for e in rest})

    def memberships(self, member: Member, plan: QueryPlan) -> list[Described]:
        """Those of a member that it had before, and the one it has."""
        found = standing_filter(plan)
        assert found is not None
        now = [member.id, member.stream, [list(c) for c in found.columns]]
        return [*self.coordinator.state.returned.get(member.name, ()), now]

    def take_back(self, coming: Iterable[tuple[str, StandingFilter]]) -> None:
        """Queries that have left and now go with the first cohort of their stream again."""
        entries: dict[str, list[Entry]] = {}
        for name, found in coming:
            cohort = self._first(found.stream) or self._founded_by(name, found.stream)
            query = self.coordinator.state.queries[name]
            if self._go_together(cohort, name):
                entry = Entry(self._number(), name, query.text, query.created, found)
                entries.setdefault(cohort, []).append(entry)
        for cohort, some in entries.items():
            self._enter(cohort, some)
            for entry in some:
                self.by_name[entry.name] = Member(
                    entry.id, entry.name, entry.text, entry.created, cohort
                )
                state = self.coordinator.state
                state.returned[entry.name] = state.queries[entry.name].was_member
                self.coordinator.hand_over(entry.name)

    def _founded_by(self, name: str, stream: str) -> str:
        """A cohort that has come as far as a query, which may be its first member."""
        coordinator = self.coordinator
        query, cohort = coordinator.state.queries[name], f"{self.kind}{stream}:{self._number()}"
        coordinator.state.queries[cohort] = query.as_far(query.text)
        plan = self._planned(stream, query.text)
        coordinator.replan(cohort, plan, QueryOptions())
        return cohort

    def _first(self, stream: str) -> str | None:
        """The cohort of a stream that others join."""
        running = (c for c, q in self.cohorts() if q.status == RUNNING)
        return next((c for c in running if stream_of(c) == stream), None)

    def _enter(self, cohort: str, entries: Sequence[Entry]) -> None:
        """Write lines into a cohort's roll."""
        query = self.coordinator.state.queries[cohort]
        name = self._file(stream_of(cohort))
        query.roll.append(write_roll(self.coordinator.storage, name, entries).to_json())
        for entry in entries:
            self._ask(cohort, entry.filter.rest)

    def _number(self) -> int:
        state = self.coordinator.state
        state.next_member += 1
        return state.next_member - 1

    def leave(self, name: str) -> Member:
        """Strike a member off."""
        member = self.by_name.pop(name)
        query = self.coordinator.state.queries.get(member.cohort)
        if query is None:
            return member  # it came just now
        query.struck.append(member.id)
        if sum(p[1] for p in query.roll) == len(query.struck):
            self._dissolve(member.cohort)
        elif len(query.struck) > MOST_STRUCK:
            self._rewrite(member.stream, query, query.roll)
        return member

    def _dissolve(self, cohort: str) -> None:
        """Nobody is left."""
        self._left.add(stream_of(cohort))
        self.coordinator.remove_query(cohort)
        self.coordinator.rest.pop(cohort, None)

    def dropped(self, name: str) -> None:
        """A query that is, or was, a member is gone for good."""
        state = self.coordinator.state
        if name in self.by_name:
            self.leave(name)
            self.coordinator.forget_outputs(name)
        was_member = state.queries[name].was_member if name in state.queries else []
        for _, stream, _ in (*was_member, *state.returned.pop(name, ())):
            self._left.add(stream)

    def _forget_results(self) -> None:
        """The results of a stream go with the last of those who were ever members."""
        left, self._left = self._left, set()
        if left:
            wanted = {stream_of(c) for c, _ in self.cohorts()}
            state = self.coordinator.state
            former = [*state.returned.values(), *(q.was_member for q in state.queries.values())]
            wanted |= {stream for some in former for _, stream, _ in some}
            for stream in left - wanted:
                self.coordinator.forget_outputs(self.outputs(stream))

    # -- upkeep ------------------------------------------------------------------------------

    def _unite(self) -> None:
        first: dict[str, str] = {}
        for cohort, query in self.cohorts():
            if query.status != RUNNING:
                continue
            main = first.setdefault(stream_of(cohort), cohort)
            if main != cohort and self._go_together(main, cohort):
                self._join(main, cohort)
        for cohort in first.values():
            query = self.coordinator.state.queries[cohort]
            if len(query.roll) > MOST_PACKS:
                smallest = sorted(query.roll, key=lambda p: int(p[1]))[:MOST_PACKS]
                self._rewrite(stream_of(cohort), query, smallest)

    def _go_together(self, main: str, other: str) -> bool:
        """Whether they have seen the same, as far as it matters from here on."""
        state = self.coordinator.state
        one, two = state.queries[main], state.queries[other]
        if one.behind or two.behind or one.frontier != two.frontier:
            return False
        plan = self.coordinator.plans[main]
        whole = all(coverage(plan, q).status == COMPLETE for q in (one, two))
        if not whole and one.begins != two.begins:
            return False  # their windows hold different rows
        since = max(one.first_seq, two.first_seq)
        streams = self.coordinator.plans[main].streams
        packs = [p for s in streams for p in state.streams[s].packs]
        same = one.first_seq == two.first_seq
        return same or all(p.max_ts < one.frontier for p in packs if p.seq < since)

    def _join(self, main: str, other: str) -> None:
        one, two = (self.coordinator.state.queries[c] for c in (main, other))
        one.roll += two.roll
        one.struck += two.struck
        two.roll, two.struck = [], []
        for key, count in two.counts.items():
            one.counts[key] = one.counts.get(key, 0) + count
        rest = self.coordinator.rest
        rest.setdefault(main, {}).update(rest.pop(other, {}))
        self.coordinator.remove_query(other)
        for member in self.by_name.values():
            if member.cohort == other:
                member.cohort = main

    def _rewrite(self, stream: str, query: QueryState, packs: list[list[object]]) -> None:
        """Some packs of a roll as one, without those struck off."""
        storage = self.coordinator.storage
        whole = pa.concat_tables([storage.read_table(str(p[0])) for p in packs])
        ids = whole.column(ID).to_pylist()
        struck = set(query.struck)
        kept = whole.take(pa.array([i for i, n in enumerate(ids) if n not in struck], pa.int64()))
        meta = write_rows(storage, self._file(stream), kept.combine_chunks())
        query.roll = [p for p in query.roll if p not in packs] + [meta.to_json()]
        query.struck = [n for n in query.struck if n not in set(ids)]
        for pack in packs:
            self.coordinator.drop_later(str(pack[0]))
