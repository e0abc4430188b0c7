"""Views: named queries for others to read, as a part of each or, with RETAIN, by themselves."""

from __future__ import annotations

from thalweg.errors import ConfigError, DuplicateName, UnknownName, did_you_mean
from thalweg.lang.parsing import ast
from thalweg.plan.catalog import Catalog, ViewDef
from thalweg.runtime.lifecycle.query_catalog import QueryCatalog
from thalweg.runtime.lifecycle.retained_views import RetainedViews
from thalweg.runtime.planner import Planner
from thalweg.runtime.session.registration import Registration
from thalweg.runtime.sources.python_arguments import refuse_name
from thalweg.runtime.state.definitions import Definitions
from thalweg.runtime.state.internal_names import view_query
from thalweg.runtime.state.stream_definitions import VIEW, KeptView, described_view, read_view


class Views:
    """Defines and drops views, between two epochs. They outlive the process."""

    def __init__(
        self,
        catalog: Catalog,
        planner: Planner,
        queries: QueryCatalog,
        registration: Registration,
        definitions: Definitions,
        retained: RetainedViews,
    ) -> None:
        self._catalog = catalog
        self._planner = planner
        self._queries = queries
        self._registration = registration
        self._definitions = definitions
        self._retained = retained

    def define(
        self, name: str, query: ast.Query, text: str, retain: int | None, script: str
    ) -> ViewDef:
        """A view is checked now and runs as a part of each query that reads it; with RETAIN it runs
        by itself, and others read the stream it emits."""
        refuse_name(name)
        if retain is not None:
            return self._define_retained(name, query, text, retain, script)
        view = ViewDef(name, text)
        known = self._catalog.relation(name)
        if known is not None and known != view:
            raise DuplicateName(
                f"{name} is already defined",
                remedy=f"use another name, or DROP VIEW {name} first",
            )
        reads = self._planner.check(query, script)
        self._record(name, text, reads)
        self._catalog.views[name] = view
        return view

    def _define_retained(
        self, name: str, query: ast.Query, text: str, retain: int, script: str
    ) -> ViewDef:
        if self._retained.text(name) == text:
            self._retained.refuse_other_retain(name, retain)
            self._retained.resume()
            return ViewDef(name, text)
        if self._catalog.relation(name) is not None:
            raise DuplicateName(f"{name} is already defined", remedy="use another name")
        planned = self._registration.planned(view_query(name), query, text, script)
        self._retained.begin(name, planned, retain)
        self._record(name, text, frozenset(planned.reads), retained=True)
        return ViewDef(name, text)

    def _record(
        self, name: str, text: str, reads: frozenset[str], *, retained: bool = False
    ) -> None:
        kept = described_view(KeptView(text, tuple(reads), retained))
        self._definitions.put(VIEW, name, kept)
        self._queries.reads[name] = reads

    def drop(self, name: str) -> None:
        known = self._catalog.relation(name)
        name = name if known is None else known.name
        if name in self._queries.queries:
            raise ConfigError(f"{name} is a query", remedy=f"use DROP QUERY {name}")
        is_retained = self._retained.text(name) is not None
        if name not in self._catalog.views and not is_retained:
            views = self._catalog.views
            raise UnknownName(f"unknown view {name}", remedy=did_you_mean(name, views))
        self._queries.refuse_while_read(name, "dropped")
        self._queries.reads.pop(name, None)
        self._catalog.views.pop(name, None)
        if is_retained:
            self._retained.drop(name)
        self._definitions.pop(VIEW, name)

    def resume_from(self, name: str, text: str) -> None:
        """A view of an earlier run."""
        kept = read_view(text)
        self._queries.reads[name] = frozenset(kept.reads)
        if kept.retained:
            self._retained.restore(name)
        else:
            self._catalog.views[name] = ViewDef(name, kept.text)
