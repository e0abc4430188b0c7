"""What SHOW, EXPLAIN and INVOKE read: in the process of an engine, or from what is committed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from thalweg.errors import UnknownName
from thalweg.masking import masked
from thalweg.runtime.invoke.invocations import Invocations
from thalweg.runtime.invoke.query_coverage import QueryCoverage
from thalweg.runtime.results.lookup import QueryLookup
from thalweg.runtime.session.explainer import Explainer
from thalweg.runtime.sizes.join_sizes import JoinSizes
from thalweg.runtime.state.definitions import Definitions
from thalweg.runtime.state.engine_state import EngineState
from thalweg.runtime.state.failures import QUERY, STREAM
from thalweg.runtime.state.query_state import QueryState
from thalweg.runtime.state.stream_definitions import VIEW
from thalweg.runtime.state.stream_state import StreamState
from thalweg.statements.protocol import Language

Rows = Sequence[Mapping[str, Any]]


class StateReading:
    """The `Reading` of statements, over a state and the queries in it. `unread` names tables whose
    rows have not been collected."""

    def __init__(
        self,
        state: EngineState,
        queries: QueryLookup,
        definitions: Definitions,
        coverage: QueryCoverage,
        explainer: Explainer,
        invocations: Invocations,
        language: Language,
        sizes: JoinSizes,
        unread: Callable[[], Iterable[str]] = tuple,
    ) -> None:
        self._state = state
        self._queries = queries
        self.definitions = definitions
        self._coverage = coverage
        self._explainer = explainer
        self._invocations = invocations
        self._language = language
        self._sizes = sizes
        self._unread = unread

    def listed(self, plural: str) -> Rows:
        kind = next(k for k in self._language.objects if k.plural == plural)
        return [] if kind.listed is None else kind.listed(self)

    def streams(self) -> Rows:
        return [
            {
                "name": n, "rows": s.rows, "late": s.late, "rejected": s.rejected,
                "error": self._state.failure(STREAM, n),
            }
            for n, s in self._known_streams().items()
        ]  # fmt: skip

    def _known_streams(self) -> dict[str, StreamState]:
        """Those that have had rows, and those whose source fails before any."""
        failing = (key.split(":", 1) for key in self._state.failures)
        none = {name: StreamState() for kind, name in failing if kind == STREAM}
        return none | dict(self._state.streams)

    def queries(self) -> Rows:
        return [
            {
                "name": name,
                "status": _status(query),
                "error": self._error(name, query),
                "text": masked(text),
                "coverage": self._covered(name) if can_be_asked else None,
            }
            for name, text, query, can_be_asked in self._queries.listed()
        ]

    def _error(self, name: str, query: QueryState) -> str | None:
        """Why it has failed, or what its sinks fail with."""
        failed = (query.lifecycle.error or "").splitlines()
        return failed[0] if failed else self._state.failure(QUERY, name)

    def _covered(self, name: str) -> str | None:
        with contextlib.suppress(UnknownName):  # it was dropped meanwhile
            return str(self._coverage.of(name))
        return None

    def tables(self) -> Rows:
        tables = self._state.tables.items()
        read = [{"name": n, "rows": sum(p.rows for p in ps)} for n, ps in tables]
        return [*read, *({"name": n, "rows": None} for n in self._unread())]

    def views(self) -> Rows:
        return [{"name": name} for name in self.definitions.of(VIEW)]

    def state(self) -> Rows:
        return [
            {"stream": n, "packs": len(s.packs), "rows": sum(p.rows for p in s.packs),
             "bytes": sum(p.bytes for p in s.packs)}
            for n, s in self._state.streams.items()
        ]  # fmt: skip

    def explain(self, query: str) -> str:
        return self._explainer.query(query)

    def explain_text(self, text: str) -> str:
        return self._explainer.text(text)

    def explain_adaptation(self, query: str) -> str:
        return self._explainer.adaptation(query)

    def explain_bound(self, text: str) -> str:
        return str(self._sizes.bound(self._text_of(text)))

    def explain_sizes(self, text: str) -> str:
        return str(self._sizes.compare(self._text_of(text)))

    def _text_of(self, query: str) -> str:
        """The SELECT of a registered query, or the text itself."""
        with contextlib.suppress(UnknownName):
            return self._queries.text(self._queries.find(query))
        return query

    def invoke(self, query: str, at: int | None) -> pa.Table:
        return self._invocations.invoke(query, at)


def _status(query: QueryState) -> str:
    return "catching up" if query.progress.behind and query.runs else query.lifecycle.status
