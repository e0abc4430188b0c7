"""What queries have put out, from what is committed: results, current answers, rejects."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from thalweg.errors import ConfigError
from thalweg.exec.shared_filters.member_sets import wanted_by
from thalweg.exec.upkeep.gather_output import Readable, of_epochs, rows_of
from thalweg.instants import format_instant
from thalweg.plan.logical import EmitKind
from thalweg.runtime.planner import output_schema
from thalweg.runtime.results.committed_state import CommittedQuery, metas
from thalweg.runtime.results.current_answer import Answer, instant_asked
from thalweg.runtime.results.lookup import Membership, QueryLookup
from thalweg.runtime.results.newest_commit import NewestCommit
from thalweg.runtime.state.engine_state import EngineState
from thalweg.runtime.state.internal_names import members_output
from thalweg.runtime.state.output_keys import keys_of, last_epoch_of
from thalweg.runtime.state.query_state import FILTERS
from thalweg.store.manifest import State
from thalweg.store.packs import TIME, PackMeta, with_times
from thalweg.store.storage import Storage


class ResultsReader:
    """Reads from one commit, whatever is committed meanwhile."""

    def __init__(
        self, storage: Storage, committed: Callable[[], State], queries: QueryLookup
    ) -> None:
        self._storage = storage
        self._committed = committed
        self._queries = queries

    def results(self, name: str, after: int = 0) -> pa.Table:
        """Everything a query has emitted, in epochs after that one, and that is still kept."""
        for commit in self._commits():
            with commit:
                return self._results(commit, name, after)
        raise AssertionError

    def answer(self, name: str, at: int | None = None) -> Answer:
        """What a relation's changes up to an instant add up to (None: all that is committed)."""
        kind = self._queries.bound(name).root.kind
        if kind is not EmitKind.RELATION:
            raise ConfigError(
                f"query {name} emits {kind.value}: it has no current answer",
                remedy=f"register it without {kind.value}; results() has what it emitted",
            )
        for commit in self._commits():
            with commit:
                return self._answer(commit, name, at)
        raise AssertionError

    def rejects_of_query(self, name: str) -> pa.Table:
        """Rows a query could not judge, with the reason."""
        for commit in self._commits():
            with commit:
                return _together(commit, commit.state.rejects_of_query(name))
        raise AssertionError

    def rejects_of_stream(self, name: str) -> pa.Table:
        """Rows of a stream that were late, had no time, or lay too far ahead, with the reason."""
        for commit in self._commits():
            with commit:
                return _together(commit, commit.state.rejects_of_stream(name))
        raise AssertionError

    def in_slot(self, name: str, slot: str) -> list[pa.Table]:
        """The rows that a query keeps in a slot of its state."""
        for commit in self._commits():
            with commit:
                query = commit.state.query(name)
                return [] if query is None else [commit.read_table(p) for p in query.packs_in(slot)]
        raise AssertionError

    def _commits(self) -> Iterator[NewestCommit]:
        return NewestCommit(self._storage, self._committed).attempts()

    # -- from one commit ---------------------------------------------------------------------

    def _results(self, commit: NewestCommit, name: str, after: int = 0) -> pa.Table:
        schema = output_schema(self._queries.bound(name))
        memberships = self._queries.memberships(name)
        parts = [_as_member(commit, one, schema, after) for one in memberships]
        own = commit.state.output(name, after)
        parts.append([output_table(commit, schema, packs, after) for packs in own])
        whole = pa.concat_tables([schema.empty_table(), *(t for part in parts for t in part)])
        # a query that left its cohort and came back has put out in turns
        return whole.sort_by([(TIME, "ascending")]) if len(memberships) > 1 else whole

    def _answer(self, commit: NewestCommit, name: str, at: int | None) -> Answer:
        """What is folded into the base leaves the results."""
        query = commit.state.query(name)
        at = _end_of_data(query) if at is None else _instant(name, query, at)
        answer = Answer(output_schema(self._queries.bound(name)))
        for pack in () if query is None else query.base:
            answer.add(commit.read_table(pack[0]))
        changes = self._results(commit, name)
        if at is not None:
            limit = pa.scalar(at, pa.int64()).cast(pa.timestamp("us", "UTC"))
            changes = changes.filter(pc.less_equal(changes.column(TIME), limit))
        answer.apply(changes)
        return answer


def _end_of_data(query: CommittedQuery | None) -> int | None:
    """The instant that counts as now after a final run, which has emptied the windows."""
    if query is None or query.ended is None:
        return None
    return max(query.ended - 1, query.base_until)


def _instant(name: str, query: CommittedQuery | None, at: int) -> int:
    """The instant that is asked for, or a refusal if it is not over or no longer known."""
    if query is None:
        return at
    instant = instant_asked(name, query.frontier - 1, at)
    if instant < query.base_until:
        raise ConfigError(
            f"the answer of {name} at that time is no longer known",
            remedy=f"ask for {format_instant(query.base_until)} or later "
            "(results_retain says how long results are kept)",
        )
    return instant


def answer_before(
    storage: Storage, state: EngineState, schema: pa.Schema, name: str, epoch: int
) -> Answer:
    """The answer without the changes of an epoch and of later ones."""
    answer = Answer(schema)
    for pack in state.queries[name].output.base:
        answer.add(storage.read_table(pack[0]))
    for key in keys_of(state.outputs, name):
        if last_epoch_of(key) < epoch:
            answer.apply(output_table(storage, schema, metas(state.outputs[key])))
    return answer


def output_table(
    files: Readable, schema: pa.Schema, packs: Sequence[PackMeta], after: int = 0
) -> pa.Table:
    """The output of an epoch, or of several that have been gathered, in time order."""
    found = of_epochs(rows_of(files, packs), after + 1)
    return with_times(found).select(schema.names).cast(schema)


def _as_member(
    commit: NewestCommit, membership: Membership, schema: pa.Schema, after: int
) -> list[pa.Table]:
    """What a query got together with others."""
    number, about, columns = membership
    tables = []
    for packs in commit.state.output(members_output(FILTERS, about), after):
        found = []
        for pack in packs:
            table = of_epochs(commit.read_table(pack.name), after + 1)
            rows = wanted_by(table, number)
            if len(rows):
                found.append(table.select([*{c for _, c in columns}, TIME]).take(pa.array(rows)))
        if found:
            tables.append(_projected(pa.concat_tables(found), columns, schema))
    return tables


def _projected(table: pa.Table, columns: Sequence[tuple[str, str]], schema: pa.Schema) -> pa.Table:
    """Rows of a shared result as one query gives them: only now are its columns picked."""
    stamped = with_times(table.sort_by([(TIME, "ascending")]))
    picked = {name: stamped.column(column) for name, column in columns}
    return pa.table({**picked, TIME: stamped.column(TIME)}).cast(schema)


def _together(commit: NewestCommit, packs: Sequence[PackMeta]) -> pa.Table:
    tables = [commit.read_table(p.name) for p in packs]
    if not tables:
        return pa.table({TIME: pa.array([], pa.timestamp("us", "UTC"))})
    return with_times(pa.concat_tables(tables, promote_options="default"))
