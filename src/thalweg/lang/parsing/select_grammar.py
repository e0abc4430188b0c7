"""Grammar of SELECT: sources with windows and models, and the clauses after them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from thalweg.lang.parsing.ast import (
    FromItem,
    IntoClause,
    JoinRef,
    QosClause,
    Query,
    Select,
    SelectPlaces,
    SetOperation,
    Source,
)
from thalweg.lang.parsing.cursor import Cursor, parse_alias
from thalweg.lang.parsing.select_clauses import SELECT_CLAUSES, SOURCE_CLAUSES, RelationClause
from thalweg.lang.syntax import TokenType, exp
from thalweg.plan.logical import EmitKind
from thalweg.windows import WINDOW_KINDS
from thalweg.windows.protocol import WindowClause

_KINDS = {
    "ISTREAM": EmitKind.ISTREAM,
    "DSTREAM": EmitKind.DSTREAM,
    "RSTREAM": EmitKind.RSTREAM,
}
_JOINS = (
    "", "INNER", "LEFT", "LEFT OUTER", "RIGHT", "RIGHT OUTER", "FULL", "FULL OUTER", "LEFT SEMI",
    "LEFT ANTI", "SEMI", "ANTI", "CROSS", "ASOF", "LEFT ASOF", "ASOF LEFT", "NATURAL",
)  # fmt: skip
_JOIN_WORDS = ("LEFT", "RIGHT", "FULL", "SEMI", "ANTI", "ASOF", "CROSS", "NATURAL")


def parse_select(c: Cursor) -> Query:
    """A SELECT, or several combined by UNION, EXCEPT or INTERSECT, which binds tighter."""
    intersected = partial(_combined, c, ("INTERSECT",), partial(_operand, c))
    left = _combined(c, ("UNION", "EXCEPT"), intersected)
    if isinstance(left, SetOperation) and c.peek("WITH"):
        c._advance()
        left = replace(left, options=c.options())
    return left


def _combined(c: Cursor, operators: tuple[str, ...], operand: Callable[[], Query]) -> Query:
    """Operands combined from left to right by operators that bind alike."""
    left = operand()
    while c._curr and c._curr.text.upper() in operators:
        at = c.offset()
        operator = c._curr.text.upper()
        c._advance()
        if c.word("ALL"):
            operator += " ALL"
        else:
            c.word("DISTINCT")
        left = SetOperation(operator, left, operand(), (), at)
    return left


def _operand(c: Cursor) -> Query:
    if c.peek("WITH"):
        c.fail(
            "WITH before SELECT is not part of the language", "use CREATE VIEW, or FROM (SELECT)"
        )
    if c._match(TokenType.L_PAREN):
        inner = parse_select(c)
        c.symbol(TokenType.R_PAREN, ")")
        return inner
    return _select(c)


def _select(c: Cursor) -> Select:
    at = c.offset()
    c.need("SELECT")
    kind = _emit_kind(c)
    distinct = c.word("DISTINCT")
    if not distinct:
        c.word("ALL")
    items = c.listed(lambda: _item(c))
    from_at = c.offset()
    c.need("FROM")
    from_items = c.listed(lambda: _joined(c))
    from_end = c.end()
    conditions = (c.expression_(),) if c.word("WHERE") else ()
    places = SelectPlaces(from_at, from_end, c.end())
    group_by, grouping = _group_by(c)
    having = c.expression_() if c.word("HAVING") else None
    order_by = _order_by(c)
    limit = c.expression_() if c.word("LIMIT") else None
    select = Select(
        kind, distinct, items, from_items, conditions, group_by, grouping, having, order_by,
        limit, (), None, (), at, places=places,
    )  # fmt: skip
    return _closing_clauses(c, select)


def _emit_kind(c: Cursor) -> EmitKind | None:
    if c._curr and c._curr.text.upper() in _KINDS and c._next.token_type not in (
        TokenType.COMMA, TokenType.FROM, TokenType.DOT, TokenType.ALIAS,
    ):  # fmt: skip
        kind = _KINDS[c._curr.text.upper()]
        c._advance()
        return kind
    return None


def _item(c: Cursor) -> exp.Expr:
    at = c.offset()
    node = c.understood(c._parse_expression())
    node.meta.setdefault("at", at)
    return node


def _joined(c: Cursor) -> FromItem:
    """A source and what is joined to it; JOIN binds closer than the comma."""
    item = _from_item(c)
    while True:
        kind, at = _join_kind(c)
        if kind is None:
            return item
        right = _from_item(c)
        condition = None
        if kind in ("CROSS", "NATURAL") and c.peek("ON"):
            c.fail(f"{kind} JOIN has no condition", "write JOIN ... ON, or leave ON out")
        if c.word("ON"):
            condition = c.expression_()
        elif c.peek("USING"):
            c.fail("USING is not part of the language", "write ON a.x = b.x")
        elif kind not in ("CROSS", "NATURAL"):
            c.unexpected("ON")
        item = JoinRef(kind, item, right, condition, at)


def _from_item(c: Cursor) -> FromItem:
    if c._curr and c._curr.token_type == TokenType.L_PAREN and not opens_select(c):
        c._advance()
        inner = _joined(c)
        c.symbol(TokenType.R_PAREN, ")")
        return inner
    return _source(c)


def opens_select(c: Cursor, ahead: int = 0) -> bool:
    """Whether parentheses lie ahead (so many tokens from here) that hold a SELECT."""
    at = c._index + ahead
    if at >= len(c._tokens) or c._tokens[at].token_type != TokenType.L_PAREN:
        return False
    while at < len(c._tokens) and c._tokens[at].token_type == TokenType.L_PAREN:
        at += 1
    return at < len(c._tokens) and c._tokens[at].text.upper() == "SELECT"


def _join_kind(c: Cursor) -> tuple[str | None, int]:
    at = c.offset()
    words = []
    start = c._index
    while c._curr and c._curr.text.upper() in (*_JOIN_WORDS, "INNER", "OUTER"):
        words.append(c._curr.text.upper())
        c._advance()
    if c.word("JOIN"):
        written = " ".join(words)
        if written not in _JOINS:
            c.fail(
                f"there is no {written} JOIN",
                "use LEFT, RIGHT, FULL, LEFT SEMI, LEFT ANTI, CROSS, ASOF or LEFT ASOF JOIN",
                at,
            )
        return written.replace(" OUTER", "") or "INNER", at
    c._retreat(start)
    return None, at


def _source(c: Cursor) -> Source:
    at = c.offset()
    name, subquery = None, None
    if c._match(TokenType.L_PAREN):
        subquery = parse_select(c)
        c.symbol(TokenType.R_PAREN, ")")
    else:
        name = c.dotted_name("a stream or table")
    window, named = None, c.end()
    if c._curr and c._curr.token_type == TokenType.L_BRACKET:
        window = window_clause(c)
    window_at = (named, c.end())
    alias = parse_alias(c)
    return Source(name, subquery, window, alias, _source_clause(c), at, window_at)


def _source_clause(c: Cursor) -> RelationClause | None:
    kind = next((k for k in SOURCE_CLAUSES if c.word(k.word)), None)
    return None if kind is None else kind.parse(c)


def window_clause(c: Cursor) -> WindowClause:
    """The window in its brackets."""
    c.symbol(TokenType.L_BRACKET, "[")
    window = _window_body(c)
    c.symbol(TokenType.R_BRACKET, "]")
    return window


def _window_body(c: Cursor) -> WindowClause:
    by = c.listed(c.expression_) if c.word("PARTITION", "BY") or _partition_by(c) else ()
    kinds = [k for k in WINDOW_KINDS if k.takes_partition or not by]
    for kind in kinds:
        window = kind.parse(c, by)
        if window is not None:
            return window
    c.unexpected(" or ".join(k.grammar for k in kinds) if by else _window_grammar())


def _partition_by(c: Cursor) -> bool:
    return bool(c._match(TokenType.PARTITION_BY))


def _window_grammar() -> str:
    partition = "[PARTITION BY c] "
    kinds = [partition * k.takes_partition + k.grammar for k in WINDOW_KINDS]
    return f"a window: {', '.join(kinds[:-1])} or {kinds[-1]}"


def _group_by(c: Cursor) -> tuple[tuple[exp.Expr, ...], str | None]:
    if not (c._match(TokenType.GROUP_BY) or c.word("GROUP", "BY")):
        return (), None
    if c._match(TokenType.GROUPING_SETS):
        return c.wrapped(c.expression_), "GROUPING SETS"
    for word in ("CUBE", "ROLLUP"):
        if c.word(word):
            return c.wrapped(c.expression_), word
    return c.listed(c.expression_), None


def _order_by(c: Cursor) -> tuple[exp.Expr, ...]:
    if not (c._match(TokenType.ORDER_BY) or c.word("ORDER", "BY")):
        return ()

    return c.listed(lambda: c.understood(c._parse_ordered()))


def _closing_clauses(c: Cursor, select: Select) -> Select:
    """The clauses at the end, in any order, each at most once."""
    seen: set[str] = set()
    while True:
        word = c._curr.text.upper() if c._curr else ""
        if word in seen:
            c.fail(f"{word} stands twice", "keep one of them")
        seen.add(word)
        if c.word("QOS"):
            select = replace(select, qos=c.wrapped(lambda: _qos(c)))
        elif c.word("INTO"):
            select = replace(select, into=_into(c))
        elif c.peek("WITH"):
            c._advance()
            select = replace(select, options=c.options())
        else:
            kind = next((k for k in SELECT_CLAUSES if c.word(k.word)), None)
            if kind is None:
                return select
            select = replace(select, clauses=(*select.clauses, kind.parse(c)))


def _qos(c: Cursor) -> QosClause:
    for kind in ("LATENCY", "LOSS", "VALUE"):
        if c.word(kind):
            column = c.name("a column") if kind == "VALUE" else None
            return QosClause(kind, column, c.wrapped(lambda: _point(c)))
    c.unexpected("LATENCY, LOSS or VALUE")


def _point(c: Cursor) -> tuple[float, float]:
    x = c.number("a number")
    c.symbol(TokenType.COLON, ":")
    return x, c.number("a number")


def _into(c: Cursor) -> IntoClause:
    if c.word("CONSOLE"):
        return IntoClause("CONSOLE", "", None, ())
    for kind in ("FILES", "CHANGELOG", "TABLE", "SPARK"):
        if c.word(kind):
            target = c.string(f"the {'format' if kind == 'SPARK' else 'path'} as a string")
            form = c.name("a format").lower() if c.word("FORMAT") else None
            return IntoClause(kind, target, form, c.source_options())
    c.unexpected("FILES, CHANGELOG, TABLE, SPARK or CONSOLE")
