"""A query's committed results as others see them: by path and name, epoch by epoch.

Nothing here needs the engine that wrote them to be alive, or to be in this process.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from thalweg.errors import ConfigError, UnknownName, did_you_mean
from thalweg.exec.shared_filters.member_roll import NAME
from thalweg.exec.upkeep.gather_output import of_epochs, rows_of
from thalweg.runtime.results.described_schema import read_schema
from thalweg.runtime.results.read_stable import read_stable
from thalweg.runtime.state.engine_state import EngineState
from thalweg.runtime.state.open_path import committed_state
from thalweg.runtime.state.output_keys import epochs_of, keys_of
from thalweg.runtime.state.query_state import QueryState
from thalweg.store.packs import PackMeta, with_times
from thalweg.store.storage import Storage


@dataclass(frozen=True, slots=True)
class Results:
    """The results of one query on one path."""

    storage: Storage
    query: str

    def schema(self) -> pa.Schema:
        """The columns, `__ts`, and `__sign` for relations."""
        return read_schema(self._state()[1].definition.schema)

    def last_epoch(self) -> int:
        return self._state()[0].epoch

    def forgotten(self) -> int:
        """The last epoch whose output is kept no longer."""
        return self._state()[1].output.forgotten

    def spans(self, after: int, until: int) -> list[tuple[int, int]]:
        """Epochs after one and up to another that have output, in order: first and last of those
        that lie together."""
        state, query = self._state()
        self._refuse_forgotten(query, after + 1)
        known = map(epochs_of, keys_of(state.outputs, self.query))
        found = [(max(first, after + 1), min(last, until)) for first, last in known]
        return [(first, last) for first, last in found if first <= last]

    def rows(self, first: int, last: int) -> pa.Table:
        """The output of these epochs, wherever it lies by now."""

        def read() -> pa.Table:
            state, query = self._state()
            self._refuse_forgotten(query, first)
            outputs, schema = state.outputs, read_schema(query.definition.schema)
            tables = [schema.empty_table()]
            for key in keys_of(outputs, self.query):
                begin, end = epochs_of(key)
                if begin <= last and end >= first:
                    packs = [PackMeta.from_json(p) for p in outputs[key]]
                    found = with_times(of_epochs(rows_of(self.storage, packs), first, last))
                    tables.append(found.select(schema.names).cast(schema))
            return pa.concat_tables(tables)

        return read_stable(read)

    def _refuse_forgotten(self, query: QueryState, first: int) -> None:
        if first <= query.output.forgotten:
            raise ConfigError(
                f"results of {self.query} up to epoch {query.output.forgotten} are kept no longer, "
                f"they are wanted from epoch {first} on",
                remedy="start afresh, or keep results longer (results_retain)",
            )

    def _state(self) -> tuple[EngineState, QueryState]:
        state = read_stable(lambda: committed_state(self.storage))
        known = state.known(self.query)
        if known is not None and known.definition.mode:
            raise ConfigError(
                f"query {self.query} answers when it is invoked and puts nothing out",
                remedy="follow a query without materialize",
            )
        if known is None:
            self._refuse_member(state)
            raise UnknownName(
                f"there is no query {self.query} on this path",
                remedy=did_you_mean(self.query, state.queries) or "has the engine run once?",
            )
        return state, known

    def _refuse_member(self, state: EngineState) -> None:
        for query in state.queries.values():
            for pack in query.sharing.roll:
                if self.query in self.storage.read_table(pack[0]).column(NAME).to_pylist():
                    raise ConfigError(
                        f"the results of {self.query} lie among those of others",
                        remedy=f"ALTER QUERY {self.query} SET (share = 'off') gives it its own; "
                        "Query.to_stream() does so, too",
                    )
