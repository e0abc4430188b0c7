"""An engine without Spark: all parts, and how they hang together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from thalweg.adapt.adaptation import Adaptation
from thalweg.features import LANGUAGE
from thalweg.plan.catalog import Catalog
from thalweg.runtime.epoch.apply_results import ApplyResults
from thalweg.runtime.epoch.change_queue import ChangeQueue
from thalweg.runtime.epoch.changes import Changes
from thalweg.runtime.epoch.control_requests import ControlInbox
from thalweg.runtime.epoch.coordinator import Coordinator, Settler
from thalweg.runtime.epoch.delivery import Delivery
from thalweg.runtime.epoch.driver import EpochDriver
from thalweg.runtime.epoch.frontiers import Frontiers
from thalweg.runtime.epoch.intake import Intake
from thalweg.runtime.epoch.scheduler import Scheduler
from thalweg.runtime.epoch.step_tasks import StepTasks
from thalweg.runtime.epoch.system_stream import SystemStream
from thalweg.runtime.executor import Executor, JobRunner
from thalweg.runtime.invoke.conditions import Conditions
from thalweg.runtime.invoke.instant_answers import InstantAnswers
from thalweg.runtime.invoke.invocations import Invocations, LiveReadiness
from thalweg.runtime.invoke.materialize_modes import MaterializeModes
from thalweg.runtime.invoke.query_coverage import QueryCoverage
from thalweg.runtime.lifecycle.backfill import Pace
from thalweg.runtime.lifecycle.plan_table import PlanTable
from thalweg.runtime.lifecycle.query_catalog import QueryCatalog, Registered
from thalweg.runtime.lifecycle.query_registry import QueryRegistry
from thalweg.runtime.lifecycle.retained_views import RetainedViews
from thalweg.runtime.lifecycle.stream_registry import StreamRegistry
from thalweg.runtime.lifecycle.table_versions import TableVersions
from thalweg.runtime.planner import Planner
from thalweg.runtime.results.committed_state import CommittedState
from thalweg.runtime.results.results_reader import ResultsReader
from thalweg.runtime.session.alteration import Alteration
from thalweg.runtime.session.explainer import Explainer
from thalweg.runtime.session.functions import Functions
from thalweg.runtime.session.live_queries import LiveQueries
from thalweg.runtime.session.process_sources import ProcessSources
from thalweg.runtime.session.query_stats import QueryStats
from thalweg.runtime.session.reading import StateReading
from thalweg.runtime.session.registration import Registration
from thalweg.runtime.session.services import EngineServices, QueryServices
from thalweg.runtime.session.streams import Streams
from thalweg.runtime.session.tables import Tables
from thalweg.runtime.session.views import Views
from thalweg.runtime.settings import Settings
from thalweg.runtime.sharing.cohort_admission import CohortAdmission
from thalweg.runtime.sharing.dormant_queries import DormantQueries
from thalweg.runtime.sharing.filter_cohorts import FilterCohorts
from thalweg.runtime.sharing.placement import Placement
from thalweg.runtime.sharing.window_stores import WindowStores
from thalweg.runtime.sinks.factory import ProcessSinks, SinkFactory
from thalweg.runtime.sizes.join_sizes import JoinSizes
from thalweg.runtime.sizes.living_rows import LivingRows
from thalweg.runtime.sizes.table_analysis import TableAnalysis
from thalweg.runtime.sources.log_writer import LogWriter
from thalweg.runtime.state.committer import Committer
from thalweg.runtime.state.definitions import Definitions
from thalweg.runtime.state.engine_state import EngineState
from thalweg.runtime.state.failures import Failures
from thalweg.runtime.state.outputs import Outputs
from thalweg.runtime.state.pending_files import PendingFiles
from thalweg.runtime.state.query_state import CONDITIONS, FILTERS
from thalweg.runtime.upkeep.upkeep import Upkeep
from thalweg.statements.protocol import Language
from thalweg.statements.services import Sources
from thalweg.store.manifest import State
from thalweg.store.storage import Storage


class EngineCore:
    """Builds the parts of an engine, each from what it needs. `clock` tells the time of commits
    without a driver; by default that of the last epoch."""

    def __init__(
        self,
        storage: Storage,
        executor: Executor,
        state: EngineState,
        settings: Settings | None = None,
        *,
        catalog: Catalog | None = None,
        adaptation: Adaptation | None = None,
        pace: Pace | None = None,
        clock: Callable[[], int] | None = None,
        sinks: Callable[[Storage, EngineState], SinkFactory] = ProcessSinks,
        language: Language = LANGUAGE,
    ) -> None:
        self.storage = storage
        self.state = state
        self.settings = settings or Settings()
        self.catalog = catalog or Catalog()
        self.adaptation = adaptation or Adaptation()
        self.language = language
        self._view = CommittedState({})
        self.pace = pace or Pace()
        self._build_state(executor)
        self._build_sharing()
        self._build_invoking()
        self._build_epoch(clock or (lambda: state.clock))
        self._build_session(sinks(storage, state))

    def committed(self) -> State:
        """The state after the last commit."""
        return self.committer.committed

    def committed_view(self) -> CommittedState:
        """The same, to be asked by name."""
        if self._view.json is not self.committer.committed:
            self._view = CommittedState(self.committer.committed)
        return self._view

    # -- building ----------------------------------------------------------------------------

    def _build_state(self, executor: Executor) -> None:
        storage, state, catalog = self.storage, self.state, self.catalog
        self.functions = Functions(catalog, self.settings)
        self.runner = JobRunner(executor, self.functions.code)
        self.files = PendingFiles(state)
        self.committer = Committer(storage, state, self.files)
        self.outputs = Outputs(state, self.files)
        self.definitions = Definitions(state)
        self.failures = Failures(state)
        self.planner = Planner(catalog)
        self.plans = PlanTable(catalog, self.adaptation)
        self.queries = QueryCatalog(self.planner, self.plans)
        self.registry = QueryRegistry(
            storage, catalog, state, self.plans, self.outputs, self.files, self.pace
        )
        self.scheduler = Scheduler(state, self.plans, self.pace, self.settings)
        self.streams = StreamRegistry(catalog, self.definitions)
        self.retained_views = RetainedViews(
            catalog, state, self.plans, self.planner, self.registry, self.definitions, self.files
        )

    def _build_sharing(self) -> None:
        self.window_stores = WindowStores(
            self.state, self.plans, self.settings, self.runner, self.files
        )
        self.conditions = Conditions(self.planner)
        self.cohorts = self._cohorts(FILTERS, self.planner.filter_of)
        self.condition_cohorts = self._cohorts(CONDITIONS, self.conditions.of_text)
        self.admission = CohortAdmission(
            self.storage, self.state, self.settings, self.planner, self.queries, self.registry,
            self.cohorts,
        )  # fmt: skip
        self.dormant = DormantQueries(
            self.state, self.plans, self.planner, self.queries, self.registry
        )
        self.placement = Placement(self.state, self.cohorts, self.admission, self.dormant)

    def _cohorts(self, kind: str, filter_of: Any) -> FilterCohorts:
        return FilterCohorts(
            kind, self.storage, self.state, self.plans, self.registry, self.outputs, self.files,
            self.planner.cohort_plan, filter_of,
        )  # fmt: skip

    def _build_invoking(self) -> None:
        storage, state = self.storage, self.state
        self.lookup = LiveQueries(state, self.plans, self.queries, self.cohorts, self.placement)
        self.results = ResultsReader(storage, self.committed, self.lookup)
        self.answers = InstantAnswers(
            storage, self.committed_view, self.lookup, self.condition_cohorts.by_name, self.catalog,
            self.functions.code,
        )  # fmt: skip
        self.modes = MaterializeModes(
            storage, self.catalog, state, self.plans, self.registry, self.queries,
            self.conditions, self.condition_cohorts, self.answers, self.committed_view,
            self.placement.detach, self.dormant.may_rest,
        )  # fmt: skip
        self.coverage = QueryCoverage(state, self.lookup)
        self.tables = Tables(
            self.catalog, state, self.plans, self.planner, self.queries, self.registry,
            self.placement, self.modes, TableVersions(storage, state, self.files),
            self.definitions,
        )  # fmt: skip
        living = LivingRows(
            self.catalog,
            state,
            storage,
            self.functions.code,
            lambda name: self.tables.need([name]),
        )
        self.analysis = TableAnalysis(self.catalog, living)
        self.sizes = JoinSizes(
            self.planner, living, self.analysis, self.functions.code,
            lambda run: self.changes.between_epochs(run),
        )  # fmt: skip

    def _build_epoch(self, clock: Callable[[], int]) -> None:
        storage, state, plans, settings = self.storage, self.state, self.plans, self.settings
        self.change_queue = ChangeQueue()
        self.upkeep = Upkeep(
            storage, self.catalog, state, plans, self.window_stores, self.outputs, self.files,
            settings, self.runner,
        )  # fmt: skip
        self.intake = Intake(storage, self.catalog, state, plans, self.runner, self.files)
        self.frontiers = Frontiers(
            self.catalog, state, plans, self.scheduler, self.upkeep, self.queries.keeps_answer
        )
        self.system = SystemStream(
            self.catalog, state, plans, self.adaptation, self.intake, self.analysis.drift
        )
        tasks = StepTasks(storage, state, plans, self.window_stores, self.files, settings)
        applied = ApplyResults(
            storage, state, plans, self.intake, self.window_stores, self.upkeep, self.outputs,
            self.files, settings,
        )  # fmt: skip
        self.coordinator = Coordinator(
            state, plans, settings, self.runner, self.change_queue, self.settlers, self.intake,
            self.frontiers, self.scheduler, tasks, self.upkeep, applied, self.committer,
            self.system,
        )  # fmt: skip
        self.changes = Changes(self.coordinator, state, clock)
        self.delivery = Delivery(storage, state, self.queries, self.failures)

    @property
    def settlers(self) -> tuple[Settler, ...]:
        """What is settled between epochs, in this order: tables that are read get their rows, a
        query that changes its mode may share other windows, members are written down before
        cohorts unite, and only queries with equal frontiers become dormant or members."""
        return (
            self.tables,
            self.modes,
            self.window_stores,
            self.cohorts,
            self.condition_cohorts,
            self.dormant,
            self.admission,
        )

    def _build_session(self, sinks: SinkFactory) -> None:
        state, plans, planner, queries = self.state, self.plans, self.planner, self.queries
        self.readiness = LiveReadiness(self.lookup, self.modes, self.changes)
        self.invocations = Invocations(
            self.lookup, self.results, self.answers, self.coverage, self.readiness
        )
        self.explainer = Explainer(
            planner, self.lookup, self.adaptation, lambda: self.frontiers.idle
        )
        self.reading = StateReading(
            state, self.lookup, self.definitions, self.coverage, self.explainer, self.invocations,
            self.language, self.sizes, lambda: self.tables.unread,
        )  # fmt: skip
        self.stats = QueryStats(self.storage, state, self.lookup, self.results, self.adaptation)
        self.registration = Registration(
            self.catalog, state, planner, queries, self.registry, self.cohorts, self.admission,
            self.placement, self.modes, sinks, self.sizes, self.tables.fetch,
        )  # fmt: skip
        self.alteration = Alteration(
            state, plans, planner, queries, self.registry, self.cohorts, self.dormant,
            self.placement, self.modes, self.registration,
        )  # fmt: skip
        self.views = Views(
            self.catalog, planner, queries, self.registration, self.definitions,
            self.retained_views,
        )  # fmt: skip

    # -- at work -----------------------------------------------------------------------------

    def services(
        self, handle: Callable[[Registered], Any], sources: Sources | None = None
    ) -> EngineServices:
        """What statements may ask of this engine; streams and tables come from `sources`."""
        where = sources or ProcessSources(self.streams)
        streams = Streams(
            self.catalog, self.state, self.definitions, self.streams, self.queries, self.files,
            where,
        )  # fmt: skip
        return EngineServices(
            self.language,
            self.reading,
            QueryServices(self.queries, self.placement, self.registration, self.alteration, handle),
            self.views,
            self.tables,
            streams,
            where,
            self.definitions,
            self.analysis,
            self.settings.default_idle,
        )

    def driver(
        self,
        log: LogWriter,
        run: Callable[[str, str | None], Any],
        progress: Any = None,
        **options: Any,
    ) -> EpochDriver:
        """A loop over the epochs of this engine; `run` carries out requests of other processes."""
        self.delivery.begin_run()
        control = ControlInbox(self.storage, self.state, self.committer, self.change_queue, run)
        return EpochDriver(
            self.coordinator, self.change_queue, self.frontiers, self.scheduler, self.registry,
            self.delivery, control, log, progress, self.failures, **options,
        )  # fmt: skip
