"""From words to a statement, by the table of kinds."""

from __future__ import annotations

from typing import NoReturn

from thalweg.lang.parsing.cursor import Cursor
from thalweg.statements.protocol import Language, Statement, StatementKind


def parse_statement(c: Cursor, language: Language) -> Statement:
    """The statement that begins here."""
    c.object_words = tuple(kind.word for kind in language.objects)
    c.object_plurals = tuple(kind.plural for kind in language.objects if kind.listed is not None)
    at = c.offset()
    found: tuple[StatementKind, list[str]] | None = None
    for kind in language.statements:
        for words in kind.phrases:
            if c.peek(*words) and (found is None or len(words) > len(found[1])):
                found = kind, words
    if found is None:
        _refuse(c, language)
    return found[0].parse(c, at)


def _refuse(c: Cursor, language: Language) -> NoReturn:
    """Say which words could stand here: after those that fit, or at the beginning."""
    phrases = [words for kind in language.statements for words in kind.phrases]
    depth = 0
    while any(len(w) > depth + 1 and c.peek(*w[: depth + 1]) for w in phrases):
        depth += 1
    fitting = [w for w in phrases if len(w) > depth and (not depth or c.peek(*w[:depth]))]
    c.word(*fitting[0][:depth])
    words = list(dict.fromkeys(w[depth] for w in fitting if w[depth].isalpha()))
    c.unexpected(f"{', '.join(words[:-1])} or {words[-1]}")
