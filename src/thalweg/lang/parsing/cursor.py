"""The cursor over a statement's tokens: expressions as sqlglot parses them, and small helpers for
Thalweg's own syntax."""

from __future__ import annotations

from collections.abc import Callable
from math import isinf
from typing import Any, NoReturn, TypeVar

from thalweg.errors import ParseError, ThalwegError
from thalweg.lang.durations import to_micros, unit_micros
from thalweg.lang.parsing.expression_parser import ExpressionParser
from thalweg.lang.parsing.places import offset_of, place
from thalweg.lang.parsing.select_clauses import SELECT_CLAUSES, SOURCE_CLAUSES
from thalweg.lang.parsing.understood import unread, words_for
from thalweg.lang.parsing.unreadable import remedy_for
from thalweg.lang.syntax import TokenType, exp
from thalweg.secrets import Secret

T = TypeVar("T")

_NOT_AN_ALIAS = frozenset(
    (
    "WHERE GROUP HAVING ORDER LIMIT QOS INTO WITH WITHIN WHEN DOMAIN "
    "CLEAR ON JOIN INNER LEFT RIGHT FULL CROSS NATURAL SEMI ANTI ASOF UNION EXCEPT "
    "INTERSECT USING RETAIN FROM SELECT AS SET FINAL"
).split()
)  # fmt: skip


class Cursor(ExpressionParser):
    """The parser of expressions, plus small helpers for statements."""

    object_words: tuple[str, ...] = ()
    object_plurals: tuple[str, ...] = ()
    """Kinds of objects that statements may name, and those that SHOW lists."""

    # -- place -------------------------------------------------------------------------------

    def fail(self, message: str, remedy: str, at: int | None = None) -> NoReturn:
        line, column = place(self.sql, self.offset() if at is None else at)
        raise ParseError(message, remedy=remedy, text=self.sql, line=line, column=column)

    def unexpected(self, wanted: str) -> NoReturn:
        found = f"found {self._curr.text!r}" if self._curr else "the text ends"
        self.fail(f"expected {wanted}, {found}", remedy_for(self._curr.text if self._curr else ""))

    def _parse_window(self, this: exp.Expr | None, alias: bool = False) -> exp.Expr | None:
        """After a function call: Thalweg's `WITHIN (5%)` or `WITHIN (8 BUCKETS)`, then SQL's
        own."""
        node = super()._parse_window(this, alias)
        if node is not None and self.peek("WITHIN", "("):
            self._advance(2)
            amount = self.number("an error bound")
            kind = "%" if self._match(TokenType.MOD) else "buckets"
            if kind == "buckets":
                self.need("BUCKETS")
            self.symbol(TokenType.R_PAREN, ")")
            node.meta["within"] = (amount, kind)
        return node

    # -- helpers -----------------------------------------------------------------------------

    def word(self, *texts: str) -> bool:
        return bool(self._match_text_seq(*texts))

    def peek(self, *texts: str) -> bool:
        return bool(self._match_text_seq(*texts, advance=False))

    def need(self, *texts: str) -> None:
        if not self.word(*texts):
            self.unexpected(" ".join(texts))

    def text_since(self, start: int) -> str:
        """The text from a place up to the last token."""
        return str(self.sql[start : self.end()])

    def symbol(self, token: TokenType, shown: str) -> None:
        if not self._match(token):
            self.unexpected(f"'{shown}'")

    def name(self, what: str = "a name") -> str:
        if self._curr and self._curr.token_type in (TokenType.STRING, TokenType.NUMBER):
            self.unexpected(what)
        node = self._parse_id_var()
        if node is None:
            self.unexpected(what)
        return str(node.name)

    def dotted_name(self, what: str = "a name") -> str:
        """`trades` or `trades.rejects`."""
        text = self.name(what)
        while self._match(TokenType.DOT):
            text += "." + self.name(what)
        return text

    def string(self, what: str) -> str:
        if not self._match(TokenType.STRING):
            self.unexpected(what)
        return str(self._prev.text)

    def integer(self, what: str) -> int:
        if self._match(TokenType.NUMBER) and self._prev.text.isdigit():
            return int(self._prev.text)
        self._retreat(self._index)
        self.unexpected(what)

    def number(self, what: str) -> float:
        sign = -1.0 if self._match(TokenType.DASH) else 1.0
        if not self._match(TokenType.NUMBER):
            self.unexpected(what)
        text = str(self._prev.text)
        try:
            found = sign * float(text)
        except ValueError:
            self.unexpected(what)
        if isinf(found):
            self.fail(
                f"{text} is too large for a number",
                "the largest is about 1.8e308",
                at=int(self._prev.start),
            )
        return found

    def expression_(self) -> exp.Expr:
        return self.understood(self._parse_disjunction())

    def understood(self, node: exp.Expr | None) -> exp.Expr:
        """The node, unless there is none or something in it has no meaning in the language."""
        if node is None:
            self.unexpected("an expression")
        for one, part in unread(node):
            words = words_for(part)
            self.fail(
                f"{words} is not part of the language here",
                remedy_for(words.split()[0]),
                at=offset_of(one),
            )
        return node

    def listed(self, item: Callable[[], T]) -> tuple[T, ...]:
        found = [item()]
        while self._match(TokenType.COMMA):
            found.append(item())
        return tuple(found)

    def wrapped(self, item: Callable[[], T]) -> tuple[T, ...]:
        self.symbol(TokenType.L_PAREN, "(")
        found = self.listed(item)
        self.symbol(TokenType.R_PAREN, ")")
        return found

    def duration(self) -> int:
        """`5 MINUTES`, `INTERVAL 5 MINUTES`, `INTERVAL '5' MINUTES` or `INTERVAL '5 minutes'`."""
        at = self.offset()
        self._match(TokenType.INTERVAL)
        if not self._match_set((TokenType.NUMBER, TokenType.STRING)):
            self.unexpected("a duration such as 5 MINUTES")
        amount, _, unit = str(self._prev.text).strip().partition(" ")
        if not unit:
            if not self._curr or unit_micros(self._curr.text) is None:
                self.unexpected("a unit of time such as SECONDS, MINUTES or DAYS")
            unit = str(self._curr.text)
            self._advance()
        try:
            return to_micros(amount, unit.strip())
        except ThalwegError as error:
            raise error.at(self.sql, *place(self.sql, at)) from None
        except ArithmeticError:
            self.fail(f"{amount!r} is not a number", "write one such as 5 MINUTES", at=at)

    def options(self) -> tuple[tuple[str, Any], ...]:
        """`(name = value, ...)`; names may be strings or dotted, as Spark's options are."""
        return self.wrapped(lambda: _option(self, secrets=False))

    def source_options(self) -> tuple[tuple[str, Any], ...]:
        """`OPTIONS (...)` of a source or a sink, if it follows; a value may be `SECRET 'name'`."""
        return self.wrapped(lambda: _option(self, secrets=True)) if self.word("OPTIONS") else ()


