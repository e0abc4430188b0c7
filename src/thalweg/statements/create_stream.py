"""CREATE STREAM name (columns) TIMESTAMP BY ... FROM ..."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from thalweg.errors import ConfigError
from thalweg.lang.column_definitions import fields_of, parse_columns, parse_source, source_spec
from thalweg.lang.durations import unit_micros
from thalweg.lang.parsing import ast
from thalweg.lang.parsing.cursor import Cursor
from thalweg.lang.parsing.places import place
from thalweg.lang.syntax import TokenType
from thalweg.plan.catalog import DEFAULT_IDLE, StreamDef, refuse_without_unit
from thalweg.statements.protocol import Effect, StatementKind
from thalweg.statements.services import Services


@dataclass(frozen=True, slots=True)
class CreateStream:
    effect: ClassVar[Effect] = Effect.SOURCE
    name: str
    columns: tuple[ast.ColumnDefinition, ...]
    timestamp: str | None
    unit: str | None
    order_by: tuple[str, ...]
    lateness: int
    idle: int | None
    idle_never: bool
    ahead: int | None
    key: tuple[str, ...]
    unique: tuple[str, ...]
    retain: int | None
    retain_rows: int | None
    source: ast.SourceClause | None
    at: int

    def run(self, on: Services, script: str) -> Any:
        return on.sources.create_stream(stream_definition(self, script, on.default_idle))


def stream_definition(
    statement: CreateStream, text: str, default_idle: int | None = DEFAULT_IDLE
) -> StreamDef:
    if statement.name.startswith("__"):
        raise ConfigError(
            f"{statement.name}: names starting with __ are reserved", remedy="choose another name"
        ).at(text, *place(text, statement.at))
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
        definition = StreamDef(
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
        return refuse_without_unit(definition, statement.unit)
    except ConfigError as error:
        raise error.at(text, *place(text, statement.at)) from None


# -- grammar -----------------------------------------------------------------------------------


def parse_create_stream(c: Cursor, at: int) -> CreateStream:
    c.need("CREATE", "STREAM")
    name = c.name("a stream name")
    columns = parse_columns(c)
    clauses: dict[str, Any] = {
        f.name: None for f in fields(CreateStream) if f.name not in ("name", "columns", "at")
    }
    clauses |= {"lateness": 0, "idle_never": False, "order_by": (), "key": (), "unique": ()}
    if not c.peek("TIMESTAMP"):
        c.unexpected("TIMESTAMP BY column, or TIMESTAMP BY ARRIVAL")
    seen: set[str] = set()
    while c._curr:
        word = next((w for w in _STREAM_CLAUSES if c.word(*w.split())), None)
        if word is None and c._match(TokenType.ORDER_BY):
            word = "ORDER BY"
        if word is None:
            c.unexpected("a clause: " + ", ".join(_STREAM_CLAUSES))
        if word in seen:
            c.fail(f"{word} stands twice", "keep one of them")
        seen.add(word)
        clauses |= _STREAM_CLAUSES[word](c)
    return CreateStream(name=name, columns=columns, at=at, **clauses)


def _timestamp(c: Cursor) -> dict[str, Any]:
    if c.word("ARRIVAL"):
        return {"timestamp": None}
    wrapped = c._match(TokenType.L_PAREN)
    column = c.name("the timestamp column")
    unit = None
    if c.word("UNIT"):
        at = c.offset()
        unit = c.name("a unit of time").lower()
        if unit_micros(unit) is None:
            c.fail(f"{unit} is not a unit of time", "use SECONDS, MILLISECONDS, ...", at)
    if wrapped:
        c.symbol(TokenType.R_PAREN, ")")
    return {"timestamp": column, "unit": unit}


def _idle(c: Cursor) -> dict[str, Any]:
    return {"idle_never": True} if c.word("NEVER") else {"idle": c.duration()}


def _retain(c: Cursor) -> dict[str, Any]:
    if c._curr and c._curr.token_type == TokenType.NUMBER and c._next.text.upper() == "ROWS":
        rows = c.integer("a number of rows")
        c.need("ROWS")
        return {"retain_rows": rows}
    return {"retain": c.duration()}


def _names(c: Cursor) -> tuple[str, ...]:
    if c.peek("("):
        return c.wrapped(lambda: c.name("a column"))
    return c.listed(lambda: c.name("a column"))


_STREAM_CLAUSES: dict[str, Callable[[Cursor], dict[str, Any]]] = {
    "TIMESTAMP BY": _timestamp,
    "ORDER BY": lambda c: {"order_by": _names(c)},
    "LATENESS": lambda c: {"lateness": c.duration()},
    "IDLE": _idle,
    "AHEAD": lambda c: {"ahead": c.duration()},
    "KEY": lambda c: {"key": _names(c)},
    "UNIQUE": lambda c: {"unique": _names(c)},
    "RETAIN": _retain,
    "FROM": lambda c: {"source": parse_source(c)},
}


CREATE_STREAM = StatementKind(
    ("CREATE STREAM",),
    "CREATE STREAM name (columns) TIMESTAMP BY (column | ARRIVAL) [clauses] [FROM source]",
    parse_create_stream,
    ("CREATE STREAM s (k BIGINT, ts TIMESTAMP) TIMESTAMP BY ts LATENESS 1 SECOND",),
)
