"""The answer of a query at an instant, from what is kept of it.

By its mode that is the answer itself (`c`), rows that its condition has let through (`p`), or rows
of the streams (`none`). Files may go while they are read: then a newer state is committed, and the
caller asks again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from thalweg.errors import ConfigError
from thalweg.plan.logical import TimeWindow
from thalweg.plan.pairs import judged_plan, pairs_of
from thalweg.plan.physical import Leaf, QueryPlan
from thalweg.plan.query import BoundQuery
from thalweg.plan.snapshots import picked_columns, snapshot_plan, windows_of
from thalweg.plan.types import to_arrow
from thalweg.runtime.invoke.range_aggregates import Ranked, is_ranked
from thalweg.runtime.invoke.row_fetch import Answering, bounds, columns_of
from thalweg.runtime.results.current_answer import Answer, instant_asked
from thalweg.runtime.results.results_reader import metas, output_schema, put_out
from thalweg.runtime.sharing.dormant_queries import committed_query
from thalweg.runtime.sharing.filter_cohorts import Member, Members
from thalweg.runtime.state.engine_state import C, P
from thalweg.store.manifest import State
from thalweg.store.packs import PackMeta

if TYPE_CHECKING:
    from thalweg.runtime.session.query_handle import Query
    from thalweg.runtime.session.session import Session


class NotThere(RuntimeError):
    """What an answer is made from has changed, or is not committed yet: ask again."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A query over what its windows hold at an instant: where it only picks columns of rows, which
    ones. Rows may have been asked its `condition` (a member's name); of a join these are
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


class Snapshots:
    """Answers from what is committed. `members` are the conditions that rows were asked."""

    def __init__(self, session: Session, members: Members) -> None:
        self.session = session
        self.coordinator = session.coordinator
        self.members = members
        self.answering = Answering(session.storage)
        self.ranked = Ranked()
        self.treed = True
        """Whether aggregates without groups are answered by trees."""
        self._known: dict[str, tuple[str, Snapshot]] = {}
        self._packs: dict[str, tuple[int, list[PackMeta]]] = {}

    def forget(self, name: str) -> None:
        """A query has gone, or has another text."""
        self._known.pop(name, None)

    def answer(self, name: str, at: int | None) -> pa.Table:
        """From one committed state, whatever is committed meanwhile."""
        committed = self.coordinator.committed
        described = committed_query(committed, name)
        if described is None:
            raise NotThere(name)
        if described["mode"] == C:
            return self._kept(described, name, at)
        return self._fetched(committed, described, name, at)

    def _kept(self, described: Mapping[str, Any], name: str, at: int | None) -> pa.Table:
        """The answer that is kept up to date."""
        if at is not None:
            raise ConfigError(
                f"of {name} only the current answer is kept",
                remedy="say materialize = 'p' or 'none' for answers at other times",
            )
        if described["behind"]:
            raise ConfigError(
                f"the answer of {name} is not made yet, and it is paused",
                remedy=f"RESUME QUERY {name} first",
            )
        answer = Answer(self.session.queries[name].schema)
        for pack in described["filling"]:
            answer.add(self.answering.cache.open(pack[0]).table)
        return answer.rows()

    def _fetched(
        self, committed: State, described: Mapping[str, Any], name: str, at: int | None
    ) -> pa.Table:
        """The answer over rows that are looked up now."""
        instant = instant_asked(name, described["frontier"] - 1, at)
        condition = described["condition"] if described["mode"] == P else ""
        asked = self._snapshot(self.session.queries[name], condition)
        if condition and self.treed and is_ranked(asked.plan):
            return asked.of(self._ranked(committed, asked, instant, described["frontier"]))
        if asked.times is not None:
            tables = [self._combinations(committed, asked, asked.times, instant)]
        else:
            tables = [self._held(committed, asked, leaf, instant) for leaf in asked.plan.leaves]
        if asked.picked is None:
            found = self.answering.evaluate(asked.plan, tables, self.coordinator.functions)
            return asked.of(found)
        rows = tables[0].select(asked.picked).rename_columns(asked.schema.names)
        return rows if rows.schema == asked.schema else rows.cast(asked.schema)

    def _snapshot(self, query: Query, condition: str) -> Snapshot:
        text, known = self._known.get(query.name, ("", None))
        if known is None or text != query.text or known.condition != condition:
            bound, catalog, judged = query.bound, self.session.catalog, bool(condition)
            found = pairs_of(bound, catalog) if judged and len(bound.scans) > 1 else None
            made = None if found is None else judged_plan(bound, catalog)
            plan = made or snapshot_plan(bound, catalog, judged)
            known = Snapshot(
                bound, plan, windows_of(bound), Answer(output_schema(bound)).schema,
                picked_columns(plan), condition, None if found is None else found.times,
            )  # fmt: skip
            self._known[query.name] = (query.text, known)
        return known

    def _condition(self, committed: State, asked: Snapshot) -> Member:
        """Who stands for its condition, if what it has let through is all there."""
        member = self.members.by_name.get(asked.condition)
        cohort = None if member is None else committed["queries"].get(member.cohort)
        if member is None or cohort is None or cohort["behind"]:
            raise NotThere(asked.condition)
        return member

    # -- rows --------------------------------------------------------------------------------

    def _held(self, committed: State, asked: Snapshot, leaf: Leaf, instant: int) -> pa.Table:
        """What a table holds, or a window at an instant."""
        if leaf.alias not in asked.windows:
            return _together(leaf, list(self._table(committed, leaf)))
        return _together(leaf, list(self._within(committed, asked, leaf, instant)))

    def _table(self, committed: State, leaf: Leaf) -> Iterator[pa.Table]:
        for pack in metas(committed["tables"][leaf.relation]):
            yield self.session.storage.read_table(pack.name).select(columns_of(leaf))

    def _within(
        self, committed: State, asked: Snapshot, leaf: Leaf, instant: int
    ) -> Iterator[pa.Table]:
        stream = committed["streams"][leaf.relation]
        low, high = bounds(asked.windows[leaf.alias], instant)
        low, columns = max(low, stream["kept_since"]), columns_of(leaf)
        if not asked.condition:
            return self.answering.rows_between(metas(stream["packs"]), columns, low, high)
        number = self._condition(committed, asked).id
        packs = self._passed(committed, leaf.relation)
        return self.answering.rows_wanted(packs, number, columns, low, high)

    def _passed(self, committed: State, about: str) -> list[PackMeta]:
        """What conditions on a stream, or on a join, have let through."""
        epoch = committed["epoch"]
        known = self._packs.get(about)
        if known is None or known[0] != epoch:
            found = put_out(committed, self.members.outputs(about))
            known = self._packs[about] = (epoch, [m for packs in found for m in packs])
        return known[1]

    def _combinations(
        self,
        committed: State,
        asked: Snapshot,
        times: Mapping[str, tuple[str, int]],
        instant: int,
    ) -> pa.Table:
        """What a join has let through: combinations all of whose rows lie in their windows."""
        leaf, member = asked.plan.leaves[0], self._condition(committed, asked)
        columns = columns_of(leaf)
        streams = {s.alias: s.relation for s in asked.bound.scans}
        within: dict[str, tuple[int, int]] = {}
        for alias in times:
            low, high = bounds(asked.windows[alias], instant)
            kept = committed["streams"][streams[alias]]["kept_since"]
            within[alias] = max(low, kept), high
        # a combination comes with the last of its rows: no sooner than any window begins
        since = max(low for low, _ in within.values())
        packs = self._passed(committed, member.stream)
        rows = self.answering.rows_wanted(packs, member.id, columns, since, instant + 1)
        table = _together(leaf, list(rows))
        inside = np.ones(table.num_rows, np.bool_)
        for alias, (column, unit) in times.items():
            at = table.column(column).cast(pa.int64()).to_numpy() * unit
            low, high = within[alias]
            inside &= (at >= low) & (at < high)
        return table if inside.all() else table.filter(pa.array(inside))

    def _ranked(self, committed: State, asked: Snapshot, instant: int, until: int) -> pa.Table:
        """By the trees of its condition, which knows all rows up to an instant."""
        leaf, member = asked.plan.leaves[0], self._condition(committed, asked)
        low, high = bounds(asked.windows[leaf.alias], instant)
        kept = committed["streams"][leaf.relation]["kept_since"]
        until = min(until, committed["queries"][member.cohort]["frontier"])

        def fetch(columns: list[str], since: int) -> pa.Table | None:
            packs = self._passed(committed, leaf.relation)
            found = list(self.answering.rows_wanted(packs, member.id, columns, since, until))
            return pa.concat_tables(found) if found else None

        known = (kept, until)
        return self.ranked.answer(asked.plan, member.name, fetch, known, max(low, kept), high)


def _together(leaf: Leaf, tables: list[pa.Table]) -> pa.Table:
    if tables:
        return pa.concat_tables(tables)
    fields = [(leaf.bare(f.name), to_arrow(f.type)) for f in leaf.fields]
    return pa.schema(fields).empty_table()
