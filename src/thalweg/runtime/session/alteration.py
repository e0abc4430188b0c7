"""Queries that change, pause, resume and end, each between two epochs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from thalweg.errors import ConfigError
from thalweg.lang.parsing import ast
from thalweg.plan.bound_query import BoundQuery
from thalweg.plan.types import from_arrow
from thalweg.runtime.invoke.materialize_modes import MaterializeModes
from thalweg.runtime.lifecycle.plan_table import PlanTable
from thalweg.runtime.lifecycle.query_catalog import QueryCatalog
from thalweg.runtime.lifecycle.query_registry import QueryRegistry
from thalweg.runtime.planner import Planner, output_schema
from thalweg.runtime.session.registration import Registration
from thalweg.runtime.sharing.dormant_queries import DormantQueries
from thalweg.runtime.sharing.filter_cohorts import FilterCohorts
from thalweg.runtime.sharing.placement import Place, Placement
from thalweg.runtime.state.engine_state import EngineState
from thalweg.runtime.state.query_state import FAILED, PAUSED


class Alteration:
    """Changes queries that are registered. A query that is run with others first goes on by
    itself."""

    def __init__(
        self,
        state: EngineState,
        plans: PlanTable,
        planner: Planner,
        queries: QueryCatalog,
        registry: QueryRegistry,
        cohorts: FilterCohorts,
        dormant: DormantQueries,
        placement: Placement,
        modes: MaterializeModes,
        registration: Registration,
    ) -> None:
        self._state = state
        self._plans = plans
        self._planner = planner
        self._queries = queries
        self._registry = registry
        self._cohorts = cohorts
        self._dormant = dormant
        self._placement = placement
        self._modes = modes
        self._registration = registration

    def pause(self, name: str) -> None:
        """Pause a query. What it has yet to see is kept for it: its streams' packs pile up."""
        name = self._queries.find(name).name
        self._placement.detach(name)
        self._registry.pause(name)

    def resume(self, name: str) -> None:
        """Resume a query that is paused or failed where it stopped: nothing is skipped."""
        name = self._queries.find(name).name
        if self._placement.state_of(name).lifecycle.status in (PAUSED, FAILED):
            self._registry.resume(name)
            self._dormant.may_rest(name)

    def drop(self, name: str) -> None:
        """Remove a query with its state and results."""
        name = self._queries.find(name).name
        self._queries.refuse_while_read(name, "dropped")
        is_member = self._placement.of(name) is Place.MEMBER
        self._cohorts.dropped(name)
        if not is_member:
            self._modes.leave(name)
            if not self._dormant.drop(name):
                self._registry.remove(name)
        self._queries.remove(name)

    def set_options(self, name: str, changes: Mapping[str, Any]) -> None:
        """Options that steer how a query runs, from the next epoch on. It is planned anew whatever
        they are, so that none takes effect only after a restart."""
        name = self._queries.find(name).name
        bound = self._queries.bound(name)
        bound = replace(bound, options=replace(bound.options, **changes))
        plan = self._planner.physical(bound)
        known = self._placement.state_of(name)
        before, mode = known.definition.mode, self._modes.mode_after(name, bound, known)
        self._placement.detach(name)
        query = self._state.queries[name]
        altered = {**query.definition.altered, **changes}
        query.definition = replace(query.definition, altered=altered)
        self._queries.remember(name, bound)
        self._registry.replan(name, plan, bound.options)
        if mode != before:
            self._modes.switch(name, mode, bound)
        self._modes.watch(name, bound)
        self._placement.offer(name)

    def replace(
        self,
        name: str,
        query: ast.Query,
        text: str,
        script: str,
        altered: Mapping[str, Any] | None = None,
    ) -> None:
        """Let another SELECT take the place of a query, its windows filled from what is kept."""
        name = self._queries.find(name).name
        planned = self._registration.planned(name, query, text, script, altered)
        _refuse_other_columns(name, self._queries.bound(name), planned.bound)
        self._queries.refuse_while_read(name, "changed")
        known = self._placement.state_of(name)
        mode = self._modes.mode_after(name, planned.bound, known)
        self._placement.detach(name)
        self._modes.leave(name)
        bound = planned.bound
        self._registry.replace(name, planned.text, planned.plan, bound.options)
        own = self._state.queries[name]
        own.definition = replace(own.definition, altered=dict(planned.altered))
        if mode:
            self._modes.switch(name, mode, bound)
        self._modes.watch(name, bound)
        self._queries.say(name, planned.text, bound, planned.reads)


def _refuse_other_columns(name: str, old: BoundQuery, new: BoundQuery) -> None:
    """Readers of the results must not be surprised by other columns in the midst of them."""
    before, after = output_schema(old), output_schema(new)
    if [(f.name, f.type) for f in before] != [(f.name, f.type) for f in after]:
        raise ConfigError(
            f"the results of {name} would change from ({_columns(before)}) to ({_columns(after)})",
            remedy="keep the columns and whether it is a relation, or drop the query and create it "
            "anew",
        )


def _columns(schema: pa.Schema) -> str:
    return ", ".join(f"{f.name} {from_arrow(f.type)}" for f in schema)
