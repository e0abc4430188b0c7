"""What reads the sources of an engine while it runs: Spark's streaming queries, and pushers."""

from __future__ import annotations

import threading
from collections.abc import Callable

from pyspark.sql import SparkSession

from thalweg.errors import GroupMismatch, SourceError
from thalweg.plan.catalog import SourceSpec, StreamDef
from thalweg.runtime.error_causes import told
from thalweg.runtime.sources.log_writer import LogWriter
from thalweg.runtime.sources.push import Pusher, PushInput
from thalweg.runtime.state.engine_state import EngineState
from thalweg.runtime.state.failures import STREAM, Failures
from thalweg.spark.checkpoints import (
    check_batches,
    check_group,
    checkpoint_id,
    dropped_of,
    finished_batch,
    nothing_in,
    planned_batch,
)
from thalweg.spark.file_names import file_names
from thalweg.spark.ingest import IngestGroup, StreamInput, reads_files
from thalweg.store.packs import Key
from thalweg.store.storage import Storage


class IngestGroups:
    """Streams of files that are known at a start form one group, one streaming query; every other
    source has a group of its own, so that one that fails stops no other, and so has each stream
    that is added later. `inputs` and `pushes` are where streams come from, by name."""

    def __init__(
        self,
        spark: SparkSession,
        storage: Storage,
        state: EngineState,
        log: LogWriter,
        path: str,
        keys_of: Callable[[str], tuple[Key, ...]],
        tasks: int,
        save: Callable[[], None],
    ) -> None:
        self._spark = spark
        self._storage = storage
        self._state = state
        self._log = log
        self._path = path
        self._keys_of = keys_of
        self._tasks = tasks
        self._save = save
        self.inputs: dict[str, StreamInput] = {}
        self.pushes: dict[str, PushInput] = {}
        self._groups: dict[int, IngestGroup] = {}
        self._pushers: list[Pusher] = []
        self._to_start: list[IngestGroup | Pusher] = []
        self._available_now = False

    # -- starting ----------------------------------------------------------------------------

    def form(self) -> None:
        """Known groups as recorded; streams that are new form further ones."""
        seen = self._log.groups_seen()
        groups: dict[int, IngestGroup] = {}
        left = dict(self.inputs)
        for number in sorted(int(n) for n in self._state.groups):
            recorded = self._state.groups[str(number)]
            names, gone = [s["stream"] for s in recorded["streams"]], dropped_of(recorded)
            if len(gone) == len(names):
                continue
            missing = [n for n in names if n not in left and n not in gone]
            if missing:
                raise GroupMismatch(
                    f"stream {missing[0]} of ingest group {number} is not registered",
                    remedy="register the same streams as before, or use another path",
                )
            inputs = [self._nothing(n) if n in gone else left.pop(n) for n in names]
            group = self._group(number, inputs)
            group.dropped |= gone
            query_id = recorded.get("query_id") or seen.get(number)
            found = checkpoint_id(self._spark, group.checkpoint)
            described = [
                was if was["stream"] in gone else now
                for was, now in zip(recorded["streams"], group.description(), strict=True)
            ]
            check_group(number, recorded, described, query_id, found)
            check_batches(
                number,
                -1 if query_id is None else self._log.last_batch(query_id),
                planned_batch(self._spark, group.checkpoint),
                finished_batch(self._spark, group.checkpoint),
            )
            groups[number] = group
        files = [given for given in left.values() if reads_files(given)]
        others = [[given] for given in left.values() if given not in files]
        for number, inputs in enumerate(filter(None, [files, *others]), self._next_number()):
            groups[number] = self._group(number, inputs)
            self._state.groups[str(number)] = {"streams": groups[number].description()}
        self._groups = groups

    def start(self, available_now: bool) -> None:
        self._available_now, self._to_start = available_now, []
        for group in self._groups.values():
            group.start(available_now)
        self._pushers = [self._pusher(given) for given in self.pushes.values()]
        for pusher in self._pushers:
            pusher.start()

    def _group(self, number: int, inputs: list[StreamInput]) -> IngestGroup:
        checkpoint = f"{self._path}/checkpoints/group-{number}"
        return IngestGroup(
            number, inputs, checkpoint, self._storage, self._log, self._keys_of, self._tasks
        )

    def _pusher(self, given: PushInput) -> Pusher:
        return Pusher(given, self._log, self._storage, self._keys_of)

    def _next_number(self) -> int:
        """One that no group has had on this path: its checkpoint may still be there."""
        return max(map(int, self._state.groups), default=0) + 1

    # -- streams that are dropped ------------------------------------------------------------

    def drop(self, name: str) -> None:
        """Read no more of a stream. In a group with others its place stays, since Spark tells the
        sources of a query apart by their places."""
        self.inputs.pop(name, None)
        if self.pushes.pop(name, None) is not None:
            for pusher in [p for p in self._pushers if p.given.definition.name == name]:
                pusher.give_up()
                self._pushers.remove(pusher)
        for number, recorded in self._state.groups.items():
            names = [s["stream"] for s in recorded["streams"]]
            if name in names and name not in dropped_of(recorded):
                recorded["dropped"] = [*sorted(dropped_of(recorded)), name]
                self._drop_from(int(number), name, is_last=len(recorded["dropped"]) == len(names))
        for source in (f"push:{name}", f"heartbeat:{name}"):
            self._log.forget(source)
            self._state.sources.pop(source, None)
        self._state.dropped[name] = self._log.next_seq

    def _drop_from(self, number: int, name: str, *, is_last: bool) -> None:
        group = self._groups.get(number)
        if group is not None:
            group.dropped.add(name)
            if is_last:  # its batch may be waiting for the epoch that drops it
                threading.Thread(target=group.stop, daemon=True).start()
                del self._groups[number]

    def _nothing(self, name: str) -> StreamInput:
        """A source without rows, in the place of a stream of files that was dropped."""
        empty = nothing_in(self._spark, f"{self._path}/checkpoints/dropped")
        definition = StreamDef(name, (), None, source=SourceSpec("files", empty, "parquet"))
        return StreamInput(definition, file_names(self._spark, definition.source), True)

    # -- streams that are added while the engine runs ----------------------------------------

    def take_up(self, given: StreamInput | PushInput) -> None:
        """Begin to read a stream that is added while the engine runs, once it is committed."""
        if isinstance(given, PushInput):
            self._to_start.append(self._pusher(given))
            return
        number = self._next_number()
        group = self._groups[number] = self._group(number, [given])
        self._state.groups[str(number)] = {"streams": group.description()}
        self._to_start.append(group)

    def start_new(self) -> None:
        """Start what was taken up and is committed by now."""
        if not self._to_start:
            return
        self._save()
        coming, self._to_start = self._to_start, []
        for one in coming:
            if isinstance(one, Pusher):
                self._pushers.append(one)
                one.start()
            elif not one.start_beside_others(self._available_now):
                # a later run need not bring what has never been read
                del self._state.groups[str(one.number)]
                self._save()

    # -- while they run ----------------------------------------------------------------------

    def are_finished(self) -> bool:
        if any(pusher.is_active for pusher in self._pushers):
            return False
        return all(g.query is None or not g.query.isActive for g in self._groups.values())

    def are_ready(self) -> bool:
        return all(g.is_ready for g in self._groups.values())

    def stop(self) -> None:
        for pusher in self._pushers:
            pusher.stop()
        for group in self._groups.values():
            group.stop()

    def failures(self) -> dict[str, SourceError]:
        """What the sources of streams have failed with, by stream."""
        found = {p.given.definition.name: p.failure for p in self._pushers if p.failure is not None}
        for group in self._groups.values():
            error = group.failure
            if error is not None:
                names = [given.definition.name for given in group.inputs]
                why = SourceError(
                    f"the source of stream {', '.join(names)} failed: {told(error)}",
                    remedy="mend it; the log holds everything read so far and a new start goes on "
                    "from there",
                )
                found |= dict.fromkeys(names, why)
        return found

    def note_failures(self, failures: Failures) -> None:
        """Let others see which sources fail now."""
        found = self.failures()
        failures.keep_only(STREAM, found)
        for name, error in found.items():
            failures.put(STREAM, name, error.message)

    @property
    def failure(self) -> BaseException | None:
        """A failure that has left nothing to read; while other sources go on there is none."""
        failed = self.failures()
        return next(iter(failed.values())) if failed and self.are_finished() else None

    def raise_failure(self) -> None:
        for error in self.failures().values():
            raise error
