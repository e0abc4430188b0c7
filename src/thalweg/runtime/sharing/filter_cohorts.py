"""Cohorts: queries that only filter a stream are members of one shared query per stream.

A *cohort* is an internal query over the whole stream with a roll of members
(`exec/shared_filters`); it has a frontier, a past and a state like any other. Members that are
added at one boundary form a cohort of their own, which processes the past they need; when its
frontier reaches that of the stream's first cohort, the two are united. A member that is paused or
altered is detached as a query of its own; when that has reached the first cohort's frontier again,
and only filters, it is readmitted under a new number.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from thalweg.exec.shared_filters.member_roll import (
    CREATED,
    ID,
    NAME,
    REST,
    TEXT,
    Entry,
    write_roll,
    write_rows,
)
from thalweg.plan.bound_query import QueryOptions
from thalweg.plan.expr import Expr
from thalweg.plan.physical import QueryPlan
from thalweg.plan.sharing.shared_filter import StandingFilter
from thalweg.runtime.lifecycle.coverage import COMPLETE, coverage
from thalweg.runtime.lifecycle.plan_table import PlanTable
from thalweg.runtime.lifecycle.query_registry import QueryRegistry
from thalweg.runtime.state.engine_state import EngineState
from thalweg.runtime.state.internal_names import cohort_query, members_output
from thalweg.runtime.state.outputs import Outputs
from thalweg.runtime.state.pending_files import PendingFiles
from thalweg.runtime.state.query_state import Cohort, Definition, Described, QueryState, Sharing
from thalweg.store.storage import Storage

MOST_PACKS = 8
MOST_STRUCK = 1_000
CohortPlan = Callable[[str, str], QueryPlan]
"""From the subject of a cohort (a stream, or a join by its key) and a member's text to a plan."""
FilterOf = Callable[[str], StandingFilter | None]
"""The filter of the query with a text."""


@dataclass(slots=True)
class Member:
    """A row of a roll. `about` is a stream, or a join by its key; `cohort` the name of the query
    that runs it, once it is known."""

    id: int
    name: str
    text: str
    created: str
    about: str
    cohort: str = ""


def load_members(storage: Storage, state: EngineState, kind: str) -> dict[str, Member]:
    """The members of a kind on the rolls of a path, by name."""
    found: dict[str, Member] = {}
    for cohort, query in state.of_kind(kind):
        found |= {m.name: m for m in _members_of(storage, cohort, query)}
    return found


def _members_of(storage: Storage, cohort: str, query: QueryState) -> Iterator[Member]:
    struck, about = set(query.sharing.struck), about_of(query)
    for number, name, text, created in _lines(storage, query, ID, NAME, TEXT, CREATED):
        if number not in struck:
            yield Member(number, name, text, created, about, cohort)


def _lines(storage: Storage, query: QueryState, *columns: str) -> Iterator[tuple[Any, ...]]:
    for pack in query.sharing.roll:
        table = storage.read_table(pack[0])
        yield from zip(*(table.column(c).to_pylist() for c in columns), strict=True)


def about_of(query: QueryState) -> str:
    """The subject of a cohort: a stream, or a join by its key."""
    assert query.sharing.cohort is not None
    return query.sharing.cohort.about


def memberships(
    state: EngineState, member: Member, columns: Sequence[tuple[str, str]]
) -> tuple[Described, ...]:
    """The former memberships of a member, and the present one."""
    now = [member.id, member.about, [list(c) for c in columns]]
    return (*state.returned.get(member.name, ()), now)


@dataclass(slots=True)
class _Coming:
    """Members that are added at one boundary, to one stream, with the same `history`."""

    plan: QueryPlan
    entries: list[Entry] = field(default_factory=list)


