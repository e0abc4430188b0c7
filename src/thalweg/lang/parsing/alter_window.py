"""Replacement of the window of one source of a query, as a change of its text."""

from __future__ import annotations

from collections.abc import Iterator

from thalweg.errors import ConfigError, UnknownName, did_you_mean
from thalweg.lang.parsing import ast


def source_called(query: ast.Query, name: str, query_name: str) -> ast.Source:
    """The one source of this name: by its alias, or, without one, by the stream's name."""
    known = [(s.alias or s.name or "", s) for s in _sources(query)]
    found = [s for called, s in known if called.lower() == name.lower()]
    if len(found) == 1:
        return found[0]
    if found:
        raise ConfigError(
            f"query {query_name} has several sources {name}",
            remedy="give them aliases, or use ALTER QUERY ... AS SELECT",
        )
    raise UnknownName(
        f"query {query_name} has no source {name}",
        remedy=did_you_mean(name, [called for called, _ in known]),
    )


def with_window(text: str, source: ast.Source, window: str) -> str:
    """The text with a window in place of the source's own, or after its name."""
    begin, end = source.window_at
    return f"{text[:begin]} {window}{text[end:]}"


def _sources(query: ast.Query) -> Iterator[ast.Source]:
    if isinstance(query, ast.SetOperation):
        yield from _sources(query.left)
        yield from _sources(query.right)
        return
    for source in query.sources:
        yield source
        if source.subquery is not None:
            yield from _sources(source.subquery)
