"""Drop probing observed by a tactic: how many rows each leaf drops, and what probing it costs."""

from __future__ import annotations

from time import perf_counter

import numpy as np

from thalweg.exec.joins.join_profile import PROFILE_PROBES
from thalweg.exec.joins.pipeline_run import TwoPhases
from thalweg.exec.tactics import DROPPED, Observation, PipelineTactic, Verdicts
from thalweg.instants import Ints


def watched(run: TwoPhases, tactic: PipelineTactic) -> Observation:
    """Drop all rows without partners. A sample is looked up in every leaf first, along the path
    that leads there. Leaves are numbered in the order of FROM, the source left out."""
    probes, numbers = run.pipeline.probes, _numbers(run)
    rows = len(run.changes)
    extra, extra_seconds, verdicts = _profile(run, numbers, tactic.among(rows))
    evaluated, survivors = np.zeros((2, len(probes)), np.int64)
    seconds = np.zeros(len(probes))
    for position, probe in enumerate(probes):
        left = run.left
        if left:
            begun = perf_counter()
            run.drop(probe)
            seconds[numbers[probe.leaf]] = perf_counter() - begun
            evaluated[numbers[probe.leaf]] = left
        survivors[position] = run.left
    dropped = (verdicts == DROPPED).any(axis=1)
    return Observation(
        tuple(numbers[p.leaf] for p in probes), rows, evaluated, extra, seconds, extra_seconds,
        np.zeros(len(probes)), survivors, verdicts[dropped], int(np.count_nonzero(~dropped)),
    )  # fmt: skip


def sampled(run: TwoPhases, tactic: PipelineTactic) -> Observation | None:
    """Observe what a pipeline would do to a sample of its rows, where it is not run leaf by leaf
    itself."""
    probes, numbers = run.pipeline.probes, _numbers(run)
    sample = tactic.among(len(run.changes))
    if not len(sample):
        return None
    extra, seconds, verdicts = _profile(run, numbers, sample)
    order = tuple(numbers[p.leaf] for p in probes)
    passed = np.cumprod(verdicts[:, list(order)] != DROPPED, axis=1).sum(axis=0)
    evaluated = np.zeros(len(probes), np.int64)
    evaluated[list(order)] = np.concatenate([[len(sample)], passed[:-1]])
    spent = np.divide(seconds * evaluated, extra)
    dropped = (verdicts == DROPPED).any(axis=1)
    return Observation(
        order, len(sample), evaluated, extra, spent, seconds, np.zeros(len(probes)), passed,
        verdicts[dropped], int(np.count_nonzero(~dropped)),
    )  # fmt: skip


def _numbers(run: TwoPhases) -> dict[int, int]:
    return {leaf: n for n, leaf in enumerate(sorted(p.leaf for p in run.pipeline.probes))}


def _profile(
    run: TwoPhases, numbers: dict[int, int], sample: Ints
) -> tuple[Ints, np.ndarray, Verdicts]:
    count = len(numbers)
    verdicts = np.zeros((len(sample), count), np.int8)
    seconds = np.zeros(count)
    if not len(sample):
        return np.zeros(count, np.int64), seconds, verdicts
    profiled = run.sampled(sample)
    with run.ctx.counting_apart(PROFILE_PROBES):
        for probe in run.pipeline.probes:
            begun = perf_counter()
            verdicts[:, numbers[probe.leaf]] = profiled.verdict(probe)
            seconds[numbers[probe.leaf]] = perf_counter() - begun
    return np.full(count, len(sample), np.int64), seconds, verdicts
