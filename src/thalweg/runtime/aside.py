"""Merges of large packs, and writing what has become cold, beside the epochs.

A merge of millions of rows takes as long as many epochs; nobody has to wait for it. It is begun in
one epoch and taken over by a later one, if its packs are still there by then.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future

from thalweg.exec.jobs import Job, Result
from thalweg.exec.upkeep import MergeResult, MergeTask

log = logging.getLogger("thalweg")
LARGE = 500_000
"""Rows from which on a merge is done aside."""
SELDOM = 10
"""Of so many seconds one goes into writing what is cold: it can wait, others want the disk."""


class Aside:
    """What is under way. `begin` starts a job and gives a future of its result."""

    def __init__(self, begin: Callable[[Job], Future[Result]]) -> None:
        self._begin = begin
        self._under_way: list[tuple[MergeTask, Future[Result]]] = []
        self._begun = 0.0
        self._rests_until = 0.0

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
            elif self._may_begin(job):
                self._begun = time.monotonic()
                self._under_way.append((job, self._begin(job)))
        return left

    def _may_begin(self, job: MergeTask) -> bool:
        """One at a time: the epochs need the cores."""
        rests = job.cold and time.monotonic() < self._rests_until
        return not self._under_way and not rests

    def finished(self) -> list[MergeResult]:
        """Merges that are done; one that failed is tried again."""
        done = [f for _, f in self._under_way if f.done()]
        if any(task.cold and f.done() for task, f in self._under_way):
            now = time.monotonic()
            self._rests_until = now + (SELDOM - 1) * (now - self._begun)
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
