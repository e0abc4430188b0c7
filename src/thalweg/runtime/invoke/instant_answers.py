"""The answer of a query at an instant, from its stored state.

By the query's mode that is the answer itself (`c`), rows that its condition has accepted (`p`), or
rows of the streams (`none`). Files may be deleted while they are read: then a newer state is
committed, and the caller tries again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from thalweg.errors import ConfigError
from thalweg.exec.expressions.evaluate import UserFunction
from thalweg.plan.bound_query import BoundQuery
from thalweg.plan.catalog import Catalog
from thalweg.plan.instant_plan import picked_columns, snapshot_plan, windows_of
from thalweg.plan.leaf import Leaf
from thalweg.plan.physical import QueryPlan
from thalweg.plan.sharing.shared_join import judged_plan, pairs_of
from thalweg.plan.types import to_arrow
from thalweg.runtime.invoke.range_aggregates import RangeAggregates, is_ranked
from thalweg.runtime.invoke.row_fetch import RowFetch, columns_of
from thalweg.runtime.planner import output_schema
from thalweg.runtime.results.committed_state import CommittedQuery, CommittedState
from thalweg.runtime.results.current_answer import Answer, instant_asked
from thalweg.runtime.results.lookup import QueryLookup
from thalweg.runtime.results.read_stable import NotThere
from thalweg.runtime.sharing.filter_cohorts import Member
from thalweg.runtime.state.internal_names import members_output
from thalweg.runtime.state.query_state import CONDITIONS, C, P
from thalweg.store.packs import PackMeta
from thalweg.store.storage import Storage
from thalweg.windows.protocol import TimeWindow


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A query over the content of its windows at an instant: where it only projects columns of
    rows, which ones. Rows may have passed its `condition` (a member's name); of a join these are
    combinations, with the `times` of their parts."""

    bound: BoundQuery
    plan: QueryPlan
    windows: dict[str, TimeWindow]
    schema: pa.Schema
    picked: list[str] | None
    condition: str
    times: Mapping[str, tuple[str, int]] | None = None

    def of(self, rows: pa.Table | None) -> pa.Table:
        """Rows under the names and types of the answer."""
        if rows is None:
            return self.schema.empty_table()
        return rows.select(self.schema.names).cast(self.schema)


