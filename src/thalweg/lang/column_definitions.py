"""Columns and sources in CREATE STREAM and CREATE TABLE: grammar and meaning."""

from __future__ import annotations

from typing import Any

from thalweg.errors import (
    ConfigError,
    DuplicateName,
    NotAvailableYet,
    ThalwegError,
    TypeMismatch,
    UnknownName,
    did_you_mean,
)
from thalweg.lang.binding.scope import decimal_exists
from thalweg.lang.parsing import ast
from thalweg.lang.parsing.cursor import Cursor
from thalweg.lang.parsing.parser import parse_each
from thalweg.lang.parsing.places import place
from thalweg.lang.syntax import TokenType
from thalweg.plan.catalog import SourceSpec
from thalweg.plan.logical import Field, Schema
from thalweg.plan.types import DECIMALS, type_named

FILE_FORMATS = ("parquet", "csv", "json")
FILE_OPTIONS = ("glob", "max_files_per_trigger")
TABLE_OPTIONS = ("glob",)
RECORD_FORMATS = ("json", "csv")


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
            raise DuplicateName(
                f"column {column.name} stands twice", remedy="give one of them another name"
            ).at(text, *place(text, column.at))
        if column.name.startswith("__"):
            raise ConfigError(
                f"{column.name}: names starting with __ are reserved", remedy="choose another name"
            ).at(text, *place(text, column.at))
        fields.append(Field(column.name, dtype, column.nullable))
    return tuple(fields)


def source_spec(
    source: ast.SourceClause | None,
    text: str,
    at: int,
    options: tuple[str, ...] = FILE_OPTIONS,
) -> SourceSpec:
    """Where rows come from; `options` are those that files have here."""
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
    try:
        _check_file_options(source.options, options)
    except ThalwegError as error:
        raise error.at(text, *place(text, at)) from None
    return SourceSpec("files", source.target, form, source.options)


def _check_file_options(options: tuple[tuple[str, Any], ...], known: tuple[str, ...]) -> None:
    seen: set[str] = set()
    for given, value in options:
        name = given.lower()
        if name not in known:
            raise UnknownName(
                f"FROM FILES has no option {given} here", remedy=did_you_mean(name, known)
            )
        if name in seen:
            raise DuplicateName(f"option {given} stands twice", remedy="keep one of them")
        seen.add(name)
        if name == "glob" and not (isinstance(value, str) and value):
            raise ConfigError(
                f"glob = {value} is no pattern of names", remedy="use one such as '*.csv'"
            )
        if name == "max_files_per_trigger" and not (type(value) is int and value > 0):
            raise ConfigError(
                f"max_files_per_trigger = {value} is no number of files",
                remedy="use a whole number of 1 or more",
            )


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
    script = f"({text})"
    (columns,) = parse_each(script, parse_columns)
    return fields_of(columns, script)


# -- grammar -----------------------------------------------------------------------------------


def parse_columns(c: Cursor) -> tuple[ast.ColumnDefinition, ...]:
    """Columns in parentheses."""
    return c.wrapped(lambda: _column(c))


def _column(c: Cursor) -> ast.ColumnDefinition:
    at = c.offset()
    name = c.name("a column name")
    if not c._curr:
        c.unexpected("a type")
    kind = str(c._curr.text)
    c._advance()
    precision, scale = 10, 0
    if c.peek("(") and kind.upper() not in DECIMALS:
        c.fail(f"{kind} takes no numbers", f"write {name} {kind}; only DECIMAL(p, s) takes some")
    if c._match(TokenType.L_PAREN):
        precision = c.integer("a number")
        if c._match(TokenType.COMMA):
            scale = c.integer("a number")
        c.symbol(TokenType.R_PAREN, ")")
    nullable = not c.word("NOT", "NULL")
    if nullable:
        c.word("NULL")
    return ast.ColumnDefinition(name, kind, precision, scale, nullable, at)


def parse_source(c: Cursor) -> ast.SourceClause:
    for kind, what in (("FILES", "a path"), ("SPARK", "a format"), ("SENSOR", "an address")):
        if c.word(kind):
            target = c.string(f"{what} as a string")
            form = c.name("a format").lower() if c.word("FORMAT") else None
            return ast.SourceClause(kind, target, form, c.source_options())
    c.unexpected("FILES, SPARK or SENSOR")
