"""Merges of large packs, and writing what has become cold, beside the epochs.

A merge of millions of rows takes as long as many epochs; nobody has to wait for it. It is begun in
one epoch and taken over by a later one, if its packs are still there by then.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from concurrent.futures import Future

from thalweg.exec.jobs import Job, Result
from thalweg.exec.upkeep import MergeResult, MergeTask

log = logging.getLogger("thalweg")
LARGE = 500_000
"""Rows from which on a merge is done aside."""


class Aside:
    """What is under way. `begin` starts a job and gives a future of its result."""

    def __init__(self, begin: Callable[[Job], Future[Result]]) -> None:
        self._begin = begin
        self._under_way: list[tuple[MergeTask, Future[Result]]] = []

    def take(self, jobs: Iterable[Job]) -> list[Job]:
        """Begin large merges; the other jobs are given back. Packs that are being merged are left
        alone meanwhile."""
        left: list[Job] = []
        busy = {p.name for task, _ in self._under_way for p in task.packs}
        for job in jobs:
            if not isinstance(job, MergeTask):
                left.append(job)
            elif busy.intersection(p.name for p in job.packs):
                continue
            elif not job.cold and sum(p.rows for p in job.packs) < LARGE:
                left.append(job)
            elif not self._under_way:  # one at a time: the epochs need the cores
                self._under_way.append((job, self._begin(job)))
        return left

    def finished(self) -> list[MergeResult]:
        """Merges that are done; one that failed is tried again."""
        done = [f for _, f in self._under_way if f.done()]
        self._under_way = [(t, f) for t, f in self._under_way if not f.done()]
        found = []
        for future in done:
            error = future.exception()
            result = None if error is not None else future.result()
            if isinstance(result, MergeResult):
                found.append(result)
            else:
                log.warning("a merge failed and is tried again: %s", error or result)
        return found