def parse_alias(c: Cursor) -> str | None:
    """`AS name`, or a name that cannot be the next clause."""
    if c._match(TokenType.ALIAS):
        return c.name("an alias")
    if (
        c._curr
        and c._curr.text.upper() not in _NOT_AN_ALIAS.union(_clause_words())
        and c._curr.token_type in c.ID_VAR_TOKENS | {TokenType.IDENTIFIER}
    ):
        return c.name("an alias")
    return None


def _clause_words() -> set[str]:
    return {k.word for k in (*SELECT_CLAUSES, *SOURCE_CLAUSES)}


def _option(c: Cursor, *, secrets: bool) -> tuple[str, Any]:
    quoted = c._match(TokenType.STRING)
    key = str(c._prev.text) if quoted else c.dotted_name("an option")
    if not c._match(TokenType.EQ):
        c.unexpected("'='")
    if secrets and c.word("SECRET"):
        return key, Secret(c.string("the name of a secret as a string"))
    return key, _option_value(c)


def _option_value(c: Cursor) -> Any:
    if c._match(TokenType.STRING):
        return str(c._prev.text)
    if c._match(TokenType.TRUE):
        return True
    if c._match(TokenType.FALSE):
        return False
    if c._curr and c._curr.token_type in (TokenType.NUMBER, TokenType.DASH):
        value = c.number("a value")
        return int(value) if value == int(value) else value
    return c.name("a value")
