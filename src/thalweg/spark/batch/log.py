"""What batch queries did, by shape: orders, sizes, and times as far as they were measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from thalweg.estimate.figure import Figure
from thalweg.lang.parsing.expression_parser import Dialect
from thalweg.lang.syntax import TokenType

_PATIENCE = 2000


@dataclass(slots=True)
class BatchRun:
    """One query given to `batch`.

    `order` and `written` are the trees of joins that run and that Spark would have run; `bound` is
    the guaranteed size of the join, `estimate` the textbook's; `rows` and `written_rows` are the
    intermediate rows predicted for both orders. Times are in seconds: `planning` without
    `preparing`, which is done once for each version of a relation; `execution` of the first run of
    the result, None while it has not run.
    """

    shape: str
    text: str
    reordered: bool = False
    order: str | None = None
    written: str | None = None
    bound: Figure | None = None
    estimate: float | None = None
    rows: float | None = None
    written_rows: float | None = None
    planning: float = 0.0
    preparing: float = 0.0
    planning_jobs: int = 0
    execution: float | None = None
    notes: tuple[str, ...] = ()
    marks: tuple[int, ...] = field(default=(), repr=False)

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

    def add(self, run: BatchRun) -> None:
        self.runs.append(run)
        del self.runs[: -self.most]

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
        self.measure()
        runs = [r for r in self.runs if r.shape == shape and r.seconds is not None]
        ours = [r.seconds for r in runs if r.reordered and r.seconds is not None]
        theirs = [r.execution for r in runs if not r.reordered and r.execution is not None]
        return bool(ours and theirs) and min(ours) > min(theirs)

    def measure(self) -> None:
        """Look up the executions of results that have run meanwhile."""
        with suppress(Py4JError):  # executions are told of a little later than they end
            self.spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty(_PATIENCE)
        waiting = [r for r in self.runs if r.execution is None and r.marks]
        if not waiting:
            return
        store = self.spark._jsparkSession.sharedState().statusStore()
        executions = store.executionsList()
        for i in range(executions.size()):
            one = executions.apply(i)
            if not one.completionTime().isDefined():
                continue
            text = one.physicalPlanDescription()
            for run in waiting:
                if run.execution is None and all(f"#{m}" in text for m in run.marks):
                    took = one.completionTime().get().getTime() - one.submissionTime()
                    run.execution = took / 1000
