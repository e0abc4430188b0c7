"""The vacuum of a path: first a plan of what is superfluous, then its execution.

Results are dropped by a commit before any of their files is deleted, so a vacuum that dies anywhere
leaves a path that opens. Output that a callback or a follower may still have to receive is kept,
however old, and the changes of a relation become part of its answer.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from thalweg.exec.relations.emit import SIGN
from thalweg.runtime.results.described_schema import read_schema
from thalweg.runtime.state.engine_state import EngineState
from thalweg.runtime.state.open_path import PACK_FOLDERS, leftovers, sweep
from thalweg.runtime.state.output_keys import epochs_of
from thalweg.runtime.upkeep.inspection import Files
from thalweg.runtime.upkeep.output_retention import (
    due_output,
    epochs_before,
    fold_into_base,
    forget_clocks,
    forget_output,
)
from thalweg.store import manifest
from thalweg.store.leases import followed
from thalweg.store.log import entries_from
from thalweg.store.packs import TIME
from thalweg.store.seals import sealed_json
from thalweg.store.storage import DRAFTS, LocalStorage, Storage


@dataclass(frozen=True, slots=True)
class Forgotten:
    """Keys of output to drop, by owner, and of old output that has to stay: sinks or followers have
    not received it."""

    by_owner: Mapping[str, Sequence[str]]
    unseen: Sequence[str]

    @property
    def keys(self) -> list[str]:
        return [key for keys in self.by_owner.values() for key in keys]


@dataclass(frozen=True, slots=True)
class VacuumPlan:
    """The plan of a vacuum. `before` and `after` are the committed state and the one to commit, the
    same if no result is dropped; `written` is the size of the whole manifest, None for none."""

    epoch: int
    before: manifest.State
    after: manifest.State
    forgotten: Forgotten
    orphans: Files
    results: Files
    manifests: Files
    written: int | None
    folders: tuple[str, ...]

    @property
    def result_epochs(self) -> int:
        return _epochs(self.forgotten.keys)

    @property
    def undelivered(self) -> int:
        """Epochs of results that had to stay."""
        return _epochs(self.forgotten.unseen)

    @property
    def is_commit(self) -> bool:
        return self.result_epochs > 0

    @property
    def freed(self) -> int:
        """Bytes freed on disk; manifests written for it are subtracted, answers of relations are
        not."""
        removed = self.orphans.bytes + self.results.bytes + self.manifests.bytes
        return removed - (self.written or 0) - (len(self._difference) if self.is_commit else 0)

    @property
    def _difference(self) -> bytes:
        return sealed_json(manifest.difference(self.before, self.after))

    @property
    def is_idle(self) -> bool:
        found = (self.orphans.files, self.results.files, self.manifests.files, len(self.folders))
        return not any(found) and not self.is_commit


def plan_vacuum(storage: Storage, results_before: int | None, clock: int) -> VacuumPlan:
    """Plan the vacuum of a path without a running engine; results committed before an instant are
    dropped."""
    epoch, before = manifest.load(storage)
    state, forgotten = EngineState.from_json(before), Forgotten({}, ())
    results: set[str] = set()
    if results_before is not None and before:
        forgotten, results = _forget_results(storage, state, results_before)
    after = before
    if forgotten.keys:
        epoch += 1
        state.epoch, state.clock = epoch, clock
        after = state.to_json()
    names = [n for folder in (*PACK_FOLDERS, DRAFTS) for n in storage.listing(folder)]
    gone = leftovers(names, state, entries_from(storage, state.next_seq))
    results &= set(gone)
    old = manifest.superseded(storage, epoch)
    sizes = {n: storage.size(n) for n in (*gone, *old)}
    return VacuumPlan(
        epoch=epoch,
        before=before,
        after=after,
        forgotten=forgotten,
        orphans=Files.of((n for n in gone if n not in results), sizes),
        results=Files.of(results, sizes),
        manifests=Files.of(old, sizes),
        written=len(sealed_json(after)) if old else None,
        folders=_empty_folders(storage, set(gone)),
    )


def carry_out(storage: Storage, plan: VacuumPlan) -> None:
    """Execute a plan: first the commits, then the deletions, so that no referenced file is ever
    missing."""
    manifest.check_format(storage)  # what follows is written as of this version
    after = _with_answers(storage, plan) if plan.is_commit else plan.after
    if plan.is_commit:
        manifest.commit_manifest(storage, plan.epoch, plan.before, after)
    if plan.written is not None:
        manifest.write_whole(storage, plan.epoch, after)
    sweep(storage, EngineState.from_json(after))
    for folder in plan.folders:
        with contextlib.suppress(OSError):
            Path(folder).rmdir()


def _forget_results(storage: Storage, state: EngineState, limit: int) -> tuple[Forgotten, set[str]]:
    """Drop old results from a state; returns what is dropped, and its files."""
    old = epochs_before(state.clocks, limit)
    due, unseen = due_output(state, old, followed(storage))
    files = {f for name, keys in due.items() for f in forget_output(state, name, keys)}
    forget_clocks(state, old)
    return Forgotten(due, tuple(unseen)), files


def _with_answers(storage: Storage, plan: VacuumPlan) -> manifest.State:
    """The state in which the dropped changes are part of their relations' answers."""
    state = EngineState.from_json(plan.before)
    prefix = f"q/answers/{state.incarnation}-{plan.epoch}-"
    after = EngineState.from_json(plan.after)
    for name, keys in plan.forgotten.by_owner.items():
        if name not in state.queries:
            continue
        schema = state.queries[name].definition.schema
        names = read_schema(schema).names if schema else []
        if SIGN in names:
            columns = [n for n in names if n not in (TIME, SIGN)]
            fold_into_base(state, name, keys, columns, storage, prefix)
            folded, kept = state.queries[name].output, after.queries[name].output
            after.queries[name].output = replace(
                kept, base=folded.base, base_until=folded.base_until
            )
    return after.to_json()


def _epochs(keys: Collection[str]) -> int:
    return len({e for first, last in map(epochs_of, keys) for e in range(first, last + 1)})


def _empty_folders(storage: Storage, gone: Collection[str]) -> tuple[str, ...]:
    """Folders of ours that hold nothing but files to delete, the innermost first."""
    if not isinstance(storage, LocalStorage):
        return ()
    found: list[str] = []
    for folder in PACK_FOLDERS:
        for here, inner, files in os.walk(Path(storage.root, folder), topdown=False):
            names = [Path(here, f).relative_to(storage.root).as_posix() for f in files]
            subfolders = [str(Path(here, i)) for i in inner]
            if all(n in gone for n in names) and all(s in found for s in subfolders):
                found.append(here)
    return tuple(found)
