"""Running the jobs of an epoch, and how long that takes."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Protocol

from thalweg.exec.expressions.evaluate import UserFunction
from thalweg.exec.jobs import Job, Result

Batches = Sequence[Sequence[Job]]


class Executor(Protocol):
    """Runs lists of jobs, each list in one place, and returns their results in order."""

    def run(
        self, batches: Batches, functions: Mapping[str, UserFunction]
    ) -> list[list[Result]]: ...

    def aside(self, job: Job) -> Future[Result]:
        """Begin a job that the epoch does not wait for."""
        ...


class JobRunner:
    """Runs jobs with the functions that are registered. `seconds` is what went into the executor
    since it was last set."""

    def __init__(self, executor: Executor, functions: Mapping[str, UserFunction]) -> None:
        self.executor = executor
        self.functions = functions
        self.seconds = 0.0

    def run(self, batches: Batches) -> list[list[Result]]:
        begun = time.perf_counter()
        results = self.executor.run(batches, self.functions)
        self.seconds += time.perf_counter() - begun
        return results

    def aside(self, job: Job) -> Future[Result]:
        return self.executor.aside(job)
