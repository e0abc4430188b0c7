"""The parser of the dialect: statements and clauses are Thalweg's, scalar expressions are sqlglot's
(Spark flavour).

Parsing gives typed values or raises `ParseError` with the place; no other exception leaves it,
whatever the text. The statements around SELECT are in `statements/`, one file each.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from thalweg.errors import ParseError, ThalwegError
from thalweg.lang.parsing.ast import Query
from thalweg.lang.parsing.cursor import Cursor
from thalweg.lang.parsing.expression_parser import Dialect
from thalweg.lang.parsing.places import place
from thalweg.lang.parsing.select_grammar import opens_select, parse_select, window_clause
from thalweg.lang.syntax import SqlglotError, Token, TokenError, TokenType, exp
from thalweg.windows.protocol import WindowClause

T = TypeVar("T")

_LONGEST_STATEMENT = 200_000


class QueryCursor(Cursor):
    """A cursor that parses queries inside expressions."""

    def _subquery(self) -> exp.Expr | None:
        """`(SELECT ...)` or `EXISTS (SELECT ...)`: a Thalweg query, windows and all."""
        asked = bool(self._curr) and self._curr.text.upper() == "EXISTS"
        if not opens_select(self, 1 if asked else 0):
            return None
        self._advance(2 if asked else 1)
        node: exp.Expr = exp.Exists() if asked else exp.Subquery()
        node.meta["query"] = parse_select(self)
        self.symbol(TokenType.R_PAREN, ")")
        return node

    def _parse_in(self, this: exp.Expr | None, alias: bool = False) -> exp.In:
        """`x IN (SELECT ...)` holds a Thalweg query, windows and all."""
        if not opens_select(self):
            return super()._parse_in(this, alias)
        self._advance()
        first = self._curr
        query = parse_select(self)
        node = exp.In(this=this)
        node.meta["query"] = query
        node.meta["text"] = " ".join(self._find_sql(first, self._prev).split())
        self.symbol(TokenType.R_PAREN, ")")
        return node


def parse_query(text: str) -> Query:
    """One SELECT (or set operation), with or without a closing semicolon."""
    found = parse_each(text, parse_select)
    if len(found) != 1:
        raise ParseError(
            "expected one SELECT",
            text=text,
            line=1,
            column=1,
            remedy="write one statement that begins with SELECT",
        )
    return found[0]


def parse_window(text: str) -> WindowClause:
    """One window in its brackets, such as `[RANGE 5 MINUTES]`."""
    found = parse_each(text, window_clause)
    if len(found) != 1:
        raise ParseError(
            "expected one window",
            text=text,
            line=1,
            column=1,
            remedy="write one such as [RANGE 5 MINUTES]",
        )
    return found[0]


def same_text(left: str, right: str) -> bool:
    """Whether two statements are the same except for space and comments between their tokens."""
    if left == right:
        return True
    words = [[(t.token_type, t.text) for t in Dialect().tokenize(text)] for text in (left, right)]
    return words[0] == words[1]


def parse_each(text: str, rule: Callable[[Cursor], T]) -> list[T]:
    """The result of a rule for each statement of a script; they are separated by semicolons."""
    if len(text) > _LONGEST_STATEMENT:
        raise ParseError(
            f"the script has {len(text)} characters, the limit is {_LONGEST_STATEMENT}",
            remedy="split it, or register many queries through Engine.query",
            text=text,
            line=1,
            column=1,
        )
    cursor = QueryCursor(dialect=Dialect())
    try:
        found = []
        for tokens in _statements(text):
            cursor.load(tokens, text)
            found.append(rule(cursor))
            if cursor._curr:
                cursor.unexpected("the end of the statement")
        return found
    except ThalwegError as error:
        raise error.at(text, *place(text, cursor.offset())) from None
    except TokenError:
        raise _untokenized(text) from None
    except SqlglotError as error:
        raise cursor.refused(_description(error)) from None
    except RecursionError:
        cursor.failed_at = cursor.offset()
        raise ParseError(
            "the statement is nested too deeply",
            remedy="flatten it, or name a part of it with CREATE VIEW",
        ).at(text, *place(text, cursor.offset())) from None
    except (AttributeError, TypeError, ValueError, KeyError, IndexError, AssertionError):
        # sqlglot's own failures on malformed text; the text is at fault, not the user's program
        cursor.failed_at = cursor.offset()
        raise cursor.refused("") from None


def _description(error: SqlglotError) -> str:
    details = getattr(error, "errors", None) or [{}]
    return str(details[0].get("description") or "")


_OPENING = re.compile(r"""--[^\n]*|/\*|'|"|`""")
_CLOSED = {
    "/*": re.compile(r"/\*.*?\*/", re.DOTALL),
    **{q: re.compile(rf"{q}(?:[^{q}\\]|\\.|{q}{q})*{q}", re.DOTALL) for q in ("'", '"', "`")},
}


def _untokenized(text: str) -> ParseError:
    """The refusal of text that ends inside a quoted text, a quoted name or a comment."""
    at = 0
    while (opened := _OPENING.search(text, at)) is not None:
        closing = _CLOSED.get(opened[0])
        closed = opened if closing is None else closing.match(text, opened.start())
        if closed is None:
            return ParseError(
                f"what {opened[0]} begins is not closed",
                remedy="close it; a quote inside a text is doubled: 'it''s'",
            ).at(text, *place(text, opened.start()))
        at = closed.end()
    return ParseError(
        "the text cannot be read", remedy="docs/language.md has the grammar", text=text, line=1,
        column=1,
    )  # fmt: skip


def _statements(text: str) -> list[list[Token]]:
    chunks: list[list[Token]] = [[]]
    within = False
    for token in Dialect().tokenize(text):
        if token.token_type == TokenType.SEMICOLON and not within:
            chunks.append([])
            continue
        # the pairs of an alert, WITHIN (r, s 5 MINUTES; s, t 1 HOUR), hold semicolons
        if token.token_type == TokenType.L_PAREN and chunks[-1]:
            within = chunks[-1][-1].text.upper() == "WITHIN"
        elif token.token_type == TokenType.R_PAREN:
            within = False
        chunks[-1].append(token)
    return [c for c in chunks if c]
