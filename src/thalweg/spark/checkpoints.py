"""Spark's checkpoint of an ingest group: which query and batches it knows, and what does not match
the log."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from thalweg.errors import CheckpointLost, GroupMismatch, PathError
from thalweg.store.storage import LocalStorage, Storage, force_names


def checkpoint_id(spark: SparkSession, checkpoint: str) -> str | None:
    """The id Spark gave the query of a checkpoint, None if there is no checkpoint."""
    jvm = spark._jvm
    path = jvm.org.apache.hadoop.fs.Path(f"{checkpoint}/metadata")
    fs = path.getFileSystem(spark._jsc.hadoopConfiguration())
    if not fs.exists(path):
        return None
    stream = fs.open(path)
    try:
        text = jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8")
    finally:
        stream.close()
    return str(json.loads(text)["id"])


def planned_batch(spark: SparkSession, checkpoint: str) -> int:
    """The last batch a checkpoint has offsets for, -1 if there is none."""
    return _last_number(spark, f"{checkpoint}/offsets")


def finished_batch(spark: SparkSession, checkpoint: str) -> int:
    """The last batch that Spark knows to be in the log, -1 if there is none."""
    return _last_number(spark, f"{checkpoint}/commits")


def _last_number(spark: SparkSession, folder: str) -> int:
    path = spark._jvm.org.apache.hadoop.fs.Path(folder)
    fs = path.getFileSystem(spark._jsc.hadoopConfiguration())
    if not fs.exists(path):
        return -1
    names = [str(status.getPath().getName()) for status in fs.listStatus(path)]
    return max((int(n) for n in names if n.isdigit()), default=-1)


def dropped_of(recorded: dict[str, Any]) -> frozenset[str]:
    """The streams of a recorded group that have been dropped."""
    return frozenset(recorded.get("dropped", ()))


def nothing_in(spark: SparkSession, path: str) -> str:
    """A pattern of files in a folder that has none. Spark looks at the files of the last batch
    once more, which may lie in other folders: not under one that is named itself."""
    folder = spark._jvm.org.apache.hadoop.fs.Path(path)
    folder.getFileSystem(spark._jsc.hadoopConfiguration()).mkdirs(folder)
    return f"{path}/*"


def check_batches(number: int, logged: int, planned: int, finished: int) -> None:
    """Refuse a checkpoint that is behind the log: Spark would number other rows alike. Refuse a log
    that is behind the checkpoint: Spark would not read its rows again."""
    if planned < logged:
        raise CheckpointLost(
            f"the checkpoint of ingest group {number} has lost batches: it ends at {planned}, the "
            f"log at {logged}",
            remedy="restore the checkpoint folder as it was, or start over on a new path",
        )
    if finished > logged:
        raise PathError(
            f"the log has lost batches of ingest group {number}: it ends at {logged}, Spark's "
            f"checkpoint at {finished}",
            remedy="restore the files of the folder log from a copy of the path, or start over on "
            "a new path; nothing was changed",
        )


def check_group(
    number: int,
    recorded: dict[str, Any],
    description: list[dict[str, str]],
    query_id: str | None,
    found_id: str | None,
) -> None:
    """Refuse a group whose streams or checkpoint are not the ones this path knows."""
    if recorded.get("streams") not in (None, description):
        raise GroupMismatch(
            f"the streams of ingest group {number} differ from the ones on this path:\n"
            f"  recorded {_shown(recorded['streams'])}\n  given    {_shown(description)}",
            remedy="give the same streams in the same order with the same sources, or use "
            "another path; Spark would otherwise swap or repeat their offsets",
        )
    if query_id is not None and found_id != query_id:
        state = "is missing" if found_id is None else "belongs to another query"
        raise CheckpointLost(
            f"the checkpoint of ingest group {number} {state}",
            remedy="restore the checkpoint folder, or start over on a new path; reading the "
            "sources again from the beginning would count rows twice",
        )


def _shown(streams: list[dict[str, str]]) -> str:
    return ", ".join(f"{s['stream']} ({s['source']})" for s in streams)


def checkpoint_files(storage: Storage, checkpoint: str) -> LocalCheckpoint | None:
    """The files of a checkpoint, where they are to survive a power failure and can be forced to
    disk from here."""
    durable = isinstance(storage, LocalStorage) and storage.durable
    return LocalCheckpoint(checkpoint) if durable else None


class LocalCheckpoint:
    """The files of a checkpoint on a local disk, forced there before the log says that their batch
    is read: after a power failure Spark must not be behind the log."""

    def __init__(self, path: str) -> None:
        self._path = Path(path.removeprefix("file://"))
        self._forced: set[Path] = set()

    def force(self) -> None:
        """Force what Spark has written since the last time, and its names."""
        folders = [self._path, *(f for f in self._path.glob("**/*") if f.is_dir())]
        found = {file for folder in folders for file in folder.iterdir() if file.is_file()}
        for file in found - self._forced:
            with contextlib.suppress(FileNotFoundError), file.open("rb") as opened:
                os.fsync(opened.fileno())
        for folder in {file.parent for file in found - self._forced}:
            force_names(folder)
        if not self._forced:
            force_names(self._path.parent)
        self._forced = found

    def drop_torn(self) -> None:
        """Remove what Spark was writing as the power failed: files at the end of its logs that are
        empty. They were not forced, so the log knows nothing of their batch."""
        for folder in (self._path / "offsets", self._path / "commits", *self._sources()):
            for file in sorted(folder.glob("[0-9]*"), key=_number, reverse=True):
                if file.stat().st_size:
                    break
                file.unlink()
                file.with_name(f".{file.name}.crc").unlink(missing_ok=True)

    def _sources(self) -> list[Path]:
        return sorted((self._path / "sources").glob("[0-9]*"))


def _number(file: Path) -> int:
    return int(file.name.split(".")[0])
