"""Points in time as written in a window: TIMESTAMP '2026-01-01 12:00:00', a DATE, or plain text."""

from __future__ import annotations

from datetime import datetime

from thalweg.errors import WindowMisuse
from thalweg.instants import instant_of
from thalweg.lang.parsing.places import offset_of, place
from thalweg.lang.syntax import exp


def moment(node: exp.Expr, text: str) -> int:
    """Microseconds since 1970; a time without a zone is UTC."""
    inner = node.this if isinstance(node, exp.Cast) else node
    try:
        if not isinstance(inner, exp.Literal) or not inner.args.get("is_string"):
            raise ValueError
        found = datetime.fromisoformat(str(inner.this))
    except ValueError:
        at = offset_of(node) or 0
        raise WindowMisuse(
            "a window begins and ends at points in time",
            remedy="write TIMESTAMP '2026-01-01 12:00:00'",
        ).at(text, *place(text, at)) from None
    return instant_of(found)
