"""The statements of the language, one file each, and the objects they manage.

A statement says how it is parsed and what it asks of an engine (`Services`); it knows nothing of
how engines are made.
"""

from __future__ import annotations

from functools import partial

from thalweg.lang.parsing.parser import parse_each
from thalweg.statements.alter_query import ALTER_QUERY, AlterQuery
from thalweg.statements.analyze import ANALYZE, Analyze
from thalweg.statements.create_alert import CREATE_ALERT, CreateAlert
from thalweg.statements.create_query import CREATE_QUERY, SELECT, CreateQuery, SelectStatement
from thalweg.statements.create_stream import CREATE_STREAM, CreateStream
from thalweg.statements.create_table import CREATE_TABLE, REFRESH, CreateTable, Refresh
from thalweg.statements.create_view import CREATE_VIEW, CreateView
from thalweg.statements.explain import EXPLAIN, Explain
from thalweg.statements.invoke import INVOKE, Invoke
from thalweg.statements.manage import DROP, PAUSE, RESUME, Manage
from thalweg.statements.objects import OBJECTS
from thalweg.statements.parse import parse_statement
from thalweg.statements.protocol import Effect, Language, ObjectKind, Statement, StatementKind
from thalweg.statements.show import SHOW, Show

__all__ = [
    "LANGUAGE",
    "AlterQuery",
    "Analyze",
    "CreateAlert",
    "CreateQuery",
    "CreateStream",
    "CreateTable",
    "CreateView",
    "Effect",
    "Explain",
    "Invoke",
    "Language",
    "Manage",
    "ObjectKind",
    "Refresh",
    "SelectStatement",
    "Show",
    "Statement",
    "StatementKind",
    "parse",
]

LANGUAGE = Language(
    (
        CREATE_STREAM,
        CREATE_TABLE,
        CREATE_QUERY,
        CREATE_VIEW,
        CREATE_ALERT,
        SELECT,
        ALTER_QUERY,
        PAUSE,
        RESUME,
        DROP,
        REFRESH,
        ANALYZE,
        INVOKE,
        SHOW,
        EXPLAIN,
    ),
    OBJECTS,
)


def parse(script: str, language: Language = LANGUAGE) -> tuple[Statement, ...]:
    """The statements of a script, separated by semicolons."""
    return tuple(parse_each(script, partial(parse_statement, language=language)))
