"""Ingest: one streaming query per group of streams moves rows into the log, and nothing else.

The streams of a group are united under one checkpoint. Their columns share *slots* by type, so a
row carries few empty cells; a tag says which stream it is of. Tasks sort rows, write packs and
return only their names; the batch is in the log once one small file exists.
"""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming import StreamingQuery

from thalweg.plan.catalog import StreamDef
from thalweg.runtime.sources.files import read_files
from thalweg.runtime.sources.log_writer import LogWriter
from thalweg.runtime.sources.malformed_records import Records
from thalweg.runtime.sources.pack_rows import Ingested, IngestPlan, ingest_table
from thalweg.runtime.sources.python_arguments import normalized
from thalweg.runtime.state.clock import wall_clock
from thalweg.spark.arrow import arrow_messages, arrow_schema, record_batches
from thalweg.spark.checkpoints import checkpoint_files, checkpoint_id
from thalweg.spark.settings import is_local
from thalweg.store.storage import Storage

TAG = "__s"
MALFORMED = "__malformed"
"""Where a source has it, the reason why a record is no row."""
IDENTITY_OPTIONS = ("path", "subscribe", "subscribePattern", "assign", "topic")
LARGEST_PACK = 4_000_000


@dataclass(frozen=True, slots=True)
class StreamInput:
    """A stream of a group: its definition and the streaming DataFrame of rows or file names."""

    definition: StreamDef
    frame: DataFrame
    is_files: bool


@dataclass(frozen=True, slots=True)
class SlotMap:
    """Which slot holds which column of a stream."""

    plan: IngestPlan
    columns: tuple[tuple[str, str], ...]
    is_files: bool


