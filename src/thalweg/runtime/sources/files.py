"""Rows from files, read with pyarrow: parquet, csv and json."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from urllib.parse import unquote, urlparse

import fsspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet

from thalweg.errors import SourceError
from thalweg.plan.catalog import SourceSpec, StreamDef
from thalweg.plan.logical import Schema
from thalweg.plan.types import DATE, TIMESTAMP, to_arrow
from thalweg.runtime.sources.found_files import refuse_missing
from thalweg.runtime.sources.malformed_records import LENIENT, Records, unreadable
from thalweg.runtime.sources.python_arguments import normalized

_ZONE = r":\d\d(?:\.\d+)? ?(?:Z|[+-]\d\d(?::?\d\d)?)$"


def read_files(stream: StreamDef, paths: Iterable[str]) -> Iterator[Records]:
    """The content of the files, in the stream's types; what is no row is a reject."""
    for path in paths:
        yield _records(stream, path)


def _records(stream: StreamDef, path: str) -> Records:
    form = str(stream.source.format)
    try:
        return Records(read_file(stream.name, stream.fields, stream.source, path))
    except SourceError as error:
        if isinstance(error.__cause__, OSError) and not isinstance(
            error.__cause__, pa.ArrowException
        ):
            raise  # the disk's fault, not the content's: to be read again
        return _leniently(stream, form, path, error)


def _leniently(stream: StreamDef, form: str, path: str, error: SourceError) -> Records:
    location = _location(path)
    try:
        if form in LENIENT:
            return LENIENT[form](location, stream.fields)
    except (pa.ArrowException, KeyError, ValueError):
        pass  # not even in part
    return unreadable(stream.fields, f"unreadable file: {error.message}")


def read_file(name: str, fields: Schema, spec: SourceSpec, path: str) -> pa.Table:
    location = _location(path)
    try:
        table = _READERS[str(spec.format)](location, fields)
        return normalized(table.select([f.name for f in fields]), fields)
    except (OSError, KeyError, pa.ArrowException) as error:
        if isinstance(error, pa.ArrowException):
            refuse_missing(fields, spec, location, name)
        raise SourceError(
            f"{location} cannot be read as {spec.format} for {name}: {error}",
            remedy="check the file, its format and the declared columns",
        ) from error


def _location(path: str) -> str:
    return unquote(urlparse(path).path) if path.startswith("file:") else path


def _parquet(path: str, fields: Schema) -> pa.Table:
    with fsspec.open(path, "rb") as file:
        return pa.parquet.read_table(
            file, columns=[f.name for f in fields], use_threads=False, pre_buffer=False
        )


def _csv(path: str, fields: Schema) -> pa.Table:
    """Times without a zone are UTC; a file where some or all have one is read more slowly."""
    types = {f.name: to_arrow(f.type) for f in fields}
    times = [f.name for f in fields if f.type == TIMESTAMP]
    try:
        return _csv_as(path, {**types, **dict.fromkeys(times, pa.timestamp("us"))})
    except pa.ArrowInvalid:
        if not times:
            raise
    table = _csv_as(path, {**types, **dict.fromkeys(times, pa.string())})
    for name in times:
        at = table.schema.get_field_index(name)
        table = table.set_column(at, name, instants(table.column(name)))
    return table


def instants(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """Times from texts, with or without a zone."""
    zoned = pc.match_substring_regex(texts, _ZONE)
    nothing = pa.scalar(None, pa.string())
    utc = pa.timestamp("us", "UTC")
    with_zone = pc.if_else(zoned, texts, nothing).cast(utc)
    without = pc.if_else(zoned, nothing, texts).cast(pa.timestamp("us")).cast(utc)
    return pc.coalesce(with_zone, without)


def _csv_as(path: str, types: dict[str, pa.DataType]) -> pa.Table:
    convert = pa.csv.ConvertOptions(
        column_types=types,
        include_columns=list(types),
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
        null_values=["", "NULL", "null", "NA"],
    )
    with fsspec.open(path, "rb", compression="infer") as file:
        return pa.csv.read_csv(file, convert_options=convert)


def _json(path: str, fields: Schema) -> pa.Table:
    # pyarrow reads dates in JSON as numbers only
    types = {f.name: pa.string() if f.type == DATE else to_arrow(f.type) for f in fields}
    schema = pa.schema(list(types.items()))
    options = pa.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
    with fsspec.open(path, "rb", compression="infer") as file:
        return pa.json.read_json(file, parse_options=options)


_READERS = {"parquet": _parquet, "csv": _csv, "json": _json}


def inferred_table(spec: SourceSpec, paths: list[str]) -> pa.Table:
    """All rows of a table's files, types as found (CREATE TABLE without columns)."""
    tables = []
    for path in paths:
        with fsspec.open(path, "rb", compression="infer") as file:
            if spec.format == "parquet":
                tables.append(pa.parquet.read_table(file))
            elif spec.format == "csv":
                tables.append(pa.csv.read_csv(file))
            else:
                tables.append(pa.json.read_json(file))
    return pa.concat_tables(tables, promote_options="default")


def list_files(spec: SourceSpec) -> list[str]:
    """The files of a table: all under a path, or the file itself."""
    fs, root = fsspec.core.url_to_fs(spec.target)
    if fs.isfile(root):
        return [str(root)]
    pattern = next((str(v) for k, v in spec.options if k.lower() == "glob"), "*")
    named = [(p.rsplit("/", 1)[-1], p) for p in sorted(fs.find(root))]
    found = [p for n, p in named if not n.startswith((".", "_")) and fnmatchcase(n, pattern)]
    if not found:
        what = "files" if pattern == "*" else f"files {pattern}"
        raise SourceError(
            f"there are no {what} under {spec.target}",
            remedy="check the path of CREATE TABLE" if fs.exists(root) else "there is no such path",
        )
    return found
