"""Text predicates: contains, starts with, ends with, LIKE."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from thalweg.columns.vector import BAD_PATTERN
from thalweg.exec.expressions.kernels.registry import Outcome, failing, strict, truth
from thalweg.exec.expressions.kernels.text import per_distinct, rows_of, text_rows
from thalweg.plan.expr import Call

_SEARCHES = {
    "contains": pc.match_substring,
    "startswith": pc.starts_with,
    "endswith": pc.ends_with,
}


@strict(*_SEARCHES)
def _search(call: Call, x: Any, wanted: Any) -> Any:
    search = _SEARCHES[call.function]
    texts = text_rows(x, rows_of(x, wanted))
    empty = np.zeros(len(texts), np.bool_)
    return per_distinct(lambda rows, p: truth(search(rows, p)), texts, (wanted,), empty)


@strict("like")
def _like(call: Call, x: Any, pattern: Any) -> Any:
    return _matched(x, pattern, lambda rows, p: pc.match_substring_regex(rows, _like_regex(p)))


@strict("rlike")
def _rlike(call: Call, x: Any, pattern: Any) -> Any:
    return _matched(x, pattern, pc.match_substring_regex)


_FALSE, _TRUE, _BAD = 0, 1, 2


def _matched(x: Any, pattern: Any, match: Any) -> Outcome:
    texts = text_rows(x, rows_of(x, pattern))

    def one(rows: pa.Array, wanted: str) -> Any:
        try:
            return truth(match(rows, wanted)).astype(np.int8)
        except (pa.ArrowInvalid, ValueError):
            return np.full(len(rows), _BAD, np.int8)

    found = per_distinct(one, texts, (pattern,), np.zeros(len(texts), np.int8))
    return Outcome(found == _TRUE, failing(found == _BAD, BAD_PATTERN))


def _like_regex(pattern: str) -> str:
    r"""The regex of a LIKE pattern: `%` any text, `_` any character, `\` escapes either (or
    itself)."""
    out = []
    signs = iter(pattern)
    for sign in signs:
        if sign == "\\":
            taken = next(signs, "")
            if taken not in ("%", "_", "\\"):
                raise ValueError(f"nothing to escape in {pattern!r}")
            out.append(re.escape(taken))
        else:
            out.append({"%": ".*", "_": "."}.get(sign) or _quoted(sign))
    return f"(?s)\\A{''.join(out)}\\z"


def _quoted(sign: str) -> str:
    return re.escape(sign) if sign.isascii() else sign
