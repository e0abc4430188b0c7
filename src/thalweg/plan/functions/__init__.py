"""The built-in scalar functions: names, types and nullability, with every cast made explicit.

Evaluation lives in `thalweg.exec.expressions.kernels`. Beside Spark's rules the language has one of
its own: a number such as 1.5 is a DOUBLE.
"""

from __future__ import annotations

from collections.abc import Sequence

from thalweg.errors import TypeMismatch, UnknownFunction, did_you_mean
from thalweg.plan.expr import Expr
from thalweg.plan.functions import conditional, maths, operators, strings, times
from thalweg.plan.functions.casting import UnreadableText, can_cast, cast, common_type
from thalweg.plan.functions.properties import can_raise, is_deterministic
from thalweg.plan.functions.signature import DEFINITIONS, mismatch
from thalweg.plan.functions.times import PARTS_OF_TIME

__all__ = [
    "PARTS_OF_TIME",
    "can_cast",
    "can_raise",
    "cast",
    "common_type",
    "function_names",
    "is_deterministic",
    "resolve",
]

FAMILIES = (operators, conditional, strings, maths, times)

ALIASES = {
    "==": "=",
    "!=": "<>",
    "negative": "neg",
    "mod": "%",
    "ifnull": "nvl",
    "iff": "if",
    "substr": "substring",
    "char_length": "length",
    "character_length": "length",
    "len": "length",
    "ucase": "upper",
    "lcase": "lower",
    "position": "locate",
    "charindex": "locate",
    "regexp": "rlike",
    "regexp_like": "rlike",
    "pow": "power",
    "ceiling": "ceil",
    "signum": "sign",
    "day": "dayofmonth",
    "date_diff": "datediff",
    "dateadd": "date_add",
    "to_unix_timestamp": "unix_timestamp",
}


def resolve(name: str, args: Sequence[Expr], written: str | None = None) -> Expr:
    """The call of a built-in function or operator, its arguments cast as needed. A refusal speaks
    of what was `written`, by default of the name.

    Functions that abbreviate others are returned as those (`nvl` as `coalesce`). `trim`, `ltrim`
    and `rtrim` take (text [, characters]); `case` takes condition, value, ... [, default].
    """
    definition = DEFINITIONS.get(ALIASES.get(name, name))
    if definition is None:
        raise UnknownFunction(
            f"there is no function {name}", remedy=did_you_mean(name, function_names())
        )
    try:
        return definition.resolver(definition.name, args)
    except UnreadableText:
        raise
    except TypeMismatch:  # it may be one of a function that this one stands for
        raise mismatch(definition.name, args, written or _WORDS.get(name, name)) from None


_WORDS = {
    "neg": "-", "not": "NOT", "and": "AND", "or": "OR", "in": "IN", "case": "CASE",
    "is_null": "IS NULL", "is_not_null": "IS NOT NULL",
}  # fmt: skip
"""Operators by the words that users know."""


def function_names() -> list[str]:
    """All functions that are called by a name rather than written as an operator."""
    hidden = {"neg", "in", "is_null", "is_not_null", "case", "and", "or", "not", "between", "div"}
    known = {*DEFINITIONS, *ALIASES} - hidden
    return sorted(n for n in known if n.isidentifier())
