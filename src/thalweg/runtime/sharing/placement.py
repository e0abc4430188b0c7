"""The placement of a query: run by its own plan, as a member of a cohort, or dormant behind a
leader."""

from __future__ import annotations

from enum import Enum

from thalweg.runtime.sharing.cohort_admission import CohortAdmission
from thalweg.runtime.sharing.dormant_queries import DormantQueries
from thalweg.runtime.sharing.filter_cohorts import FilterCohorts
from thalweg.runtime.state.engine_state import EngineState
from thalweg.runtime.state.query_state import Definition, QueryState


class Place(Enum):
    OWN = "own"
    MEMBER = "member"
    DORMANT = "dormant"


class Placement:
    """Finds queries wherever they run, and makes them run by themselves."""

    def __init__(
        self,
        state: EngineState,
        cohorts: FilterCohorts,
        admission: CohortAdmission,
        dormant: DormantQueries,
    ) -> None:
        self._state = state
        self._cohorts = cohorts
        self._admission = admission
        self._dormant = dormant

    def detach(self, name: str) -> None:
        """Make a query that is run with others run by its own plan, from its present frontier."""
        self._admission.detach(name)
        self._dormant.detach(name)

    def offer(self, name: str) -> None:
        """Let a query that asks for it run with others, from the next epoch on if it can."""
        self._admission.offer(name)

    def of(self, name: str) -> Place:
        if name in self._cohorts.by_name:
            return Place.MEMBER
        return Place.DORMANT if name in self._state.dormant else Place.OWN

    def state_of(self, name: str) -> QueryState:
        """Its state, or that of the cohort it is a member of."""
        member = self._cohorts.by_name.get(name)
        if member is not None:
            found = self._state.queries.get(member.cohort)
            return QueryState(Definition(member.text)) if found is None else found
        own = self._state.known(name)
        assert own is not None
        return own
