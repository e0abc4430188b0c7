"""Functions on text. Positions count characters from 1, as everywhere in SQL."""

from __future__ import annotations

import re
from collections.abc import Sequence

from thalweg.plan.expr import Call, Expr, Literal
from thalweg.plan.functions.casting import implicit
from thalweg.plan.functions.signature import always, define, make, mismatch, simple
from thalweg.plan.types import BINARY, BOOLEAN, INT, LONGEST_TEXT, STRING

for _name in ("upper", "lower", "reverse", "initcap"):
    simple(_name, [STRING], STRING)
for _name in ("trim", "ltrim", "rtrim"):
    simple(_name, [STRING, STRING], STRING, optional=1)
for _name in ("left", "right"):
    simple(_name, [STRING, INT], STRING)


def _pad_raises(call: Call) -> bool:
    """Whether the text may become too long: not with a small constant width."""
    width = call.args[1]
    return not isinstance(width, Literal) or (width.value or 0) > LONGEST_TEXT


simple("repeat", [STRING, INT], STRING, raises=always)
for _name in ("lpad", "rpad"):
    simple(_name, [STRING, INT, STRING], STRING, optional=1, raises=_pad_raises)
for _name in ("startswith", "endswith", "contains"):
    simple(_name, [STRING, STRING], BOOLEAN)


def _like_raises(call: Call) -> bool:
    """Whether LIKE may fail: a constant pattern that escapes only what can be escaped suits every
    text."""
    pattern = call.args[1]
    if not isinstance(pattern, Literal) or not isinstance(pattern.value, str):
        return True
    return "\\" in re.sub(r"\\[%_\\]", "", pattern.value)


simple("like", [STRING, STRING], BOOLEAN, raises=_like_raises)
simple("rlike", [STRING, STRING], BOOLEAN, raises=always)

simple("ascii", [STRING], INT)
simple("substring", [STRING, INT, INT], STRING, optional=1)
simple("replace", [STRING, STRING, STRING], STRING, optional=1)
simple("instr", [STRING, STRING], INT)
simple("split_part", [STRING, STRING, INT], STRING, raises=always)


@define("locate", usage="locate(STRING, STRING [, INT])")
def _locate(name: str, args: Sequence[Expr]) -> Expr:
    fitted = [implicit(a, wanted) for a, wanted in zip(args, (STRING, STRING, INT), strict=False)]
    known = [a for a in fitted if a is not None]
    if len(args) not in (2, 3) or len(known) < len(args):
        raise mismatch(name, args)
    found = make(name, INT, known)
    if len(known) == 2 or not known[2].nullable:
        return found
    absent = make("is_null", BOOLEAN, known[2:], nullable=False)  # then 0, not NULL
    return make("case", INT, [absent, Literal(INT, False, 0), found], nullable=found.nullable)


@define("length", usage="length(STRING or BINARY)")
def _length(name: str, args: Sequence[Expr]) -> Expr:
    if len(args) != 1:
        raise mismatch(name, args)
    if args[0].type == BINARY:
        return make(name, INT, args)
    text = implicit(args[0], STRING)
    if text is None:
        raise mismatch(name, args)
    return make(name, INT, [text])


@define("concat_ws", usage="concat_ws(separator, value, ...)")
def _concat_ws(name: str, args: Sequence[Expr]) -> Expr:
    fitted = [implicit(a, STRING) for a in args]
    texts = [a for a in fitted if a is not None]
    if not args or len(texts) < len(args):
        raise mismatch(name, args)
    return make(name, STRING, texts, nullable=texts[0].nullable)
