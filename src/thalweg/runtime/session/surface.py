"""What an engine offers whatever its rows come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from thalweg.estimate.bounds import Bounds
from thalweg.estimate.fresh import BUCKETS
from thalweg.runtime.session.query_handle import Query
from thalweg.runtime.session.session import Session
from thalweg.runtime.sizes.table_analysis import STATISTICS_BYTES


class Surface:
    """Statements, functions, refused rows and sizes of joins, over a session."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def sql(self, script: str) -> Any:
        """Run statements; returns what the last one gives."""
        return self.session.sql(script)

    def explain(self, query: str | Query) -> str:
        """The plan of a query, by name, handle or text."""
        return self.session.explain(query)

    def function(self, name: str, function: Any, returns: Any = "BOOLEAN", **options: Any) -> None:
        """Register a Python function for SQL; see `Functions.define`."""
        self.session.core.functions.define(name, function, returns, **options)

    def rejects(self, stream: str) -> pa.Table:
        """Rows of a stream that were refused, with the reason."""
        return self.session.rejects(stream)

    def analyze(
        self,
        *names: str,
        limit_bytes: int = STATISTICS_BYTES,
        joined_by: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        """Make statistics of tables and of what is kept of streams, all together of at most so many
        bytes, for bounds that read no row (`basis = "cached"`). `joined_by` says by which columns
        each is joined; else that is told by earlier queries and by names."""
        core = self.session.core
        core.changes.between_epochs(
            lambda: core.analysis.analyze(*names, limit_bytes=limit_bytes, joined_by=joined_by)
        )

    def bound(
        self, sql: str, basis: str = "fresh", buckets: int = BUCKETS, degrees: str = "exact"
    ) -> Bounds:
        """How large the join of a SELECT is at most: guaranteed, or exact where that can be had.
        `.rows` is the whole, `.table` has each connected part; `fresh` reads the rows that live
        now, `cached` only what `analyze` has kept. Degrees are `exact`, `cm_safe`, `mg_safe`,
        `mg_raw` (an estimate) or `sum_of_max`."""
        return self.session.core.sizes.bound(sql, basis, buckets, degrees)
