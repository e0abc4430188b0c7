"""Every refusal of Thalweg: what was expected, where, and what to do about it.

All refusals derive from `ThalwegError`, so one `except` catches them. An error that stems from a
statement knows its place in the text and shows it with a caret.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any, Self

from thalweg.masking import masked


class ThalwegError(Exception):
    """A refusal with cause, place and remedy. Nothing is refused without a remedy."""

    def __init__(
        self,
        message: str,
        *,
        remedy: str,
        text: str | None = None,
        line: int | None = None,
        column: int | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy
        self.text = text
        self.line = line
        self.column = column

    def at(self, text: str, line: int, column: int) -> Self:
        """The same refusal, placed in a statement (1-based line and column)."""
        if self.line is None:
            self.text, self.line, self.column = text, line, column
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (type(self), self.message, vars(self))

    def __str__(self) -> str:
        parts = [self.message]
        if self.line is not None and self.column is not None:
            parts[0] += f" (line {self.line}, column {self.column})"
            parts += _pointed_at(self.text or "", self.line, self.column)
        parts.append(f"  → {self.remedy}")
        return "\n".join(parts)


def _pointed_at(text: str, line: int, column: int) -> list[str]:
    """A line of a statement as it may be shown, and a caret below the column."""
    lines = text.splitlines()
    if not 0 < line <= len(lines):
        return []
    shown = masked(text).splitlines()[line - 1]
    before = "\n".join([*lines[: line - 1], lines[line - 1][: column - 1]])
    indent = column - 1 if shown == lines[line - 1] else len(masked(before).split("\n")[-1])
    return [f"  {shown}", "  " + " " * indent + "^"]


def _again(kind: type[ThalwegError], message: str, fields: dict[str, Any]) -> ThalwegError:
    """A refusal that was pickled."""
    error = kind(message, remedy=fields["remedy"])
    vars(error).update(fields)
    return error


class ParseError(ThalwegError):
    """The text is not a statement of the language."""


class BindError(ThalwegError):
    """The statement is well formed but means nothing here."""


class UnknownName(BindError):
    """A stream, table, column, query, function or option that does not exist."""


class UnknownFunction(UnknownName):
    """No function of the name is known."""


class AmbiguousName(BindError):
    """A column that several sources have."""


class TypeMismatch(BindError):
    """An expression whose operands do not fit."""


class AggregateMisuse(BindError):
    """An aggregate where none may stand, or a bare column beside one."""


class WindowMisuse(BindError):
    """A window where none may stand, or one that makes no sense."""


class NotAvailableYet(BindError):
    """The language has it, this version does not run it."""


class JoinTooLarge(BindError):
    """A join may have more rows than `max_rows` allows."""


class UnboundedState(BindError):
    """The query would have to remember everything for ever."""


class DuplicateName(BindError):
    """The name is taken by something defined differently."""


class StillRead(BindError):
    """Something cannot go or change while others read it."""


class ConfigError(ThalwegError):
    """A setting, argument or environment that cannot work."""


class SourceError(ThalwegError):
    """A source that cannot be read or does not have the promised shape."""


class PathError(ThalwegError):
    """The engine's path cannot be used: in use, of a newer format, or not matching."""


class PathInUse(PathError):
    """Another engine is alive on this path."""


class FormatTooNew(PathError):
    """The path was written by a newer version; it is left untouched."""


class FileTrouble(PathError):
    """A file of the path that the system does not let the engine read or write; `errno` says
    why."""

    errno: int | None = None


class FileMissing(PathError):
    """A file of the path that is not there."""


class FileDamaged(PathError):
    """A file of the path that is not as it was written."""


class GroupMismatch(PathError):
    """The streams given do not match the ingest group recorded on this path."""


class CheckpointLost(PathError):
    """The ingest checkpoint of a known group is missing or another one's."""


class MissingSpark(ThalwegError):
    """What is asked for needs Spark, which is not installed."""


class FunctionMissing(ThalwegError):
    """A user function that a worker cannot load."""


class FunctionTooSlow(ThalwegError):
    """A user function ran into its deadline."""


class SinkFailed(ThalwegError):
    """Output is committed but could not be handed over; the next run tries again."""


class QueryFailed(ThalwegError):
    """A query's own code failed; the other queries go on."""


def nearest(name: str, candidates: Iterable[str]) -> str | None:
    """The candidate a mistyped name most likely meant."""
    pool = {c.lower(): c for c in candidates}
    found = difflib.get_close_matches(name.lower(), list(pool), n=1, cutoff=0.6)
    return pool[found[0]] if found else None


def did_you_mean(name: str, candidates: Iterable[str]) -> str:
    """A remedy line for an unknown name: the nearest one, or all there are."""
    known = sorted(set(candidates))
    close = nearest(name, known)
    if close is not None:
        return f"did you mean {close}?"
    if not known:
        return "there is none yet"
    shown = ", ".join(known[:12]) + (" ..." if len(known) > 12 else "")
    return f"known: {shown}"
