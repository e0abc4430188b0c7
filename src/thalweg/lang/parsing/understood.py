"""Which parts of sqlglot's trees the language gives a meaning.

sqlglot parses more than this language has. A part of a tree that no rule reads would be dropped
silently, so whatever is written and not listed here is refused where it stands.
"""

from __future__ import annotations

from collections.abc import Iterator

from thalweg.lang.syntax import exp

_BOTH = frozenset({"this", "expression"})
_ONE = frozenset({"this"})
_NEGATED = _BOTH | {"negate"}

PARTS: dict[type[exp.Expr], frozenset[str]] = {
    **dict.fromkeys(
        (
            exp.Add, exp.Sub, exp.Mul, exp.Mod, exp.IntDiv, exp.EQ, exp.NEQ, exp.LT, exp.LTE,
            exp.GT, exp.GTE, exp.NullSafeEQ, exp.And, exp.Or, exp.BitwiseAnd, exp.BitwiseOr,
            exp.BitwiseXor, exp.Extract, exp.Filter, exp.WithinGroup,
        ),
        _BOTH,
    ),
    **dict.fromkeys((exp.Like, exp.RegexpLike, exp.Is), _NEGATED),
    **dict.fromkeys(
        (exp.Not, exp.Neg, exp.BitwiseNot, exp.Paren, exp.Boolean, exp.Where, exp.Var), _ONE
    ),
    exp.Div: _BOTH | {"typed", "safe"},
    exp.DPipe: _BOTH | {"safe"},
    exp.Alias: frozenset({"this", "alias"}),
    exp.Anonymous: frozenset({"this", "expressions"}),
    exp.Between: frozenset({"this", "low", "high", "negate"}),
    exp.Case: frozenset({"this", "ifs", "default"}),
    exp.Cast: frozenset({"this", "to", "safe"}),
    exp.Column: frozenset({"this", "table"}),
    exp.DataType: frozenset({"this", "expressions", "nested"}),
    exp.DataTypeParam: _ONE,
    exp.Distinct: frozenset({"expressions"}),
    exp.Identifier: frozenset({"this", "quoted"}),
    exp.If: frozenset({"this", "true", "false"}),
    exp.In: frozenset({"this", "expressions", "negate"}),
    exp.Interval: frozenset({"this", "unit"}),
    exp.Literal: frozenset({"this", "is_string"}),
    exp.Null: frozenset(),
    exp.Order: frozenset({"expressions"}),
    exp.Ordered: frozenset({"this", "desc", "nulls_first"}),
    exp.Star: frozenset(),
    exp.TryCast: frozenset({"this", "to", "safe"}),
    exp.Tuple: frozenset({"expressions"}),
    exp.Window: frozenset({"this", "partition_by", "order", "over", "alias", "spec"}),
}  # fmt: skip
"""By kind of node what is read of it. Nodes that are not listed have no meaning at all: binding
refuses them by name."""


NAMES: dict[tuple[type[exp.Expr], str], tuple[type[exp.Expr], ...]] = {
    (exp.Alias, "alias"): (exp.Identifier,),
    (exp.Column, "this"): (exp.Identifier, exp.Star),
    (exp.Column, "table"): (exp.Identifier,),
    (exp.Extract, "this"): (exp.Var,),
    (exp.Interval, "this"): (exp.Literal,),
    (exp.Interval, "unit"): (exp.Var,),
    (exp.Cast, "to"): (exp.DataType,),
    (exp.TryCast, "to"): (exp.DataType,),
}
"""Parts of which only the name or text is read, and the nodes that are nothing but that."""


def unread(node: exp.Expr) -> Iterator[tuple[exp.Expr, str]]:
    """Nodes with parts that no rule reads, and the names of these."""
    for one in node.walk():
        known = PARTS.get(type(one))
        if known is None:
            continue
        for name, value in one.args.items():
            plain = NAMES.get((type(one), name), (object,))
            if _is_written(value) and (name not in known or not isinstance(value, plain)):
                yield one, name


def words_for(part: str) -> str:
    """A part of a node as people write it."""
    return _WORDS.get(part, part.strip("_").replace("_", " ").upper())


_WORDS = {
    "except_": "EXCEPT (or EXCLUDE)",
    "db": "a name of three parts",
    "catalog": "a name of four parts",
    "join_mark": "(+)",
    "with_fill": "WITH FILL",
    "default": "DEFAULT ... ON CONVERSION ERROR",
    "alias": "a path behind a colon, or another name of this kind,",
    "unit": "this unit of time",
}


def _is_written(value: object) -> bool:
    return value is not None and value is not False and value != []
