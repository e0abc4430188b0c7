"""Profiling of a join: sample rows go through a pipeline leaf by leaf, as if nothing were
cached."""

from __future__ import annotations

import numpy as np

from thalweg.columns.frame import Changes
from thalweg.exec.joins.enumerate import Output
from thalweg.exec.joins.pipeline_run import TwoPhases
from thalweg.exec.tactics import Effort, JoinSeen, JoinTactic, Sample
from thalweg.instants import Ints
from thalweg.store.hashing import Hashes, hash_columns


def profile(run: TwoPhases, tactic: JoinTactic, seen: JoinSeen) -> None:
    """Record what a pipeline, given without subresults, does to the first rows of its source. `run`
    is over all of them."""
    leaf, rows = run.pipeline.leaf, len(run.changes)
    seen.rows[leaf] = seen.rows.get(leaf, 0) + rows
    if leaf not in tactic.leaves or not rows:
        return
    for number, (source, place, columns) in enumerate(tactic.keys):
        if source == leaf and not place:  # keys of the rows themselves: all of them are at hand
            frame = run.changes.frame
            arrays = [frame.columns[c].slice(0, _MOST_KEYS).to_arrow() for c in columns]
            seen.keys[number] = hash_columns(arrays, min(rows, _MOST_KEYS))
    wanted = max(int(tactic.share * rows), min(tactic.least, int(_MOST_SHARE * rows)), 1)
    chosen = _first_in_time(run.changes, wanted)
    with run.ctx.counting_apart(PROFILE_PROBES):
        _through(run, tactic, chosen, seen)


def _through(run: TwoPhases, tactic: JoinTactic, chosen: Ints, seen: JoinSeen) -> None:
    """Run some rows through the pipeline, and through those that would maintain caches."""
    leaf = run.pipeline.leaf
    watch = _Watch({n: k for n, k in enumerate(tactic.keys) if k[0] == leaf and k[1]})
    seen.samples[leaf] = _sample(run.sampled(chosen), run.sampled(chosen), watch)
    seen.keys |= watch.keys
    few = chosen[: tactic.least]
    for number, apart in enumerate(tactic.upkeep):
        if apart.leaf == leaf:
            seen.upkeep[number] = _effort(run.sampled(few, apart))


def _sample(plain: TwoPhases, factorised: TwoPhases, watch: _Watch) -> Sample:
    """The number of tuples after each operator, as a cache would see them, and the cost of
    computing them, which is less where partners of one row are not multiplied on the way."""
    plain.results(plain.wanted, watch)
    return Sample(tuple(watch.handled), _effort(factorised))


def _effort(run: TwoPhases) -> Effort:
    if run.pipeline.branches:
        run.drop_all()
    results = len(run.results(run.wanted))
    work = run.work.values()
    looked_up, made = tuple(w.looked_up for w in work), tuple(w.made for w in work)
    return Effort(len(run.changes), looked_up, made, results)


PROFILE_PROBES = "profile probes"
_MOST_KEYS = 1 << 16
_MOST_SHARE = 0.1  # however few rows there are, most of them are not profiled


def _first_in_time(changes: Changes, count: int) -> Ints:
    """Rows adjacent in time, so that keys that recur soon are seen together."""
    if len(changes) > count:
        some = np.argpartition(changes.ts, count)[:count]
        return some[np.argsort(changes.ts[some], kind="stable")]
    return np.argsort(changes.ts, kind="stable")


class _Watch:
    """Records the number of tuples and the wanted keys before each operator, and after the last."""

    def __init__(self, wanted: dict[int, tuple[int, int, tuple[str, ...]]]) -> None:
        self.keys: dict[int, Hashes] = {}
        self._wanted = wanted
        self.handled: list[int] = []

    def __call__(self, place: int, out: Output) -> None:
        self.handled.append(len(out))
        for number, (_, at, columns) in self._wanted.items():
            if at == place:
                frame = out.frame(set(columns))
                arrays = [frame.columns[c].to_arrow() for c in columns]
                self.keys[number] = hash_columns(arrays, len(out))
