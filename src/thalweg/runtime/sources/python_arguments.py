"""Shapes of what is handed over from Python: stream definitions, fields, tables in our types."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import pyarrow as pa

from thalweg.errors import ConfigError
from thalweg.lang.durations import parse_duration, unit_micros
from thalweg.plan.catalog import DEFAULT_IDLE, SourceSpec, StreamDef, refuse_without_unit
from thalweg.plan.logical import Field, Schema
from thalweg.plan.types import from_arrow, to_arrow
from thalweg.store.file_names import file_name_of

Duration = str | int | timedelta


def make_stream(
    name: str,
    fields: Schema,
    timestamp: str | None,
    *,
    unit: str | None = None,
    lateness: Duration = 0,
    idle: Duration | None = DEFAULT_IDLE,
    ahead: Duration | None = None,
    key: str | Sequence[str] = (),
    order_by: Sequence[str] = (),
    unique: Sequence[str] = (),
    retain: Duration | None = None,
    source: SourceSpec | None = None,
) -> StreamDef:
    """A stream definition from Python arguments."""
    micros = 1 if unit is None else unit_micros(unit)
    if micros is None:
        raise ConfigError(f"{unit} is not a unit of time", remedy="use seconds, milliseconds, ...")
    refuse_name(name)
    refuse_reserved(*(f.name for f in fields))
    for word, given in (("lateness", lateness), ("idle", idle), ("ahead", ahead)):
        if given is not None and parse_duration(given) < 0:
            raise ConfigError(
                f"stream {name}: {word} cannot be negative", remedy="use a duration of 0 or more"
            )
    definition = StreamDef(
        name,
        fields,
        timestamp,
        unit=micros,
        order_by=tuple(order_by),
        lateness=parse_duration(lateness),
        idle=None if idle is None else parse_duration(idle),
        ahead=None if ahead is None else parse_duration(ahead),
        key=(key,) if isinstance(key, str) else tuple(key),
        unique=tuple(unique),
        retain=None if retain is None else parse_duration(retain),
        source=source or SourceSpec("frame"),
    )
    return refuse_without_unit(definition, unit)


LONGEST_NAME = 150
"""Characters of a name, in the form in which files are called after it."""


def refuse_reserved(*names: str) -> None:
    for name in names:
        if name.startswith("__"):
            raise ConfigError(
                f"{name}: names starting with __ are reserved", remedy="use another name"
            )


def refuse_name(name: str) -> None:
    """Refuse what nothing can be called."""
    refuse_reserved(name)
    if not name:
        raise ConfigError("a name must not be empty", remedy="give it one")
    if len(file_name_of(name)) > LONGEST_NAME:
        raise ConfigError(
            f"the name {name[:20]}... is too long for files",
            remedy=f"use at most {LONGEST_NAME} letters (fewer with signs and other scripts)",
        )


def arrow_fields(schema: pa.Schema) -> Schema:
    return tuple(Field(f.name, from_arrow(f.type), True) for f in schema)


def normalized(table: pa.Table, fields: Schema) -> pa.Table:
    """The table with exactly our types (timestamps in µs UTC, plain strings)."""
    columns = {}
    for one in fields:
        column = table.column(one.name)
        target = to_arrow(one.type)
        if column.type != target:
            if pa.types.is_dictionary(column.type):
                column = column.cast(column.type.value_type)
            if pa.types.is_timestamp(column.type) and column.type.tz is None:
                column = column.cast(pa.timestamp("us"), safe=False)
            column = column.cast(target, safe=not pa.types.is_timestamp(target))
        columns[one.name] = column
    return pa.table(columns)
