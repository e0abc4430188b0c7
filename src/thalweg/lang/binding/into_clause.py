"""INTO: the sinks of a query's output, checked before the query starts."""

from __future__ import annotations

from thalweg.errors import BindError, UnknownName, did_you_mean
from thalweg.lang.parsing import ast
from thalweg.lang.parsing.places import place
from thalweg.plan.bound_query import SinkSpec
from thalweg.plan.logical import EmitKind

FILE_FORMATS = ("parquet", "csv", "json", "arrow")


def sink_spec(into: ast.IntoClause | None, kind: EmitKind, text: str, at: int) -> SinkSpec | None:
    if into is None:
        return None
    found = SinkSpec(into.kind.lower(), into.target, into.format, into.options)
    if found.kind in ("changelog", "table") and kind is not EmitKind.RELATION:
        raise BindError(
            f"INTO {into.kind} takes a relation, the query emits {kind.value}",
            remedy=f"drop {kind.value}, or use INTO FILES",
        ).at(text, *place(text, at))
    if found.kind in ("files", "changelog", "table"):
        form = found.format or "parquet"
        if form not in FILE_FORMATS:
            raise UnknownName(
                f"INTO {into.kind} cannot write {form}", remedy=did_you_mean(form, FILE_FORMATS)
            ).at(text, *place(text, at))
        found = SinkSpec(found.kind, found.target, form, found.options)
    return found