class FilterCohorts:
    """All members of one kind by name. `cohort_plan` plans a cohort, `filter_of` returns a member's
    filter."""

    def __init__(
        self,
        kind: str,
        storage: Storage,
        state: EngineState,
        plans: PlanTable,
        registry: QueryRegistry,
        outputs: Outputs,
        files: PendingFiles,
        cohort_plan: CohortPlan,
        filter_of: FilterOf,
    ) -> None:
        self.kind = kind
        self._storage = storage
        self._state = state
        self._plans = plans
        self._registry = registry
        self._outputs = outputs
        self._files = files
        self._cohort_plan = cohort_plan
        self._filter_of = filter_of
        self._coming: dict[tuple[str, str | None], _Coming] = {}
        self._left: set[str] = set()
        self.by_name = load_members(storage, state, kind)

    def cohorts(self) -> list[tuple[str, QueryState]]:
        return self._state.of_kind(self.kind)

    def resume(self) -> None:
        """Resume the cohorts of an earlier run, once their streams are there."""
        for cohort, query in self.cohorts():
            if cohort not in self._plans:
                plan = self._cohort_plan(about_of(query), query.definition.text)
                self._registry.replan(cohort, plan, QueryOptions())
                self._ask_again(cohort, query)

    def _ask_again(self, cohort: str, query: QueryState) -> None:
        """The members' conditions beyond comparisons, from their texts; each once."""
        asked: set[str] = set()
        for text, rest in _lines(self._storage, query, TEXT, REST):
            if not asked.issuperset(rest):
                found = self._filter_of(text)
                assert found is not None
                self._ask(cohort, found.rest)
                asked.update(rest)

    # -- adding and removing members ---------------------------------------------------------

    def admit(self, name: str, text: str, found: StandingFilter, history: str | None) -> Member:
        """Add a query. It is on the roll with the next commit."""
        key = (found.stream, history)
        if key not in self._coming:
            self._coming[key] = _Coming(self._cohort_plan(found.stream, text))
        number = self._number()
        self._coming[key].entries.append(Entry(number, name, text, text, found))
        member = self.by_name[name] = Member(number, name, text, text, found.stream)
        return member

    def settle(self) -> None:
        """Write new members into rolls; unite cohorts with equal frontiers."""
        coming, self._coming = self._coming, {}
        for (about, history), one in coming.items():
            entries = [e for e in one.entries if e.name in self.by_name]
            if entries:
                self._found(about, history, one.plan, entries)
        self._unite()
        self._forget_results()

    def _found(
        self, about: str, history: str | None, plan: QueryPlan, entries: list[Entry]
    ) -> None:
        """Make a cohort of members that were added together."""
        cohort = Cohort(about, entries[0].id)
        name = cohort_query(self.kind, about, cohort.number)
        text = entries[0].text
        definition = Definition(text, created=text, kind=self.kind)
        options = QueryOptions(history=history)
        self._registry.add(name, definition, plan, options, Sharing(cohort=cohort))
        self._enter(name, entries)
        for entry in entries:
            self.by_name[entry.name].cohort = name

    def _file(self, about: str) -> str:
        output = members_output(self.kind, about)
        return f"q/{output}-{self._state.epoch + 1}-{uuid.uuid4().hex[:12]}.arrow"

    def _ask(self, cohort: str, rest: Iterable[Expr]) -> None:
        self._plans.residuals.setdefault(cohort, {}).update({str(e): e for e in rest})

    def take_back(self, coming: Iterable[tuple[str, StandingFilter]]) -> None:
        """Readmit former members to the first cohort of their stream."""
        entries: dict[str, list[Entry]] = {}
        for name, found in coming:
            cohort = self._first(found.stream) or self._founded_by(name, found.stream)
            if self._go_together(cohort, name):
                said = self._state.queries[name].definition
                entry = Entry(self._number(), name, said.text, said.created, found)
                entries.setdefault(cohort, []).append(entry)
        for cohort, some in entries.items():
            self._enter(cohort, some)
            for entry in some:
                self.by_name[entry.name] = Member(
                    entry.id, entry.name, entry.text, entry.created, entry.filter.stream, cohort
                )
                query = self._state.queries[entry.name]
                self._state.returned[entry.name] = query.sharing.was_member
                self._registry.hand_over(entry.name)

    def _founded_by(self, name: str, about: str) -> str:
        """A cohort with the frontier of a query, which may be its first member."""
        query, number = self._state.queries[name], self._number()
        text, cohort = query.definition.text, cohort_query(self.kind, about, number)
        own = query.as_far(Definition(text, created=text, kind=self.kind))
        own.sharing = Sharing(cohort=Cohort(about, number))
        self._state.queries[cohort] = own
        self._registry.replan(cohort, self._cohort_plan(about, text), QueryOptions())
        return cohort

    def _first(self, about: str) -> str | None:
        """The cohort of a stream that others join."""
        running = (c for c, q in self.cohorts() if q.runs and about_of(q) == about)
        return next(running, None)

    def _enter(self, cohort: str, entries: Sequence[Entry]) -> None:
        """Add rows to a cohort's roll."""
        query = self._state.queries[cohort]
        pack = write_roll(self._storage, self._file(about_of(query)), entries)
        query.sharing = replace(query.sharing, roll=(*query.sharing.roll, pack.to_json()))
        for entry in entries:
            self._ask(cohort, entry.filter.rest)

    def _number(self) -> int:
        self._state.next_member += 1
        return self._state.next_member - 1

    def leave(self, name: str) -> Member:
        """Remove a member."""
        member = self.by_name.pop(name)
        query = self._state.queries.get(member.cohort)
        if query is None:
            return member  # it was added since the last commit
        query.sharing = replace(query.sharing, struck=(*query.sharing.struck, member.id))
        struck, roll = query.sharing.struck, query.sharing.roll
        if sum(p[1] for p in roll) == len(struck):
            self._dissolve(member.cohort, member.about)
        elif len(struck) > MOST_STRUCK:
            self._rewrite(query, roll)
        return member

    def _dissolve(self, cohort: str, about: str) -> None:
        """Drop a cohort without members."""
        self._left.add(about)
        self._registry.remove(cohort)
        self._plans.residuals.pop(cohort, None)

    def dropped(self, name: str) -> None:
        """Forget a query for good that is, or was, a member."""
        state = self._state
        if name in self.by_name:
            self.leave(name)
            self._outputs.forget(name)
        was_member = state.queries[name].sharing.was_member if name in state.queries else ()
        for _, about, _ in (*was_member, *state.returned.pop(name, ())):
            self._left.add(about)

    def _forget_results(self) -> None:
        """Drop the results of a stream with the last of its former members."""
        left, self._left = self._left, set()
        if left:
            wanted = {about_of(q) for _, q in self.cohorts()}
            state = self._state
            former = [
                *state.returned.values(), *(q.sharing.was_member for q in state.queries.values())
            ]  # fmt: skip
            wanted |= {about for some in former for _, about, _ in some}
            for about in left - wanted:
                self._outputs.forget(members_output(self.kind, about))

    # -- upkeep ------------------------------------------------------------------------------

    def _unite(self) -> None:
        first: dict[str, str] = {}
        for cohort, query in self.cohorts():
            if not query.runs:
                continue
            main = first.setdefault(about_of(query), cohort)
            if main != cohort and self._go_together(main, cohort):
                self._join(main, cohort)
        for cohort in first.values():
            query = self._state.queries[cohort]
            roll = query.sharing.roll
            if len(roll) > MOST_PACKS:
                self._rewrite(query, sorted(roll, key=lambda p: int(p[1]))[:MOST_PACKS])

    def _go_together(self, main: str, other: str) -> bool:
        """Whether two cohorts have processed the same rows, as far as it matters from here on."""
        one, two = self._state.queries[main], self._state.queries[other]
        if one.progress.behind or two.progress.behind:
            return False
        if one.progress.frontier != two.progress.frontier:
            return False
        plan = self._plans[main]
        whole = all(coverage(plan, q).status == COMPLETE for q in (one, two))
        if not whole and one.history.begins != two.history.begins:
            return False  # their windows hold different rows
        since = max(one.history.first_seq, two.history.first_seq)
        packs = [p for s in plan.streams for p in self._state.streams[s].packs]
        same = one.history.first_seq == two.history.first_seq
        return same or all(p.max_ts < one.progress.frontier for p in packs if p.seq < since)

    def _join(self, main: str, other: str) -> None:
        one, two = (self._state.queries[c] for c in (main, other))
        one.sharing = replace(
            one.sharing,
            roll=(*one.sharing.roll, *two.sharing.roll),
            struck=(*one.sharing.struck, *two.sharing.struck),
        )
        two.sharing = replace(two.sharing, roll=(), struck=())
        counts = Counter(one.operators.counts)
        counts.update(two.operators.counts)
        one.operators = replace(one.operators, counts=dict(counts))
        residuals = self._plans.residuals
        residuals.setdefault(main, {}).update(residuals.pop(other, {}))
        self._registry.remove(other)
        for member in self.by_name.values():
            if member.cohort == other:
                member.cohort = main

    def _rewrite(self, query: QueryState, packs: Sequence[Described]) -> None:
        """Merge some packs of a roll, leaving out members marked as deleted."""
        whole = pa.concat_tables([self._storage.read_table(p[0]) for p in packs])
        ids = whole.column(ID).to_pylist()
        struck, listed = set(query.sharing.struck), set(ids)
        kept = whole.take(pa.array([i for i, n in enumerate(ids) if n not in struck], pa.int64()))
        name = self._file(about_of(query))
        meta = write_rows(self._storage, name, kept.combine_chunks())
        left = [p for p in query.sharing.roll if p not in packs]
        query.sharing = replace(
            query.sharing,
            roll=(*left, meta.to_json()),
            struck=tuple(n for n in query.sharing.struck if n not in listed),
        )
        self._files.drop(p[0] for p in packs)
