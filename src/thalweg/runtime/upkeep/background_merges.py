"""Background jobs beside the epochs: merges of large packs, and the writing of cold ones.

A merge of millions of rows takes as long as many epochs; no epoch waits for it. It is begun in one
epoch and applied by a later one, if its packs are still there by then.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future

from thalweg.exec.jobs import Job, Result
from thalweg.exec.shared_filters.merge_sets import MergeSetsTask
from thalweg.exec.upkeep.gather_output import (
    GatherRejectsTask,
    GatherResult,
    GatherTask,
    RejectsResult,
)
from thalweg.exec.upkeep.merge_packs import MergeResult, MergeTask

log = logging.getLogger("thalweg")
Merge = MergeTask | MergeSetsTask | GatherTask | GatherRejectsTask
Merged = MergeResult | GatherResult | RejectsResult
LARGE = 500_000
"""Rows from which on a merge is done in the background."""
LARGE_OUTPUT = 2 << 20
"""The same in bytes, for output: sets of members may make it large with few rows."""
COLD_SELDOM = 10
"""One in this many seconds is spent on writing cold packs: that can wait, and epochs need the
disk."""


class BackgroundMerges:
    """The jobs under way. `begin` starts a job and returns a future of its result."""

    def __init__(self, begin: Callable[[Job], Future[Result]]) -> None:
        self._begin = begin
        self._under_way: list[tuple[Merge, Future[Result]]] = []
        self._rests_until = 0.0

    def take(self, jobs: Iterable[Job]) -> list[Job]:
        """Begin large merges; returns the other jobs. Packs that are being merged are left alone
        meanwhile."""
        left: list[Job] = []
        busy = {p.name for task, _ in self._under_way for p in task.packs}
        for job in jobs:
            if not isinstance(job, Merge):
                left.append(job)
            elif busy.intersection(p.name for p in job.packs):
                continue
            elif not _is_cold(job) and not _is_large(job):
                left.append(job)
            elif not self._under_way:  # one at a time: the epochs need the cores
                self._start(job)
        return left

    def _start(self, job: Merge) -> None:
        begun = time.monotonic()
        if _is_cold(job) and begun < self._rests_until:
            return

        def rest(_: Future[Result]) -> None:
            now = time.monotonic()
            self._rests_until = now + (COLD_SELDOM - 1) * (now - begun)

        future = self._begin(job)
        self._under_way.append((job, future))
        if _is_cold(job):
            future.add_done_callback(rest)

    def finished(self) -> list[Merged]:
        """Merges that are done; one that failed is tried again."""
        done = [f for _, f in self._under_way if f.done()]
        self._under_way = [(t, f) for t, f in self._under_way if f not in done]
        found: list[Merged] = []
        for future in done:
            error = future.exception()
            result = None if error is not None else future.result()
            if isinstance(result, Merged):
                found.append(result)
            else:
                log.warning("a merge failed and is tried again: %s", error or result)
        return found


def _is_cold(job: Merge) -> bool:
    return isinstance(job, MergeTask) and job.cold


def _is_large(job: Merge) -> bool:
    if not isinstance(job, MergeTask) and sum(p.bytes for p in job.packs) >= LARGE_OUTPUT:
        return True
    return sum(p.rows for p in job.packs) >= LARGE
