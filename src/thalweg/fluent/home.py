"""Where built queries are registered."""

from __future__ import annotations

from typing import Any, Protocol

from thalweg.plan.catalog import Catalog
from thalweg.runtime.session.session import Callback, Query


class HasCatalog(Protocol):
    @property
    def catalog(self) -> Catalog: ...


class Home(Protocol):
    """Where queries are registered: an `Engine`, or a `Runner`."""

    @property
    def session(self) -> HasCatalog: ...
    def query(
        self, sql: str, name: str | None = None, callback: Callback | None = None
    ) -> Query: ...
    def sql(self, script: str) -> Any: ...
    def explain(self, query: str | Query) -> str: ...
