"""Queries in Python: the language's own trees, built by method calls.

>>> from thalweg import col, fn
>>> (col("price") * 1.05 > col("t.open")) & ~col("sym").isin("AAA", "BBB")
price * 1.05 > t.open AND sym NOT IN ('AAA', 'BBB')
>>> fn.avg(col("price")).filter("qty > 0").alias("mean")
avg(price) FILTER(WHERE qty > 0) AS mean

`engine["trades"]` gives a `Stream` to build on. Each method applies to what stands before it; what
comes out is text of the language (`Stream.sql`), read by the same parser and bound by the same
binder as any other, so that there is nothing here that SQL cannot say.

Where a condition, an item or a key is expected, a string is text of the language; as an operand or
an argument of a function it is a value.
"""

from __future__ import annotations

from thalweg.fluent.calls import Call, Case, when
from thalweg.fluent.expressions import Aliased, Expression, Ordering, col, lit, sql
from thalweg.fluent.functions import fn
from thalweg.fluent.streams import Grouped, Stream

__all__ = [
    "Aliased",
    "Call",
    "Case",
    "Expression",
    "Grouped",
    "Ordering",
    "Stream",
    "col",
    "fn",
    "lit",
    "sql",
    "when",
]
