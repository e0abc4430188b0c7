"""Running jobs in this process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from thalweg.exec.expressions.evaluate import UserFunction
from thalweg.exec.jobs import Job, Result, execute_all
from thalweg.store.pack_cache import PackCache


@dataclass(slots=True)
class LocalExecutor:
    """Runs jobs here, one after another."""

    cache: PackCache

    def run(
        self, batches: Sequence[Sequence[Job]], functions: Mapping[str, UserFunction]
    ) -> list[list[Result]]:
        return [execute_all(batch, self.cache, functions) for batch in batches]

    def aside(self, job: Job) -> Future[Result]:
        done: Future[Result] = Future()
        done.set_result(execute_all([job], self.cache, {})[0])
        return done
