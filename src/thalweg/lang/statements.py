"""Grammar of the statements around SELECT: CREATE, ALTER, SHOW, EXPLAIN and the rest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from thalweg.lang.ast import (
    AlterQuery,
    ColumnDefinition,
    CreateAlert,
    CreateQuery,
    CreateStream,
    CreateTable,
    CreateView,
    Explain,
    Invoke,
    Manage,
    Select,
    SelectStatement,
    Show,
    SourceClause,
    Statement,
)
from thalweg.lang.durations import unit_micros
from thalweg.lang.parser import Cursor
from thalweg.lang.selects import parse_select, window_clause


def parse_statement(c: Cursor) -> Statement:
    at = c.offset()
    if c.word("CREATE"):
        return _create(c, at)
    if c.peek("SELECT") or (c._curr and c._curr.token_type == TokenType.L_PAREN):
        return SelectStatement(parse_select(c), _text(c, at), at)
    if c.word("ALTER"):
        c.need("QUERY")
        return _alter(c, at)
    for verb in ("PAUSE", "RESUME", "DROP", "REFRESH"):
        if c.word(verb):
            return _manage(c, verb, at)
    if c.word("INVOKE"):
        name = c.name("a query")
        return Invoke(name, c.expression_() if c.word("AT") else None, at)
    if c.word("SHOW"):
        return _show(c, at)
    if c.word("EXPLAIN"):
        return _explain(c, at)
    c.unexpected("CREATE, SELECT, ALTER, PAUSE, RESUME, DROP, REFRESH, INVOKE, SHOW or EXPLAIN")


def _text(c: Cursor, start: int) -> str:
    return str(c.sql[start : c.end()])


def _create(c: Cursor, at: int) -> Statement:
    for word, rule in _CREATE.items():
        if c.word(word):
            return rule(c, at)
    c.unexpected("STREAM, TABLE, QUERY, VIEW or ALERT")


def _create_query(c: Cursor, at: int) -> CreateQuery:
    name = c.name("a query name")
    c.need("AS")
    start = c.offset()
    query = parse_select(c)
    return CreateQuery(name, query, _text(c, start), at)


def _create_view(c: Cursor, at: int) -> CreateView:
    name = c.name("a view name")
    retain = c.duration() if c.word("RETAIN") else None
    c.need("AS")
    start = c.offset()
    query = parse_select(c)
    return CreateView(name, query, _text(c, start), retain, at)


def _create_table(c: Cursor, at: int) -> CreateTable:
    name = c.name("a table name")
    columns: tuple[ColumnDefinition, ...] = ()
    if c._curr and c._curr.token_type == TokenType.L_PAREN:
        columns = c.wrapped(lambda: _column(c))
    c.need("FROM")
    return CreateTable(name, columns, _source(c), at)


def _create_stream(c: Cursor, at: int) -> CreateStream:
    name = c.name("a stream name")
    columns = c.wrapped(lambda: _column(c))
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
            c.fail(f"{word} stands twice")
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
    if c._curr and c._curr.token_type == TokenType.L_PAREN:
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
    "FROM": lambda c: {"source": _source(c)},
}


def _column(c: Cursor) -> ColumnDefinition:
    at = c.offset()
    name = c.name("a column name")
    if not c._curr:
        c.unexpected("a type")
    kind = str(c._curr.text)
    c._advance()
    precision, scale = 10, 0
    if c._match(TokenType.L_PAREN):
        precision = c.integer("a number")
        if c._match(TokenType.COMMA):
            scale = c.integer("a number")
        c.symbol(TokenType.R_PAREN, ")")
    nullable = not c.word("NOT", "NULL")
    if nullable:
        c.word("NULL")
    return ColumnDefinition(name, kind, precision, scale, nullable, at)


def _source(c: Cursor) -> SourceClause:
    for kind, what in (("FILES", "a path"), ("SPARK", "a format"), ("SENSOR", "an address")):
        if c.word(kind):
            target = c.string(f"{what} as a string")
            form = c.name("a format").lower() if c.word("FORMAT") else None
            return SourceClause(kind, target, form, c.options() if c.word("OPTIONS") else ())
    c.unexpected("FILES, SPARK or SENSOR")


def _create_alert(c: Cursor, at: int) -> CreateAlert:
    name = c.name("an alert name")
    c.need("AS")
    query = parse_select(c)
    if not isinstance(query, Select):
        c.fail("an alert takes one SELECT", at=at)
    c.need("WITHIN")
    within = _within(c)
    if c.word("WHERE"):
        from dataclasses import replace

        query = replace(query, conditions=(*query.conditions, c.expression_()))
    domains = []
    while c.word("DOMAIN"):
        domains.append(_domain(c))
    c.need("WHEN")
    when = c.expression_()
    clear = c.expression_() if c.word("CLEAR", "BELOW") else None
    return CreateAlert(name, query, within, tuple(domains), when, clear, at)


def _domain(c: Cursor) -> tuple[exp.Expr, exp.Expr, exp.Expr]:
    # not an expression: `r.x (0, 100)` would be read as a call
    at = c.offset()
    table, _, name = c.dotted_name("a column").rpartition(".")
    bounds = c.wrapped(c.expression_)
    if len(bounds) != 2:
        c.fail("DOMAIN takes a lower and an upper bound", "write DOMAIN r.x (lo, hi)", at)
    column = exp.column(name, table or None)
    column.meta["at"] = at
    return column, bounds[0], bounds[1]


def _within(c: Cursor) -> tuple[tuple[str, int], ...]:
    if not c._match(TokenType.L_PAREN):
        return (("*", c.duration()),)
    found = [_pair(c)]
    while c._match(TokenType.SEMICOLON) or c._match(TokenType.COMMA):
        found.append(_pair(c))
    c.symbol(TokenType.R_PAREN, ")")
    return tuple(found)


def _pair(c: Cursor) -> tuple[str, int]:
    left = c.name("a source")
    c.symbol(TokenType.COMMA, ",")
    right = c.name("a source")
    return f"{left},{right}", c.duration()


def _alter(c: Cursor, at: int) -> AlterQuery:
    name = c.name("a query")
    if c.word("AS"):
        start = c.offset()
        query = parse_select(c)
        return AlterQuery(name, None, None, (), query, at, _text(c, start))
    c.need("SET")
    if c.word("WINDOW"):
        source = c.name("a source")
        start = c.offset()
        window = window_clause(c)
        return AlterQuery(name, source, window, (), None, at, _text(c, start))
    return AlterQuery(name, None, None, c.options(), None, at)


def _manage(c: Cursor, verb: str, at: int) -> Manage:
    for kind in ("QUERY", "VIEW", "TABLE", "STREAM", "ALERT"):
        if c.word(kind):
            return Manage(verb, kind, c.name("a name"), at)
    return Manage(verb, "QUERY", c.name("a name"), at)


def _show(c: Cursor, at: int) -> Show:
    for what in ("STREAMS", "QUERIES", "STATE", "TABLES"):
        if c.word(what):
            return Show(what, None, at)
    if c.word("PLANS"):
        return Show("PLANS", c.name("a query"), at)
    c.unexpected("STREAMS, QUERIES, PLANS q or STATE")


def _explain(c: Cursor, at: int) -> Explain:
    mode = next((m for m in ("ESTIMATE", "BOUND", "ANALYZE", "ADAPT") if c.word(m)), None)
    if c.peek("SELECT") or c.peek("CREATE"):
        inner = parse_statement(c)
        if not isinstance(inner, (SelectStatement, CreateQuery)):
            c.fail("only queries can be explained", at=at)
        return Explain(mode, inner, at)
    return Explain(mode, c.name("a query or SELECT"), at)


_CREATE: dict[str, Callable[[Cursor, int], Statement]] = {
    "STREAM": _create_stream,
    "TABLE": _create_table,
    "QUERY": _create_query,
    "VIEW": _create_view,
    "ALERT": _create_alert,
}
