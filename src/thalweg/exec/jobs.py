"""Jobs of workers, and `execute`, which runs any of them."""

from __future__ import annotations

import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from thalweg.errors import PathError
from thalweg.exec.expressions.evaluate import UserFunction
from thalweg.exec.leaves.window_store import KeepResult, KeepTask, keep
from thalweg.exec.shared_filters.merge_sets import MergeSetsTask, merge_sets
from thalweg.exec.step import step
from thalweg.exec.task import StepResult, StepTask
from thalweg.exec.upkeep.gather_output import (
    GatherRejectsTask,
    GatherResult,
    GatherTask,
    RejectsResult,
    gather,
    gather_rejects,
)
from thalweg.exec.upkeep.merge_packs import (
    CleanResult,
    CleanTask,
    FoldResult,
    FoldRowsTask,
    FoldTask,
    MergeResult,
    MergeTask,
    clean,
    fold,
    fold_rows,
    merge,
)
from thalweg.store.pack_cache import PackCache


@dataclass(frozen=True, slots=True)
class UpkeepFailed:
    """A merge or fold that failed; it is tried again in the next epoch."""

    error: str


Upkeep = (
    MergeTask | FoldTask | FoldRowsTask | KeepTask | MergeSetsTask | GatherTask | GatherRejectsTask
)  # fmt: skip
Job = StepTask | CleanTask | Upkeep
Result = (
    StepResult | CleanResult | MergeResult | FoldResult | KeepResult | GatherResult | RejectsResult
    | UpkeepFailed
)  # fmt: skip


def execute(job: Job, cache: PackCache, functions: Mapping[str, UserFunction]) -> Result:
    """Run one job. An error in a query's own code is returned, not raised, so that other queries
    continue. Files that cannot be read or written end the run: no query is at fault."""
    if isinstance(job, StepTask):
        try:
            return step(job, cache, functions)
        except (OSError, MemoryError, PathError):
            raise
        except Exception as error:
            shown = traceback.format_exc(limit=-4)
            return StepResult(job.query, error=f"{type(error).__name__}: {error}\n{shown}")
    if isinstance(job, CleanTask):
        return clean(job, cache, functions)
    try:
        return _upkeep(job, cache, functions)
    except (OSError, MemoryError, PathError):
        raise
    except Exception as error:  # packs stay apart, answers stay right
        return UpkeepFailed(f"{type(job).__name__}: {type(error).__name__}: {error}")


def _upkeep(job: Upkeep, cache: PackCache, functions: Mapping[str, UserFunction]) -> Result:
    if isinstance(job, MergeTask):
        return merge(job, cache, functions)
    if isinstance(job, FoldTask):
        return fold(job, cache, functions)
    if isinstance(job, KeepTask):
        return keep(job, cache, functions)
    if isinstance(job, MergeSetsTask):
        return merge_sets(job, cache, functions)
    if isinstance(job, GatherTask):
        return gather(job, cache, functions)
    if isinstance(job, GatherRejectsTask):
        return gather_rejects(job, cache, functions)
    return fold_rows(job, cache, functions)


def execute_all(
    jobs: Sequence[Job], cache: PackCache, functions: Mapping[str, UserFunction]
) -> list[Any]:
    return [execute(job, cache, functions) for job in jobs]
