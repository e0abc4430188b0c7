"""An engine's path, read from what is committed: no engine, no locks, nothing is changed."""

from __future__ import annotations

import pyarrow as pa

from thalweg.adapt.adaptation import Adaptation
from thalweg.features import LANGUAGE
from thalweg.plan.catalog import Catalog, TableDef, ViewDef
from thalweg.runtime.invoke.instant_answers import InstantAnswers
from thalweg.runtime.invoke.invocations import Invocations
from thalweg.runtime.invoke.query_coverage import QueryCoverage
from thalweg.runtime.planner import Planner
from thalweg.runtime.results.committed_state import CommittedState
from thalweg.runtime.results.results_reader import ResultsReader
from thalweg.runtime.session.committed_queries import CommittedQueries
from thalweg.runtime.session.explainer import Explainer
from thalweg.runtime.session.reading import StateReading
from thalweg.runtime.sharing.filter_cohorts import load_members
from thalweg.runtime.sizes.join_sizes import JoinSizes
from thalweg.runtime.sizes.living_rows import LivingRows
from thalweg.runtime.sizes.table_analysis import TableAnalysis
from thalweg.runtime.sources.python_arguments import arrow_fields
from thalweg.runtime.state.definitions import Definitions
from thalweg.runtime.state.engine_state import EngineState
from thalweg.runtime.state.open_path import committed_state
from thalweg.runtime.state.query_state import CONDITIONS
from thalweg.runtime.state.stream_definitions import STREAM, VIEW, read_stream, read_view
from thalweg.statements.protocol import Language
from thalweg.store.storage import Storage


class AsCommitted:
    """What is committed is all there is: nothing is caught up with."""

    def asked(self, name: str) -> None:
        pass

    def catch_up(self, name: str) -> None:
        pass


class CommittedReader:
    """The last committed state of a path, as it was when this was made."""

    def __init__(self, storage: Storage, language: Language = LANGUAGE) -> None:
        state = committed_state(storage)
        committed = state.to_json()
        catalog, definitions = _catalog(storage, state), Definitions(state)
        planner = Planner(catalog)
        self.queries = CommittedQueries(storage, state, planner)
        self._results = ResultsReader(storage, lambda: committed, self.queries)
        conditions = load_members(storage, state, CONDITIONS)
        view = CommittedState(committed)
        answers = InstantAnswers(storage, lambda: view, self.queries, conditions, catalog, {})
        self.coverage = QueryCoverage(state, self.queries)
        self._invocations = Invocations(
            self.queries, self._results, answers, self.coverage, AsCommitted()
        )
        explainer = Explainer(planner, self.queries, Adaptation(), lambda: ())
        self.reading = StateReading(
            state,
            self.queries,
            definitions,
            self.coverage,
            explainer,
            self._invocations,
            language,
            _sizes(planner, LivingRows(catalog, state, storage, {})),
        )

    def results(self, name: str) -> pa.Table:
        """What a query has emitted and is still kept."""
        name = self.queries.find(name)
        self._invocations.refuse_without_output(name)
        return self._results.results(name)


def _sizes(planner: Planner, living: LivingRows) -> JoinSizes:
    return JoinSizes(planner, living, TableAnalysis(planner.catalog, living), {})


def _catalog(storage: Storage, state: EngineState) -> Catalog:
    """The names that a path knows: streams, tables by their files, and views."""
    catalog, definitions = Catalog(), Definitions(state)
    for text in definitions.of(STREAM).values():
        stream = read_stream(text)
        if stream is not None:
            catalog.streams[stream.name] = stream
    for name, packs in state.tables.items():
        schema = storage.read_table(packs[0].name).schema
        own = pa.schema([f for f in schema if not f.name.startswith("__")])
        changes = len(state.versions.get(name, ())) > 1
        catalog.tables[name] = TableDef(name, arrow_fields(own), changes=changes)
    for name, text in definitions.of(VIEW).items():
        view = read_view(text)
        if not view.retained:
            catalog.views[name] = ViewDef(name, view.text)
    return catalog
