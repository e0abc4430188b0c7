"""What batch queries did, by shape: orders, sizes, and times as far as they were measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from thalweg.estimate.figure import Figure
from thalweg.lang.parsing.expression_parser import Dialect
from thalweg.lang.syntax import TokenType

_PATIENCE = 2000
_CAN_BE_ASKED = 8
_NEWEST = 64
"""Executions that are looked at: each costs a call to the JVM."""


@dataclass(slots=True)
class BatchRun:
    """One query given to `batch`.

    `order` and `written` are the trees of joins that run and that Spark would have run; `estimate`
    is the textbook's size of the join. Inputs of `broadcast` are hinted to be sent to every
    machine. `rows` and `written_rows` are the intermediate rows predicted for both orders. Times
    are in seconds: `planning` without `preparing`, which is done once for each version of a
    relation; `execution` of the first run of the result, None while it has not run. `begun` and
    `planned` are when planning began and ended, in ms of the clock; `marks` and `outputs` number
    attributes at both ends of the plan.
    """

    shape: str
    text: str
    reordered: bool = False
    order: str | None = None
    written: str | None = None
    estimate: float | None = None
    broadcast: tuple[str, ...] = ()
    rows: float | None = None
    written_rows: float | None = None
    planning: float = 0.0
    preparing: float = 0.0
    planning_jobs: int = 0
    execution: float | None = None
    notes: tuple[str, ...] = ()
    marks: tuple[int, ...] = field(default=(), repr=False)
    begun: float = 0.0
    planned: float = 0.0
    outputs: tuple[int, ...] = field(default=(), repr=False)
    asked: Callable[[], Figure] | None = field(default=None, repr=False)
    _bound: Figure | None = None

    @property
    def bound(self) -> Figure | None:
        """The guaranteed size of the join. No order depends on it, so it is not computed before it
        is asked for; of runs long past it is not known."""
        if self._bound is None and self.asked is not None:
            self._bound, self.asked = self.asked(), None
        return self._bound

    @property
    def seconds(self) -> float | None:
        """Planning and execution together."""
        return None if self.execution is None else self.planning + self.execution

    def __str__(self) -> str:
        lines = []
        if self.order is not None:
            lines.append(f"order: {self.order}" + ("" if self.reordered else ", as Spark has it"))
        if self.reordered:
            lines.append(f"instead of: {self.written}")
        if self.broadcast:
            lines.append(f"sent to every machine, by their bounds: {', '.join(self.broadcast)}")
        if self.rows is not None and self.written_rows is not None:
            lines.append(
                f"intermediate rows: {self.rows:,.0f} predicted, {self.written_rows:,.0f} in "
                "Spark's order"
            )
        if self.bound is not None:
            lines.append(f"the join has {self.bound}")
        if self.estimate is not None:
            lines.append(f"the textbook's formula says about {self.estimate:,.0f} rows (estimate)")
        run = "not run yet" if self.execution is None else f"execution {self.execution:.3f} s"
        lines.append(f"planning {self.planning:.3f} s, {run} (measured)")
        return "\n".join([*lines, *self.notes])


def shape_of(text: str) -> str:
    """The text with a question mark for each constant."""
    constants = (TokenType.NUMBER, TokenType.STRING)
    words = ("?" if t.token_type in constants else t.text for t in Dialect().tokenize(text))
    return " ".join(words)


@dataclass(slots=True)
class BatchLog(Sequence[BatchRun]):
    """All runs, oldest first; times of executions are asked of Spark when the log is read."""

    spark: SparkSession
    runs: list[BatchRun] = field(default_factory=list)
    most: int = 1000
    _seen: int = -1

    def add(self, run: BatchRun) -> None:
        self.runs.append(run)
        del self.runs[: -self.most]
        for old in self.runs[:-_CAN_BE_ASKED]:  # they hold on to the rows
            old.asked = None

    def __len__(self) -> int:
        return len(self.runs)

    def __getitem__(self, at: Any) -> Any:
        self.measure()
        return self.runs[at]

    def __iter__(self) -> Iterator[BatchRun]:
        self.measure()
        return iter(list(self.runs))

    def is_lost(self, shape: str) -> bool:
        """Whether reordering has cost more than the order as written, where both were measured."""
        runs = [r for r in self.runs if r.shape == shape]
        if len({r.reordered for r in runs}) < 2:
            return False
        self.measure(wait=False)
        ours = [r.seconds for r in runs if r.reordered and r.seconds is not None]
        theirs = [r.execution for r in runs if not r.reordered and r.execution is not None]
        return bool(ours and theirs) and min(ours) > min(theirs)

    def measure(self, *, wait: bool = True) -> None:
        """Look up the executions of results that have run meanwhile. Spark tells of them a little
        later than they end, which may be waited for."""
        if not any(r.execution is None and r.marks for r in self.runs):
            return
        if wait:
            with suppress(Py4JError):
                self.spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty(_PATIENCE)
        store = self.spark._jsparkSession.sharedState().statusStore()
        since = max(store.executionsCount() - _NEWEST, 0)
        executions = store.executionsList(since, _NEWEST)
        for i in range(executions.size()):
            one = executions.apply(i)
            if one.executionId() <= self._seen or not one.completionTime().isDefined():
                continue
            self._seen = one.executionId()
            run = self._of(one.submissionTime(), one.physicalPlanDescription())
            if run is not None:
                took = one.completionTime().get().getTime() - one.submissionTime()
                run.execution = took / 1000

    def _of(self, submitted: float, plan: str) -> BatchRun | None:
        """The run whose result was executed: the last one before over the same columns, best one
        that puts out the same. What ran while one was planned belongs to none."""
        if any(r.begun <= submitted <= r.planned for r in self.runs):
            return None
        before = [
            r
            for r in self.runs
            if r.planned < submitted and r.marks and all(f"#{m}" in plan for m in r.marks)
        ]
        shown = [r for r in before if r.outputs and all(f"#{m}" in plan for m in r.outputs)]
        chosen = shown or before
        return chosen[-1] if chosen and chosen[-1].execution is None else None
