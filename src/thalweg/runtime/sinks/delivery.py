"""Handing committed output to sinks, epoch by epoch, and remembering how far each query has come.

A sink that fails is tried again, later and later; meanwhile its output is kept and the other
queries go on. Marks go into the next manifest, so a crash repeats at most what had not been marked.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field

import pyarrow as pa

from thalweg.errors import SinkFailed
from thalweg.runtime.session.query_handle import DROPPED, Query
from thalweg.runtime.session.session import Session
from thalweg.runtime.state.output_keys import key_of
from thalweg.store.packs import PackMeta

log = logging.getLogger("thalweg")
FIRST_WAIT, LONGEST_WAIT = 0.5, 30.0


@dataclass(slots=True)
class _Trouble:
    """Why a query's output could not be handed over, and when to try again."""

    error: Exception
    wait: float
    due: float


@dataclass(slots=True)
class Delivery:
    session: Session
    _troubles: dict[str, _Trouble] = field(default_factory=dict)

    def deliver(self, *, insist: bool = False) -> None:
        """Hand over what is committed and not marked yet; with `insist`, also where a sink that
        failed is not due yet."""
        state = self.session.coordinator.state
        for name in list(state.queries):  # a callback may add and drop some
            query = self.session.queries.get(name)
            if query is None or name not in state.queries:
                continue
            trouble = self._troubles.get(name)
            if trouble is None or insist or time.monotonic() >= trouble.due:
                self._one(query, state.epoch)

    def _one(self, query: Query, last: int) -> None:
        mark = self.session.coordinator.state.queries[query.name]
        try:
            for epoch in self._pending(query, mark.delivered, last):
                output = self._output(query, epoch)
                for sink in query.sinks:
                    sink.write(epoch, output)
                mark.delivered = epoch
                if query.status == DROPPED:
                    return
            mark.delivered = last
            self._troubles.pop(query.name, None)
        except Exception as error:
            self._note(query, error)

    def _pending(self, query: Query, delivered: int, last: int) -> list[int]:
        if not query.sinks or delivered == last:
            return []
        outputs = self.session.coordinator.state.outputs
        return [e for e in range(delivered + 1, last + 1) if key_of(query.name, e, e) in outputs]

    def _output(self, query: Query, epoch: int) -> pa.Table:
        described = self.session.coordinator.state.outputs[key_of(query.name, epoch, epoch)]
        packs = [PackMeta.from_json(p) for p in described]
        return self.session.output_of(query.schema, packs)

    def _note(self, query: Query, error: Exception) -> None:
        known = self._troubles.get(query.name)
        wait = FIRST_WAIT if known is None else min(2 * known.wait, LONGEST_WAIT)
        self._troubles[query.name] = _Trouble(error, wait, time.monotonic() + wait)
        if known is None or str(known.error) != str(error):
            log.warning(
                "query %s: its output cannot be handed over (%s: %s); it is kept and tried again",
                query.name, type(error).__name__, error,
            )  # fmt: skip

    def failure(self, name: str) -> str | None:
        trouble = self._troubles.get(name)
        return None if trouble is None else f"{type(trouble.error).__name__}: {trouble.error}"

    def raise_trouble(self) -> None:
        """After the last attempt of a run that ends."""
        for name, trouble in self._troubles.items():
            raise SinkFailed(
                f"the output of query {name} could not be handed over: "
                f"{type(trouble.error).__name__}: {trouble.error}",
                remedy="mend the sink; everything is committed, and the next run hands over the "
                "rest",
            ) from trouble.error
