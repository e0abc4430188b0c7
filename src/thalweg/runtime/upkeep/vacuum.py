"""Removing from a path what it does not need: a plan first, then its deeds.

Results are forgotten by a commit before any of their files goes, so a vacuum that dies anywhere
leaves a path that opens. What a callback or a follower may still have to see is kept, however old,
and the changes of a relation become part of its answer.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from thalweg.exec.emit import SIGN
from thalweg.runtime.results.followers import read_schema
from thalweg.runtime.state.engine_state import WHERES, EngineState
from thalweg.runtime.state.open_path import PACK_FOLDERS, leftovers, sweep
from thalweg.runtime.state.output_keys import epochs_named, epochs_of, last_epoch_of, owner_of
from thalweg.runtime.upkeep.inspection import Files
from thalweg.runtime.upkeep.output_retention import add_to, base_until
from thalweg.runtime.upkeep.retention import epochs_before
from thalweg.store import manifest
from thalweg.store.leases import followed
from thalweg.store.log import entries_from
from thalweg.store.packs import TIME
from thalweg.store.storage import DRAFTS, LocalStorage, Storage


@dataclass(frozen=True, slots=True)
class VacuumPlan:
    """What a vacuum does. `before` and `after` are the committed state and the one to commit, the
    same if no result is forgotten; `written` is the size of the whole manifest, None for none."""

    epoch: int
    before: manifest.State
    after: manifest.State
    orphans: Files
    results: Files
    result_epochs: int
    undelivered: int
    manifests: Files
    written: int | None
    folders: tuple[str, ...]

    @property
    def is_commit(self) -> bool:
        return self.result_epochs > 0

    @property
    def freed(self) -> int:
        """Bytes fewer on disk afterwards; manifests written for it are taken off, answers of
        relations are not."""
        removed = self.orphans.bytes + self.results.bytes + self.manifests.bytes
        return removed - (self.written or 0) - (len(self._difference) if self.is_commit else 0)

    @property
    def _difference(self) -> bytes:
        return json.dumps(manifest.difference(self.before, self.after)).encode()

    @property
    def is_idle(self) -> bool:
        found = (self.orphans.files, self.results.files, self.manifests.files, len(self.folders))
        return not any(found) and not self.is_commit


def plan_vacuum(storage: Storage, results_before: int | None, clock: int) -> VacuumPlan:
    """Look at a path nobody is working on; results committed before an instant are given up."""
    epoch, before = manifest.load(storage)
    after, forgotten, undelivered = before, set[str](), 0
    if results_before is not None and before:
        after, forgotten, undelivered = _without_results(storage, before, results_before)
    if forgotten:
        epoch += 1
        after = {**after, "epoch": epoch, "clock": clock}
    state = EngineState.from_json(after)
    names = [n for folder in (*PACK_FOLDERS, DRAFTS) for n in storage.listing(folder)]
    gone = leftovers(names, state, entries_from(storage, state.next_seq))
    results = {p[0] for key in forgotten for p in before["outputs"][key]} & set(gone)
    old = manifest.superseded(storage, epoch)
    sizes = {n: storage.size(n) for n in (*gone, *old)}
    return VacuumPlan(
        epoch=epoch,
        before=before,
        after=after,
        orphans=Files.of((n for n in gone if n not in results), sizes),
        results=Files.of(results, sizes),
        result_epochs=_epochs(forgotten),
        undelivered=undelivered,
        manifests=Files.of(old, sizes),
        written=len(json.dumps(after)) if old else None,
        folders=_empty_folders(storage, set(gone)),
    )


def carry_out(storage: Storage, plan: VacuumPlan) -> None:
    """First the commits, then the deletions: nothing that is referred to is ever missing."""
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


def _without_results(
    storage: Storage, before: manifest.State, limit: int
) -> tuple[manifest.State, set[str], int]:
    """The state without old results, the keys forgotten, and how many epochs had to stay."""
    old = epochs_before(before["clocks"], limit)
    due = {key for key in before["outputs"] if str(last_epoch_of(key)) in old}
    ahead = followed(storage)
    kept = {key for key in due if key.startswith(WHERES) or not _is_seen(before, key, ahead)}
    gone = due - kept
    outputs = {k: v for k, v in before["outputs"].items() if k not in gone}
    named = epochs_named(outputs)
    clocks = {e: c for e, c in before["clocks"].items() if e not in old or e in named}
    queries = dict(before["queries"])
    for key in gone:
        query = queries.get(owner_of(key))
        if query is not None:
            forgotten = max(query["forgotten"], last_epoch_of(key))
            queries[owner_of(key)] = {**query, "forgotten": forgotten}
    after = {**before, "outputs": outputs, "clocks": clocks, "queries": queries}
    return after, gone, _epochs([key for key in kept if not key.startswith(WHERES)])


def _is_seen(state: manifest.State, key: str, ahead: Mapping[str, int]) -> bool:
    """Whether callbacks and followers have it."""
    query, last = state["queries"].get(owner_of(key)), last_epoch_of(key)
    return query is None or last <= min(query["delivered"], ahead.get(owner_of(key), last))


def _with_answers(storage: Storage, plan: VacuumPlan) -> manifest.State:
    """The state in which the changes that go are part of their relations' answers."""
    gone: dict[str, list[str]] = {}
    for key in plan.before["outputs"].keys() - plan.after["outputs"].keys():
        gone.setdefault(owner_of(key), []).append(key)
    queries = dict(plan.after["queries"])
    prefix = f"q/answers/{plan.after['incarnation']}-{plan.epoch}-"
    for name, keys in gone.items():
        query = queries.get(name)
        schema = None if query is None else read_schema(query["schema"])
        if query is None or schema is None or SIGN not in schema.names:
            continue
        packs = [p for key in keys for p in plan.before["outputs"][key]]
        columns = [n for n in schema.names if n not in (TIME, SIGN)]
        base = add_to(query["base"], packs, columns, storage, prefix)
        until = base_until(query["base_until"], packs)
        queries[name] = {**query, "base": base, "base_until": until}
    return {**plan.after, "queries": queries}


def _epochs(keys: Collection[str]) -> int:
    return len({e for first, last in map(epochs_of, keys) for e in range(first, last + 1)})


def _empty_folders(storage: Storage, gone: Collection[str]) -> tuple[str, ...]:
    """Folders of ours that hold nothing but what goes, the innermost first."""
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
