"""Handing committed output to sinks, epoch by epoch, and remembering the last epoch of each query.

A sink that fails is tried again, later and later; meanwhile its output is kept and the other
queries go on. Marks go into the next manifest, so a crash repeats at most what had not been marked.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass

import pyarrow as pa

from thalweg.errors import SinkFailed
from thalweg.runtime.error_causes import told
from thalweg.runtime.lifecycle.query_catalog import QueryCatalog, Registered
from thalweg.runtime.planner import output_schema
from thalweg.runtime.results.committed_state import metas
from thalweg.runtime.results.results_reader import output_table
from thalweg.runtime.state.engine_state import EngineState
from thalweg.runtime.state.failures import QUERY, Failures
from thalweg.runtime.state.output_keys import key_of
from thalweg.store.storage import Storage

log = logging.getLogger("thalweg")
FIRST_WAIT, LONGEST_WAIT = 0.5, 30.0


@dataclass(slots=True)
class _Trouble:
    """Why a query's output could not be handed over, and when to try again."""

    error: Exception
    wait: float
    due: float


class Delivery:
    """Hands output over, query by query."""

    def __init__(
        self, storage: Storage, state: EngineState, queries: QueryCatalog, failures: Failures
    ) -> None:
        self._storage = storage
        self._state = state
        self._queries = queries
        self._failures = failures
        self._troubles: dict[str, _Trouble] = {}

    def deliver(self, *, insist: bool = False) -> None:
        """Hand over what is committed and not marked yet; with `insist`, also where a sink that
        failed is not due yet."""
        state = self._state
        if state.failures:
            self._failures.keep_only(QUERY, state.queries)
        for name in list(state.queries):  # a callback may add and drop some
            query = self._queries.queries.get(name)
            if query is None or name not in state.queries:
                continue
            trouble = self._troubles.get(name)
            if trouble is None or insist or time.monotonic() >= trouble.due:
                self._one(query, state.epoch)

    def _one(self, query: Registered, last: int) -> None:
        mark = self._state.queries[query.name].progress
        try:
            for epoch in self._pending(query, mark.delivered, last):
                output = self._output(query, epoch)
                for sink in query.sinks:
                    sink.write(epoch, output)
                mark.delivered = epoch
                if self._queries.queries.get(query.name) is not query:
                    return  # it was dropped meanwhile
            mark.delivered = last
            self._troubles.pop(query.name, None)
            self._failures.put(QUERY, query.name, None)
        except Exception as error:
            self._note(query, error)

    def _pending(self, query: Registered, delivered: int, last: int) -> list[int]:
        if not query.sinks or delivered == last:
            return []
        outputs = self._state.outputs
        return [e for e in range(delivered + 1, last + 1) if key_of(query.name, e, e) in outputs]

    def _output(self, query: Registered, epoch: int) -> pa.Table:
        packs = metas(self._state.outputs[key_of(query.name, epoch, epoch)])
        schema = output_schema(self._queries.bound(query.name))
        return output_table(self._storage, schema, packs)

    def _note(self, query: Registered, error: Exception) -> None:
        known = self._troubles.get(query.name)
        wait = FIRST_WAIT if known is None else min(2 * known.wait, LONGEST_WAIT)
        self._troubles[query.name] = _Trouble(error, wait, time.monotonic() + wait)
        why = told(error)
        if known is None or told(known.error) != why:
            log.warning(
                "query %s: its output cannot be handed over (%s); it is kept and tried again",
                query.name, why,
            )  # fmt: skip
        self._failures.put(QUERY, query.name, f"its output cannot be handed over: {why}")

    def begin_run(self) -> None:
        """What failed in an earlier run is tried afresh."""
        self._troubles.clear()

    def failure(self, name: str) -> str | None:
        trouble = self._troubles.get(name)
        return None if trouble is None else told(trouble.error)

    def raise_trouble(self) -> None:
        """After the last attempt of a run that ends."""
        for name, trouble in self._troubles.items():
            if name not in self._queries.queries:
                continue
            raise SinkFailed(
                f"the output of query {name} could not be handed over: {told(trouble.error)}",
                remedy=_remedy(told(trouble.error)),
            ) from trouble.error


def _remedy(why: str) -> str:
    rest = "everything is committed, and the next run hands over the rest"
    if "ClassNotFoundException" in why or "Failed to find data source" in why:
        return f"put its jar on Spark's path (--packages, spark.jars.packages); {rest}"
    return f"mend the sink; {rest}"
