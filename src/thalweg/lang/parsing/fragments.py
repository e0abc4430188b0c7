"""Parsing of fragments given as strings in the Python API, each in a text of its own."""

from __future__ import annotations

from collections.abc import Callable

from thalweg.errors import ParseError
from thalweg.lang.parsing.cursor import Cursor
from thalweg.lang.parsing.parser import parse_each
from thalweg.lang.syntax import exp


def parse_expression(text: str) -> exp.Expr:
    """One expression, such as `price > 100`."""
    return parse_whole(text, lambda c: c.expression_())


def parse_item(text: str) -> exp.Expr:
    """One item of SELECT: an expression that may have a name, or `*`."""
    return parse_whole(text, lambda c: c.understood(c._parse_expression()))


def parse_ordering(text: str) -> exp.Expr:
    """One key of ORDER BY, such as `price DESC`."""
    return parse_whole(text, lambda c: c.understood(c._parse_ordered()))


def parse_whole(text: str, rule: Callable[[Cursor], exp.Expr]) -> exp.Expr:
    """What a rule of the grammar makes of a text, all of it."""
    found = parse_each(text, rule)
    if len(found) != 1:
        raise ParseError(
            "expected one expression", remedy="such as price > 100", text=text, line=1, column=1
        )
    return found[0]