class IngestGroup:
    """One streaming query and its checkpoint."""

    def __init__(
        self,
        number: int,
        inputs: Sequence[StreamInput],
        checkpoint: str,
        storage: Storage,
        log: LogWriter,
        keys_of: Callable[[str], tuple[tuple[str, ...], ...]],
        parallelism: int,
    ) -> None:
        self.number = number
        self.inputs = inputs
        self.checkpoint = checkpoint
        self.storage = storage
        self.log = log
        self.keys_of = keys_of
        self.parallelism = parallelism
        self._files = checkpoint_files(storage, checkpoint)
        self.query: StreamingQuery | None = None
        self.dropped: set[str] = set()
        """Streams whose rows are wanted no longer; their places in the query stay."""
        self._not_started: Exception | None = None
        self._query_id: str | None = None
        self._ready = False
        self._slots: list[tuple[tuple[str, str], ...]] = []
        self._arrow_schema = b""

    def description(self) -> list[dict[str, str]]:
        """Group identity: streams in order and where they come from."""
        return [{"stream": i.definition.name, "source": source_text(i)} for i in self.inputs]

    def start(self, available_now: bool) -> StreamingQuery:
        if self._files is not None:
            self._files.drop_torn()
        united = self._united()
        self._arrow_schema = arrow_schema(united)
        writer = (
            united.writeStream.foreachBatch(self._batch)
            .option("checkpointLocation", self.checkpoint)
            .queryName(f"thalweg-ingest-{self.number}-{uuid.uuid4().hex[:8]}")
        )
        if available_now:
            writer = writer.trigger(availableNow=True)
        self.query = writer.start()
        return self.query

    def start_beside_others(self, available_now: bool) -> bool:
        """Start while the engine runs, if that can be done: what is wrong with these sources is no
        harm to the rest."""
        try:
            self.start(available_now)
        except Exception as error:
            self._not_started = error
        return self.query is not None

    def stop(self) -> None:
        if self.query is not None and self.query.isActive:
            self.query.stop()

    @property
    def failure(self) -> Exception | None:
        """Why no more is read, if something went wrong."""
        return self._not_started if self.query is None else self.query.exception()

    @property
    def is_ready(self) -> bool:
        """Whether the sources have been asked at least once, or never will be."""
        if self._not_started is not None:
            return True
        if not self._ready and self.query is not None:
            waiting = str(self.query.status["message"]).startswith("Waiting for data")
            self._ready = waiting or self.query.lastProgress is not None
        return self._ready

    # -- the union ---------------------------------------------------------------------------

    def _united(self) -> DataFrame:
        assigned = [_slots(i.frame, _wanted(i)) for i in self.inputs]
        types = {slot: dtype for one in assigned for slot, _, dtype in one}
        self._slots = [tuple((slot, name) for slot, name, _ in one) for one in assigned]
        united: DataFrame | None = None
        for tag, (given, slots) in enumerate(zip(self.inputs, assigned, strict=True)):
            held = {slot: name for slot, name, _ in slots}
            columns = [F.lit(tag).cast("tinyint").alias(TAG)]
            for slot in sorted(types):
                cell = F.col(f"`{held[slot]}`") if slot in held else F.lit(None).cast(types[slot])
                columns.append(cell.alias(slot))
            one = given.frame.select(columns)
            united = one if united is None else united.unionAll(one)
        assert united is not None
        return united

    # -- a batch -----------------------------------------------------------------------------

    def _batch(self, frame: DataFrame, batch: int) -> None:
        query_id = self._id(frame.sparkSession)
        if not self.log.has(query_id, batch):
            self.log.wait_for_room()
            with self.log.batch_under_way():
                self._take_in(frame, query_id, batch)

    def _take_in(self, frame: DataFrame, query_id: str, batch: int) -> None:
        begun = time.perf_counter()
        clock = wall_clock()
        maps = self._maps(clock, batch)
        called = time.perf_counter()
        files_only = all(i.is_files for i in self.inputs)
        if files_only and is_local(frame.sparkSession):
            results = self._read_here(maps, frame)
        else:
            results = self._read_there(maps, frame)
        away = time.perf_counter() - called
        packs: dict[str, list[Any]] = {}
        rejects: dict[str, list[Any]] = {}
        for result in results:
            for name, found in result.items():
                if name in self.dropped:
                    continue  # nothing refers to what was read; it is swept
                packs.setdefault(name, []).extend(found.packs)
                rejects.setdefault(name, []).extend(found.rejects)
        if self._files is not None:
            self._files.force()
        self.log.append(self.number, (query_id, batch), packs, rejects, clock, begun)
        self.log.note_own_seconds(time.perf_counter() - begun - away)

    def _read_there(self, maps: tuple[SlotMap, ...], frame: DataFrame) -> list[dict[str, Ingested]]:
        """Rows to packs in Spark's Python workers."""
        storage, schema = self.storage, self._arrow_schema

        def task(messages: Iterable[bytes]) -> Iterator[dict[str, Ingested]]:
            yield ingest_task(maps, storage, record_batches(schema, messages))

        # each task writes packs of its own: many small ones would have to be merged again
        rdd = arrow_messages(frame, most=4 * self.parallelism)
        found: list[dict[str, Ingested]] = rdd.mapPartitions(task).collect()
        return found

    def _read_here(self, maps: tuple[SlotMap, ...], frame: DataFrame) -> list[dict[str, Ingested]]:
        """Files to packs in threads of the driver: on a local master Spark's workers would read
        the same disk with the same cores, after a job's start."""
        named: dict[int, list[str]] = {}
        for row in frame.collect():
            if self.inputs[row[TAG]].definition.name in self.dropped:
                continue
            slot = maps[row[TAG]].columns[0][0]
            named.setdefault(row[TAG], []).append(row[slot])

        def read(tag: int, paths: list[str]) -> dict[str, Ingested]:
            found: dict[str, Ingested] = {}
            _write_tables(maps[tag], self.storage, read_files(maps[tag].plan.stream, paths), found)
            return found

        with ThreadPoolExecutor(self.parallelism, "thalweg-ingest") as pool:
            return list(pool.map(read, named.keys(), named.values()))

    def _maps(self, clock: int, batch: int) -> tuple[SlotMap, ...]:
        return tuple(
            SlotMap(
                IngestPlan(
                    given.definition,
                    self.keys_of(given.definition.name),
                    clock,
                    f"log/g{self.number}-{batch}-{tag}-",
                    0,
                ),
                slots,
                given.is_files,
            )
            for tag, (given, slots) in enumerate(zip(self.inputs, self._slots, strict=True))
        )

    def _id(self, spark: SparkSession) -> str:
        """The query's id, from its checkpoint: it survives restarts with the checkpoint."""
        if self._query_id is None:
            found = checkpoint_id(spark, self.checkpoint)
            assert found is not None, "Spark writes the metadata before the first batch"
            self._query_id = found
        return self._query_id


