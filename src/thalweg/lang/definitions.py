"""CREATE STREAM and CREATE TABLE: from parsed columns and clauses to catalog entries."""

from __future__ import annotations

from thalweg.errors import ConfigError, DuplicateName, NotAvailableYet, TypeMismatch
from thalweg.lang import ast
from thalweg.lang.durations import unit_micros
from thalweg.lang.parser import parse, place
from thalweg.lang.scope import decimal_exists
from thalweg.plan.catalog import DEFAULT_IDLE, SourceSpec, StreamDef
from thalweg.plan.logical import Field, Schema
from thalweg.plan.types import type_named

FILE_FORMATS = ("parquet", "csv", "json")
RECORD_FORMATS = ("json", "csv")


def stream_definition(
    statement: ast.CreateStream, text: str, default_idle: int | None = DEFAULT_IDLE
) -> StreamDef:
    if statement.name.startswith("__"):
        raise ConfigError(f"{statement.name}: names starting with __ are reserved").at(
            text, *place(text, statement.at)
        )
    if statement.timestamp is not None:
        names = {c.name.lower(): c.name for c in statement.columns}
        timestamp = names.get(statement.timestamp.lower(), statement.timestamp)
    else:
        timestamp = None
    idle = (
        None
        if statement.idle_never
        else (default_idle if statement.idle is None else statement.idle)
    )
    try:
        return StreamDef(
            statement.name,
            fields_of(statement.columns, text),
            timestamp,
            unit=unit_micros(statement.unit or "us") or 1,
            order_by=statement.order_by,
            lateness=statement.lateness,
            idle=idle,
            ahead=statement.ahead,
            key=statement.key,
            unique=statement.unique,
            retain=statement.retain,
            retain_rows=statement.retain_rows,
            source=source_spec(statement.source, text, statement.at),
        )
    except ConfigError as error:
        raise error.at(text, *place(text, statement.at)) from None


def fields_of(columns: tuple[ast.ColumnDefinition, ...], text: str) -> Schema:
    fields: list[Field] = []
    for column in columns:
        dtype = type_named(column.type, column.precision, column.scale)
        if dtype is None or not decimal_exists(column.precision, column.scale):
            digits = "" if dtype is None else f"({column.precision}, {column.scale})"
            raise TypeMismatch(
                f"unknown type {column.type}{digits}",
                remedy="use BOOLEAN, INT, BIGINT, DOUBLE, STRING, DATE, TIMESTAMP or DECIMAL(p,s)",
            ).at(text, *place(text, column.at))
        if any(f.name.lower() == column.name.lower() for f in fields):
            raise DuplicateName(f"column {column.name} stands twice").at(
                text, *place(text, column.at)
            )
        if column.name.startswith("__"):
            raise ConfigError(f"{column.name}: names starting with __ are reserved").at(
                text, *place(text, column.at)
            )
        fields.append(Field(column.name, dtype, column.nullable))
    return tuple(fields)


def source_spec(source: ast.SourceClause | None, text: str, at: int) -> SourceSpec:
    if source is None:
        return SourceSpec("frame")
    if source.kind == "SPARK":
        return _spark_source(source, text, at)
    if source.kind != "FILES":
        raise NotAvailableYet(
            f"FROM {source.kind} is not available yet",
            remedy="hand the streaming DataFrame over with engine.stream(name, df, ...)",
        ).at(text, *place(text, at))
    form = source.format or "parquet"
    if form not in FILE_FORMATS:
        raise ConfigError(
            f"FORMAT {form} is unknown", remedy="one of " + ", ".join(FILE_FORMATS)
        ).at(text, *place(text, at))
    return SourceSpec("files", source.target, form, source.options)


def _spark_source(source: ast.SourceClause, text: str, at: int) -> SourceSpec:
    if source.format not in (None, *RECORD_FORMATS):
        raise ConfigError(
            f"records cannot be read as {source.format}",
            remedy="FORMAT json or csv reads the value of each record; without FORMAT the "
            "columns are taken as the source has them",
        ).at(text, *place(text, at))
    return SourceSpec("spark", source.target, source.format, source.options)


def columns_of(text: str) -> Schema:
    """The columns of a text such as `sym STRING, price DOUBLE`."""
    script = f"CREATE STREAM x ({text}) TIMESTAMP BY ARRIVAL"
    (statement,) = parse(script)
    assert isinstance(statement, ast.CreateStream)
    return fields_of(statement.columns, script)
