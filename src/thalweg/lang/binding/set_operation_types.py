"""Conversion of both sides of UNION, EXCEPT or INTERSECT to common types, column by column."""

from __future__ import annotations

from typing import NoReturn

from thalweg.errors import TypeMismatch
from thalweg.lang.parsing import ast
from thalweg.lang.parsing.places import place
from thalweg.plan import functions
from thalweg.plan.logical import Named, Node, Project
from thalweg.plan.types import DataType


def alike(query: ast.SetOperation, left: Node, right: Node, text: str) -> tuple[Node, Node]:
    """Both sides with the same types, column by column."""

    def fail(message: str) -> NoReturn:
        raise TypeMismatch(
            message,
            remedy="select as many columns of the same types on both sides, with CAST if need be",
        ).at(text, *place(text, query.at))

    if len(left.schema) != len(right.schema):
        fail(
            f"{query.operator} needs as many columns on both sides, found {len(left.schema)} and "
            f"{len(right.schema)}"
        )
    types = []
    for a, b in zip(left.schema, right.schema, strict=True):
        common = functions.common_type([a.type, b.type])
        if common is None:
            fail(f"{query.operator} cannot bring {a.name} {a.type} and {b.name} {b.type} together")
        types.append(common)
    return _cast(left, types), _cast(right, types)


def _cast(node: Node, types: list[DataType]) -> Node:
    if all(f.type == t for f, t in zip(node.schema, types, strict=True)):
        return node
    columns = tuple(
        Named(f.name, functions.cast(f.column(), t))
        for f, t in zip(node.schema, types, strict=True)
    )
    return Project(node, columns)