class InstantAnswers:
    """Answers from committed state. `conditions` are those already evaluated on rows, by name."""

    def __init__(
        self,
        storage: Storage,
        committed: Callable[[], CommittedState],
        queries: QueryLookup,
        conditions: Mapping[str, Member],
        catalog: Catalog,
        functions: Mapping[str, UserFunction],
    ) -> None:
        self._storage = storage
        self._committed = committed
        self._queries = queries
        self._conditions = conditions
        self._catalog = catalog
        self._functions = functions
        self._lock = threading.Lock()  # trees and open packs are shared by all callers
        self.fetching = RowFetch(storage)
        self.ranked = RangeAggregates()
        self.uses_trees = True
        """Whether aggregates without groups are computed by trees."""
        self._known: dict[str, tuple[str, Snapshot]] = {}
        self._packs: dict[str, tuple[int, list[PackMeta]]] = {}

    def forget(self, name: str) -> None:
        """Forget a query that was dropped, or has another text."""
        with self._lock:
            self._known.pop(name, None)

    def forget_condition(self, condition: str) -> None:
        """Forget a condition that no query has any more."""
        with self._lock:
            self.ranked.forget(condition)

    def answer(self, name: str, at: int | None) -> pa.Table:
        """The answer from one committed state, whatever is committed meanwhile."""
        with self._lock:
            committed = self._committed()
            query = committed.query(name)
            if query is None:
                raise NotThere(name)
            if query.mode == C:
                return self._kept(query, name, at)
            return self._fetched(committed, query, name, at)

    def _kept(self, query: CommittedQuery, name: str, at: int | None) -> pa.Table:
        """The answer of mode `c`, which is kept up to date."""
        if at is not None:
            raise ConfigError(
                f"of {name} only the current answer is kept",
                remedy="say materialize = 'p' or 'none' for answers at other times",
            )
        if query.behind:
            raise ConfigError(
                f"the answer of {name} is not made yet, and it is paused",
                remedy=f"RESUME QUERY {name} first",
            )
        answer = Answer(output_schema(self._queries.bound(name)))
        for pack in query.pending:
            answer.add(self.fetching.cache.open(pack[0]).table)
        return answer.rows()

    def _fetched(
        self, committed: CommittedState, query: CommittedQuery, name: str, at: int | None
    ) -> pa.Table:
        """The answer over rows that are fetched now."""
        instant = instant_asked(name, query.frontier - 1, at)
        condition = query.condition if query.mode == P else ""
        asked = self._snapshot(name, condition)
        if condition and self.uses_trees and is_ranked(asked.plan):
            return asked.of(self._ranked(committed, asked, instant, query.frontier))
        if asked.times is not None:
            tables = [self._combinations(committed, asked, asked.times, instant)]
        else:
            tables = [self._held(committed, asked, leaf, instant) for leaf in asked.plan.leaves]
        if asked.picked is None:
            return asked.of(self.fetching.evaluate(asked.plan, tables, self._functions))
        rows = tables[0].select(asked.picked).rename_columns(asked.schema.names)
        return rows if rows.schema == asked.schema else rows.cast(asked.schema)

    def _snapshot(self, name: str, condition: str) -> Snapshot:
        text, known = self._known.get(name, ("", None))
        said = self._queries.text(name)
        if known is None or text != said or known.condition != condition:
            bound, catalog, judged = self._queries.bound(name), self._catalog, bool(condition)
            found = pairs_of(bound, catalog) if judged and len(bound.scans) > 1 else None
            made = None if found is None else judged_plan(bound, catalog)
            plan = made or snapshot_plan(bound, catalog, judged)
            known = Snapshot(
                bound, plan, windows_of(bound), Answer(output_schema(bound)).schema,
                picked_columns(plan), condition, None if found is None else found.times,
            )  # fmt: skip
            self._known[name] = (said, known)
        return known

    def _condition(self, committed: CommittedState, asked: Snapshot) -> Member:
        """The member that stands for its condition, if all rows it matched are there."""
        member = self._conditions.get(asked.condition)
        cohort = None if member is None else committed.query(member.cohort)
        if member is None or cohort is None or cohort.behind:
            raise NotThere(asked.condition)
        return member

    # -- rows --------------------------------------------------------------------------------

    def _held(
        self, committed: CommittedState, asked: Snapshot, leaf: Leaf, instant: int
    ) -> pa.Table:
        """The content of a table, or of a window at an instant."""
        if leaf.alias not in asked.windows:
            return _together(leaf, list(self._table(committed, leaf)))
        return _together(leaf, list(self._within(committed, asked, leaf, instant)))

    def _table(self, committed: CommittedState, leaf: Leaf) -> Iterator[pa.Table]:
        for pack in committed.table(leaf.relation):
            yield self._storage.read_table(pack.name).select(columns_of(leaf))

    def _within(
        self, committed: CommittedState, asked: Snapshot, leaf: Leaf, instant: int
    ) -> Iterator[pa.Table]:
        low, high = asked.windows[leaf.alias].alive_at(instant)
        low, columns = max(low, committed.kept_since(leaf.relation)), columns_of(leaf)
        if not asked.condition:
            packs = committed.stream_packs(leaf.relation)
            return self.fetching.rows_between(packs, columns, low, high)
        number = self._condition(committed, asked).id
        packs = self._matched(committed, leaf.relation)
        return self.fetching.rows_wanted(packs, number, columns, low, high)

    def _matched(self, committed: CommittedState, about: str) -> list[PackMeta]:
        """The rows that conditions on a stream, or on a join, have accepted."""
        epoch = committed.epoch
        known = self._packs.get(about)
        if known is None or known[0] != epoch:
            found = committed.output(members_output(CONDITIONS, about))
            known = self._packs[about] = (epoch, [m for packs in found for m in packs])
        return known[1]

    def _combinations(
        self,
        committed: CommittedState,
        asked: Snapshot,
        times: Mapping[str, tuple[str, int]],
        instant: int,
    ) -> pa.Table:
        """Combinations that a join matched, those with all rows in their windows."""
        leaf, member = asked.plan.leaves[0], self._condition(committed, asked)
        columns = columns_of(leaf)
        streams = {s.alias: s.relation for s in asked.bound.scans}
        within: dict[str, tuple[int, int]] = {}
        for alias in times:
            low, high = asked.windows[alias].alive_at(instant)
            within[alias] = max(low, committed.kept_since(streams[alias])), high
        # a combination has the time of its last row: no sooner than any window begins
        since = max(low for low, _ in within.values())
        packs = self._matched(committed, member.about)
        rows = self.fetching.rows_wanted(packs, member.id, columns, since, instant + 1)
        table = _together(leaf, list(rows))
        inside = np.ones(table.num_rows, np.bool_)
        for alias, (column, unit) in times.items():
            at = table.column(column).cast(pa.int64()).to_numpy() * unit
            low, high = within[alias]
            inside &= (at >= low) & (at < high)
        return table if inside.all() else table.filter(pa.array(inside))

    def _ranked(
        self, committed: CommittedState, asked: Snapshot, instant: int, until: int
    ) -> pa.Table:
        """The answer by the trees of its condition, which has all rows up to an instant."""
        leaf, member = asked.plan.leaves[0], self._condition(committed, asked)
        low, high = asked.windows[leaf.alias].alive_at(instant)
        kept, cohort = committed.kept_since(leaf.relation), committed.query(member.cohort)
        assert cohort is not None
        until = min(until, cohort.frontier)

        def fetch(columns: list[str], since: int) -> pa.Table | None:
            packs = self._matched(committed, leaf.relation)
            found = list(self.fetching.rows_wanted(packs, member.id, columns, since, until))
            return pa.concat_tables(found) if found else None

        known = (kept, until)
        return self.ranked.answer(asked.plan, member.name, fetch, known, max(low, kept), high)


def _together(leaf: Leaf, tables: list[pa.Table]) -> pa.Table:
    if tables:
        return pa.concat_tables(tables)
    fields = [(leaf.bare(f.name), to_arrow(f.type)) for f in leaf.fields]
    return pa.schema(fields).empty_table()
