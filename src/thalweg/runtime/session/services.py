"""What statements ask of an engine, in one place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from thalweg.lang.parsing import ast
from thalweg.runtime.lifecycle.query_catalog import QueryCatalog, Registered
from thalweg.runtime.session.alteration import Alteration
from thalweg.runtime.session.reading import StateReading
from thalweg.runtime.session.registration import Registration
from thalweg.runtime.session.streams import Streams
from thalweg.runtime.session.tables import Tables
from thalweg.runtime.session.views import Views
from thalweg.runtime.sharing.placement import Placement
from thalweg.runtime.sizes.table_analysis import TableAnalysis
from thalweg.runtime.state.definitions import Definitions
from thalweg.statements.protocol import Language
from thalweg.statements.services import Sources


class QueryServices:
    """Queries as statements see them. `handle` gives what their owner holds."""

    def __init__(
        self,
        queries: QueryCatalog,
        placement: Placement,
        registration: Registration,
        alteration: Alteration,
        handle: Callable[[Registered], Any],
    ) -> None:
        self._queries = queries
        self._placement = placement
        self._registration = registration
        self._handle = handle
        self.set_options = alteration.set_options
        self.replace = alteration.replace
        self.drop = alteration.drop
        self.pause = alteration.pause
        self.resume = alteration.resume

    def create(self, name: str | None, query: ast.Query, text: str, script: str) -> Any:
        chosen = self._registration.free_name(text) if name is None else name
        planned = self._registration.plan(chosen, query, text, script)
        return self._handle(self._registration.admit(planned))

    def text(self, name: str) -> str:
        return self._queries.find(name).text

    def altered(self, name: str) -> Mapping[str, Any]:
        found = self._queries.find(name).name
        return self._placement.state_of(found).definition.altered


@dataclass(frozen=True, slots=True)
class EngineServices:
    """The `Services` of an engine."""

    language: Language
    reading: StateReading
    queries: QueryServices
    views: Views
    tables: Tables
    streams: Streams
    sources: Sources
    definitions: Definitions
    statistics: TableAnalysis
    default_idle: int | None
