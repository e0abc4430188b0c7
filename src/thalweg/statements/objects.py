"""The kinds of objects that statements manage."""

from __future__ import annotations

from thalweg.statements.protocol import ObjectKind

STREAM = ObjectKind(
    "STREAM",
    "STREAMS",
    listed=lambda on: on.streams(),
    drop=lambda on, name: on.streams.drop(name),
    resume_from=lambda on, name, text: on.streams.resume_from(name, text),
)
QUERY = ObjectKind(
    "QUERY",
    "QUERIES",
    listed=lambda on: on.queries(),
    drop=lambda on, name: on.queries.drop(name),
    pause=lambda on, name: on.queries.pause(name),
    resume=lambda on, name: on.queries.resume(name),
)
VIEW = ObjectKind(
    "VIEW",
    "VIEWS",
    listed=lambda on: on.views(),
    drop=lambda on, name: on.views.drop(name),
    resume_from=lambda on, name, text: on.views.resume_from(name, text),
)
TABLE = ObjectKind(
    "TABLE",
    "TABLES",
    listed=lambda on: on.tables(),
    drop=lambda on, name: on.tables.drop(name),
    resume_from=lambda on, name, text: on.tables.resume_from(name, text),
)
ALERT = ObjectKind("ALERT", "ALERTS")
OBJECTS = (STREAM, QUERY, TABLE, VIEW, ALERT)
