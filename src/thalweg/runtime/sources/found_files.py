"""What lies where FROM FILES points: refused before starting if it can never become rows."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import islice
from typing import IO, Any

import fsspec
import pyarrow as pa
import pyarrow.parquet

from thalweg.errors import SourceError, did_you_mean
from thalweg.plan.catalog import SourceSpec, StreamDef
from thalweg.plan.logical import Schema

PATTERNS = {"parquet": "*.parquet", "csv": "*.csv*", "json": "*.json*"}
"""The names that files of a format have, unless OPTIONS (glob = ...) says otherwise."""
RECORDS_LOOKED_AT = 1000
_ONLY_HADOOP_KNOWS = "{}^\\"


@dataclass(frozen=True, slots=True)
class FoundFiles:
    """Files by whether their names fit; `folder` says whether there is anything at all."""

    matching: tuple[str, ...]
    others: tuple[str, ...]
    folder: bool


def pattern_of(spec: SourceSpec) -> str:
    """What a file of a source is called."""
    given = {k.lower(): str(v) for k, v in spec.options}
    return given.get("glob", PATTERNS[str(spec.format)])


def is_single_file(spec: SourceSpec) -> bool:
    """Whether the source is one file, which is read once, whatever its name."""
    try:
        fs, root = fsspec.core.url_to_fs(spec.target)
        return bool(fs.isfile(root))
    except (ImportError, ValueError, OSError):  # no driver here for such paths
        return False


def find(spec: SourceSpec) -> FoundFiles | None:
    """The files there are now; None where this process cannot tell."""
    if is_single_file(spec):
        return FoundFiles((str(fsspec.core.url_to_fs(spec.target)[1]),), (), True)
    pattern = pattern_of(spec)
    if any(c in pattern + spec.target for c in _ONLY_HADOOP_KNOWS):
        return None
    try:
        fs, root = fsspec.core.url_to_fs(spec.target)
    except (ImportError, ValueError):  # no driver here for such paths
        return None
    roots = fs.glob(root) if any(c in root for c in "*?[") else [root] * fs.exists(root)
    names = [name for folder in roots for name in _below(fs, str(folder))]
    fits = [fnmatchcase(name.rsplit("/", 1)[-1], pattern) for name in names]
    matching = tuple(n for n, fit in zip(names, fits, strict=True) if fit)
    return FoundFiles(matching, tuple(set(names) - set(matching)), bool(roots))


def _below(fs: Any, folder: str) -> Iterator[str]:
    """The files Spark reads of a folder: its own, and those of partitions such as day=1."""
    for name in sorted(map(str, fs.find(folder))):
        *folders, file = name.removeprefix(folder).strip("/").split("/")
        hidden = (file or name.rsplit("/", 1)[-1]).startswith((".", "_"))
        if not hidden and all("=" in part for part in folders):
            yield name


def refuse_files(stream: StreamDef) -> None:
    """Refuse a folder that is not there, holds another format only, or lacks a declared column.
    One that is empty is none of these: files may come later."""
    found = find(stream.source)
    if found is None:
        return
    if not found.folder and not any(c in stream.source.target for c in "*?["):
        raise SourceError(
            f"stream {stream.name}: there is no folder {stream.source.target}",
            remedy="create it; files that appear in it later are read",
        )
    if found.matching:
        refuse_missing(stream.fields, stream.source, found.matching[0], stream.name)
    else:
        _refuse_format(stream, found.others)


def _refuse_format(stream: StreamDef, others: Iterable[str]) -> None:
    spec = stream.source
    held = {_format_of(name) for name in others}
    if len(held) == 1 and (form := held.pop()) not in (None, spec.format):
        raise SourceError(
            f"stream {stream.name}: FORMAT {spec.format}, but {spec.target} holds {form} files "
            "only",
            remedy=f"say FORMAT {form}",
        )


def _format_of(name: str) -> str | None:
    file = name.rsplit("/", 1)[-1]
    return next((form for form, p in PATTERNS.items() if fnmatchcase(file, p)), None)


def refuse_missing(fields: Schema, spec: SourceSpec, path: str, name: str) -> None:
    """Refuse a file without a column that is declared; a column of JSON may be rare."""
    columns = None if spec.format == "json" else columns_in(spec, path)
    missing = [f.name for f in fields if columns is not None and f.name not in columns]
    if missing:
        raise SourceError(
            f"{path} has no column {missing[0]}, which {name} declares",
            remedy=did_you_mean(missing[0], columns or ()),
        )


def columns_in(spec: SourceSpec, path: str) -> list[str] | None:
    """The columns of a file, of JSON those of its first records; None if it cannot be read."""
    try:
        if spec.format == "parquet":
            with fsspec.open(path, "rb") as file:
                return list(pa.parquet.read_schema(file).names)
        with fsspec.open(path, "rt", compression="infer", encoding="utf-8") as file:
            return next(csv.reader(file), None) if spec.format == "csv" else _keys(file)
    except (OSError, ValueError, RecursionError, csv.Error, pa.ArrowException):
        return None


def _keys(file: IO[str]) -> list[str]:
    rows = (json.loads(line) for line in islice(file, RECORDS_LOOKED_AT) if line.strip())
    return sorted({key for row in rows if isinstance(row, dict) for key in row})


def awaited(stream: StreamDef) -> tuple[str, str] | None:
    """Why a source gives nothing yet, and what to do; None if there is no reason to be seen."""
    spec = stream.source
    found = find(spec)
    if found is None:
        return None
    if not found.matching:
        beside = f" ({len(found.others)} of other names)" if found.others else ""
        return (
            f"there is no file {pattern_of(spec)} in {spec.target} yet{beside}",
            "files that appear later are read; check the path, FORMAT and OPTIONS (glob = ...)",
        )
    columns = columns_in(spec, found.matching[0]) if spec.format == "json" else None
    missing = [f.name for f in stream.fields if columns and f.name not in columns]
    if missing:
        return (
            f"no record at the beginning of {found.matching[0]} has {missing[0]}: it is NULL",
            did_you_mean(missing[0], columns or ()) or "check the columns of CREATE STREAM",
        )
    return None
