"""Compaction of output and rejects: an engine that has run for long keeps few packs of each query.

The state is committed with every epoch, so it must not grow with the number of epochs whose output
is still kept.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from thalweg.exec.shared_filters.merge_sets import MergeSetsTask
from thalweg.exec.upkeep.gather_output import (
    GatherRejectsTask,
    GatherResult,
    GatherTask,
    RejectsResult,
)
from thalweg.instants import BEFORE_TIME
from thalweg.runtime.settings import COMPACT_FROM, Settings
from thalweg.runtime.state.engine_state import EngineState
from thalweg.runtime.state.internal_names import kind_of_output
from thalweg.runtime.state.output_keys import (
    epochs_named,
    epochs_of,
    key_of,
    last_epoch_of,
    owner_of,
    place_of,
)
from thalweg.runtime.state.outputs import Outputs
from thalweg.runtime.state.pending_files import PendingFiles
from thalweg.runtime.state.query_state import FILTERS, Described
from thalweg.runtime.upkeep.compaction import worth_merging
from thalweg.store.packs import PackMeta

AT_ONCE = 8
"""One in this many due queries is compacted in an epoch: the others can wait."""
SHARE_OF_RETAINED = 32
"""Output is dropped together with what it was compacted with: that may span no more than this part
of the time for which results are kept."""
ENOUGH_BYTES = 4 << 20
"""Packs as large as this are left as they are."""
MOST_REJECTS = 256 << 20
"""Bytes of rejects that are read and written at once, at most."""
MOST_KEYS = 64
"""The largest number of keys merged into one pack at a time: an epoch may have to wait for it."""
MOST_STRETCHES = 16
"""The number of packs made of a query's output at a time, where very much has piled up."""


class OutputCompaction:
    """Selects the output to be compacted."""

    def __init__(
        self, state: EngineState, outputs: Outputs, settings: Settings, files: PendingFiles
    ) -> None:
        self.state = state
        self.settings = settings
        self.files = files
        self._fresh = outputs.fresh

    def tasks(self) -> Iterator[GatherTask | MergeSetsTask]:
        due = [name for name, epochs in self._fresh.items() if epochs >= self.settings.compact_from]
        if not due and len(self.state.clocks) <= 2 * len(self.state.outputs) + COMPACT_FROM:
            return
        keys: dict[str, list[str]] = {n: [] for n in due[: math.ceil(len(due) / AT_ONCE)]}
        for key in self.state.outputs:
            if (owner := owner_of(key)) in keys:
                keys[owner].append(key)
        named = epochs_named(self.state.outputs)
        self.state.clocks = {e: c for e, c in self.state.clocks.items() if e in named}
        for name, own in keys.items():
            fresh = self._fresh.pop(name)
            tasks = [self._task(name, s) for s in self._chosen(name, sorted(own, key=epochs_of))]
            if tasks:  # the compacted pack may be next, but after the others
                self._fresh[name] = fresh
            yield from tasks

    def _chosen(self, name: str, keys: Sequence[str]) -> list[Sequence[str]]:
        """Neighbours that are worth compacting, among output that sinks have received."""
        query = self.state.queries.get(name)
        if query is not None:
            keys = [k for k in keys if last_epoch_of(k) <= query.progress.delivered]
        sizes = [sum(p[2] for p in self.state.outputs[k]) for k in keys]
        begin = 0
        found: list[Sequence[str]] = []
        while begin < len(keys) and len(found) < MOST_STRETCHES:
            stop, is_closed = self._stretch(keys, sizes, begin)
            some = sizes[begin:stop]
            # a pack that is rewritten repeatedly must at least double each time
            pays = len(some) >= self.settings.compact_from // 2 and 2 * max(some) <= sum(some)
            if len(some) > 1 and (is_closed or pays):
                found.append(keys[begin:stop])
            begin = stop if is_closed or pays else begin + 1
        return found

    def _stretch(self, keys: Sequence[str], sizes: Sequence[int], begin: int) -> tuple[int, bool]:
        """The end of the stretch of keys from one on that fit into one pack, and whether nothing
        can be added to it."""
        longest, total, stop = (
            self.settings.results_retain / SHARE_OF_RETAINED,
            sizes[begin],
            begin + 1,
        )
        while total < ENOUGH_BYTES:
            if stop == len(keys):
                return stop, False
            if (
                sizes[stop] >= ENOUGH_BYTES
                or stop - begin == MOST_KEYS
                or self._took(keys[begin], keys[stop]) > longest
            ):
                break
            total += sizes[stop]
            stop += 1
        return stop, True

    def _took(self, first: str, last: str) -> int:
        begin, end = epochs_of(first)[0], epochs_of(last)[1]
        return self.state.clocks.get(str(end), 0) - self.state.clocks.get(str(begin), 0)

    def _task(self, name: str, keys: Sequence[str]) -> GatherTask | MergeSetsTask:
        packs = [tuple(map(PackMeta.from_json, self.state.outputs[k])) for k in keys]
        prefix = self.files.prefix_of(name)
        if kind_of_output(name) == FILTERS:
            everything = tuple(p for each in packs for p in each)
            return MergeSetsTask(name, tuple(keys), everything, BEFORE_TIME, prefix)
        parts = tuple((last_epoch_of(k), each) for k, each in zip(keys, packs, strict=True))
        return GatherTask(name, tuple(keys), parts, prefix)


def replace_compacted(state: EngineState, result: GatherResult) -> list[str]:
    """Replace packs by the compacted one; returns the files that are superfluous then."""
    outputs = state.outputs
    present = {p[0] for key in result.keys for p in outputs.get(key, ())}
    merged = [] if result.merged is None else [result.merged]
    if not present.issuperset(result.old):  # some of them have been dropped meanwhile
        return [p.name for p in merged]
    for key in result.keys:
        left = [p for p in outputs.pop(key) if p[0] not in result.old]
        if left:
            outputs[key] = left
    if merged:
        key = key_of(result.name, epochs_of(result.keys[0])[0], epochs_of(result.keys[-1])[1])
        outputs[key] = [*outputs.get(key, ()), *(p.to_json() for p in merged)]
    return list(result.old)


def merges_of_rejects(state: EngineState, files: PendingFiles) -> Iterator[GatherRejectsTask]:
    lists: list[tuple[bool, str, Sequence[Described]]]
    lists = [(True, name, stream.rejects) for name, stream in state.streams.items()]
    lists += [(False, name, query.output.rejects) for name, query in state.queries.items()]
    for of_stream, owner, packs in lists:
        if packs:
            begin, end = worth_merging([p[1] for p in packs]) or (0, 0)
            if end and sum(p[2] for p in packs[begin:end]) <= MOST_REJECTS:
                some = tuple(map(PackMeta.from_json, packs[begin:end]))
                prefix = files.prefix("log") if of_stream else files.prefix_of(owner)
                yield GatherRejectsTask(owner, of_stream, some, prefix)


def replace_rejects(state: EngineState, result: RejectsResult) -> list[str]:
    """Like `replace_compacted`, for rejects."""
    stream, query = state.streams.get(result.owner), state.queries.get(result.owner)
    packs: list[Described] = []
    if result.of_stream and stream is not None:
        packs = stream.rejects
    elif not result.of_stream and query is not None:
        packs = list(query.output.rejects)
    at = place_of([p[0] for p in packs], result.old)
    if at is None:
        return [result.merged.name]
    packs[at : at + len(result.old)] = [result.merged.to_json()]
    if not result.of_stream and query is not None:
        query.output = replace(query.output, rejects=tuple(packs))
    return list(result.old)