def _wanted(given: StreamInput) -> list[str]:
    if given.is_files:
        return ["path"]
    names = [f.name for f in given.definition.fields]
    return [*names, MALFORMED] if MALFORMED in given.frame.columns else names


def _slots(frame: DataFrame, wanted: Sequence[str]) -> list[tuple[str, str, str]]:
    """(slot, column, type): the n-th column of a type takes the type's n-th slot."""
    taken: dict[str, int] = {}
    found = []
    types = {f.name: f.dataType.simpleString() for f in frame.schema.fields}
    for name in wanted:
        dtype = types[name]
        number = taken.get(dtype, 0)
        taken[dtype] = number + 1
        found.append((f"{re.sub('[^a-z0-9]', '_', dtype)}_{number:02d}", name, dtype))
    return found


def source_text(given: StreamInput) -> str:
    """A description of a source that is the same after a restart."""
    if given.is_files:
        spec = given.definition.source
        return f"files {spec.format} {spec.target}"
    leaves = given.frame._jdf.queryExecution().analyzed().collectLeaves()
    return "; ".join(_leaf_text(leaves.apply(i)) for i in range(leaves.size()))


def reads_files(given: StreamInput) -> bool:
    """Whether its source is Spark's source of files: it lists folders, and waits for no one."""
    if given.is_files:
        return True
    leaves = given.frame._jdf.queryExecution().analyzed().collectLeaves()
    texts = [str(leaves.apply(i).toString()) for i in range(leaves.size())]
    return all(text.startswith(("FileSource", "StreamingRelation FileSource")) for text in texts)


def _leaf_text(leaf: Any) -> str:
    """The source and what it reads; how fast (batch sizes and the like) may change."""
    text = re.sub(r"#\d+L?", "", str(leaf.toString()))
    if "V2" in str(leaf.getClass().getSimpleName()) and hasattr(leaf, "extraOptions"):
        given = {k: leaf.extraOptions().get(k) for k in IDENTITY_OPTIONS}
        text += "".join(f" {k}={v}" for k, v in given.items() if v is not None)
    return text


def ingest_task(
    maps: Sequence[SlotMap], storage: Storage, batches: Iterable[pa.RecordBatch]
) -> dict[str, Ingested]:
    """Runs in a Python worker: all rows of one partition become packs."""
    held: dict[int, list[pa.RecordBatch]] = {}
    found: dict[str, Ingested] = {}
    sizes: dict[int, int] = {}
    for batch in batches:
        for tag, part in _by_tag(batch):
            held.setdefault(tag, []).append(part)
            sizes[tag] = sizes.get(tag, 0) + part.num_rows
            if sizes[tag] >= LARGEST_PACK:
                _write(maps[tag], storage, held.pop(tag), found)
                sizes[tag] = 0
    for tag, parts in held.items():
        _write(maps[tag], storage, parts, found)
    return found


def _by_tag(batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
    if not batch.num_rows:
        return
    tags = batch.column(TAG).to_numpy()
    first = int(tags[0])
    if (tags == first).all():
        yield first, batch
        return
    for tag in sorted(set(tags.tolist())):
        yield tag, batch.filter(pa.array(tags == tag))


def _write(
    slots: SlotMap, storage: Storage, parts: list[pa.RecordBatch], found: dict[str, Ingested]
) -> None:
    whole = pa.Table.from_batches(parts)
    if slots.is_files:
        paths = whole.column(slots.columns[0][0]).to_pylist()
        tables: Iterable[Records] = read_files(slots.plan.stream, paths)
    else:
        named = pa.table({name: whole.column(slot) for slot, name in slots.columns})
        malformed = None
        if MALFORMED in named.column_names:
            malformed = named.column(MALFORMED).combine_chunks()
        tables = [Records(normalized(named, slots.plan.stream.fields), malformed)]
    _write_tables(slots, storage, tables, found)


def _write_tables(
    slots: SlotMap, storage: Storage, tables: Iterable[Records], found: dict[str, Ingested]
) -> None:
    total = found.setdefault(slots.plan.stream.name, Ingested())
    for records in tables:
        one = ingest_table(slots.plan, records.table, storage, records.malformed)
        total.packs += one.packs
        total.rejects += one.rejects
