"""Places in the text of a statement, and what stands there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from thalweg.errors import ThalwegError
from thalweg.lang.syntax import exp

_LONGEST_SHOWN = 80


def place(text: str, offset: int) -> tuple[int, int]:
    """1-based line and column of an offset."""
    before = text[:offset]
    return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1


@contextmanager
def placed(text: str, at: int) -> Iterator[None]:
    """Whatever is refused inside has a place: this one, if it has none of its own."""
    try:
        yield
    except ThalwegError as error:
        error.at(text, *place(text, at))
        raise


def shown(node: exp.Expr, text: str) -> str:
    """An expression as it was written; its beginning, if it is long."""
    span = span_of(node)
    words = "" if span is None else " ".join(text[slice(*span)].split())
    return words if len(words) <= _LONGEST_SHOWN else words[: _LONGEST_SHOWN - 4] + " ..."


def span_of(node: exp.Expr) -> tuple[int, int] | None:
    """Where an expression begins and ends in its text."""
    begin, ends = offset_of(node), [n.meta["end"] for n in node.walk() if "end" in n.meta]
    return (begin, max(ends)) if ends and begin is not None else None


def offset_of(node: exp.Expr) -> int | None:
    """The offset of an expression in its text, if any part of it has one."""
    found = [n.meta["at"] for n in node.walk() if "at" in n.meta]
    return min(found) if found else None
