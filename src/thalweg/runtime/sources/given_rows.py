"""Rows that Python hands over: frames of Arrow, pandas and polars, and rows as dictionaries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from thalweg.errors import ConfigError, ThalwegError, did_you_mean
from thalweg.plan.logical import Schema
from thalweg.plan.types import to_arrow
from thalweg.runtime.sources.malformed_records import Records
from thalweg.runtime.sources.python_arguments import normalized

SHOWN = 200


def is_frame(given: Any) -> bool:
    """Whether it is a table of Arrow, pandas, polars or whatever else can be read as one."""
    return isinstance(given, (pa.Table, pa.RecordBatch)) or hasattr(given, "__arrow_c_stream__")


def arrow_table(given: Any, what: str) -> pa.Table:
    """A frame as an Arrow table without pandas' index; anything else is refused, naming `what` was
    to be made of it."""
    if isinstance(given, pa.Table):
        return given
    if isinstance(given, pa.RecordBatch):
        return pa.Table.from_batches([given])
    if not is_frame(given):
        raise ConfigError(
            f"{what}: expected a table, got {type(given).__name__}",
            remedy="hand over an Arrow table, a pandas or polars frame, or pa.Table.from_pylist("
            "rows)",
        )
    try:
        if type(given).__module__.split(".")[0] == "pandas":
            return pa.Table.from_pandas(given, preserve_index=False)
        return pa.table(given)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise ConfigError(
            f"{what}: the frame cannot be read: {error}",
            remedy="let each column have values of one type",
        ) from error


def as_records(item: Any, fields: Schema) -> Records:
    """A frame, a row or a list of rows as dictionaries, as rows of a stream; what does not fit is a
    reject that names the column."""
    schema = pa.schema([(f.name, to_arrow(f.type)) for f in fields])
    if is_frame(item):
        return _of_frame(item, fields, schema)
    if not isinstance(item, (dict, list, tuple)):
        return _unusable(schema, f"malformed record: {_shown(item)} is no row", 1)
    rows = [item] if isinstance(item, dict) else list(item)
    if all(isinstance(row, dict) and row.keys() <= set(schema.names) for row in rows):
        try:
            return Records(_columns(rows, schema))
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            pass  # row by row, to find which
    return _row_by_row(rows, schema)


def _of_frame(item: Any, fields: Schema, schema: pa.Schema) -> Records:
    try:
        table = arrow_table(item, "malformed table")
        missing = [n for n in schema.names if n not in table.column_names]
        if missing:
            hint = did_you_mean(missing[0], table.column_names)
            why = f"malformed table: there is no column {missing[0]} ({hint})"
            return _unusable(schema, why, table.num_rows)
        return Records(normalized(table.select(schema.names), fields))
    except ThalwegError as error:
        return _unusable(schema, error.message, 1)
    except pa.ArrowException as error:
        return _unusable(schema, f"malformed table: {error}", table.num_rows)


def _unusable(schema: pa.Schema, reason: str, count: int) -> Records:
    table = pa.table({f.name: pa.nulls(count, f.type) for f in schema})
    return Records(table, pa.array([reason] * count, pa.string()))


def _columns(rows: Sequence[dict[str, Any]], schema: pa.Schema) -> pa.Table:
    return pa.table([_column([r.get(f.name) for r in rows], f.type) for f in schema], schema=schema)


def _column(values: list[Any], dtype: pa.DataType) -> pa.Array:
    """The values as a column. Arrow would cut the fractions of numbers where whole ones are
    wanted."""
    whole = pa.types.is_integer(dtype) or pa.types.is_timestamp(dtype)
    if whole and any(isinstance(v, float) and not v.is_integer() for v in values):
        raise ValueError("a fraction where a whole number is wanted")
    return pa.array(values, dtype)


def _row_by_row(rows: Sequence[Any], schema: pa.Schema) -> Records:
    why = [_misfit(row, schema) for row in rows]
    fitting = [{} if reason else row for row, reason in zip(rows, why, strict=True)]
    return Records(_columns(fitting, schema), pa.array(why, pa.string()))


def _misfit(row: Any, schema: pa.Schema) -> str | None:
    """Why a row is none of the stream, None if it is one."""
    if not isinstance(row, dict):
        return f"malformed record: a row is a dictionary of columns, not {_shown(row)}"
    for name in row:
        if name not in schema.names:
            hint = did_you_mean(str(name), schema.names)
            return f"malformed record: there is no column {name} ({hint})"
    for name, value in row.items():
        field = schema.field(name)
        try:
            _column([value], field.type)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            return f"malformed record: {name} = {value!r:.{SHOWN}} is no {_called(field.type)}"
    return None


def _called(dtype: pa.DataType) -> str:
    if pa.types.is_timestamp(dtype):
        return "time: give a datetime with a time zone, or microseconds since 1970"
    return f"value of type {dtype}"


def _shown(value: Any) -> str:
    return f"{type(value).__name__} {str(value)[:SHOWN]}"
