"""The text of a query: what the parser reads back as the same tree.

Scalar expressions are written by sqlglot's generator, the rest here. Clauses of the language that
have no method (QOS) are refused, never dropped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from thalweg.errors import BindError, NotAvailableYet
from thalweg.fluent.literals import amount_and_unit
from thalweg.fluent.names import dotted, written
from thalweg.fluent.names import written as written_name
from thalweg.lang.parsing import ast
from thalweg.lang.parsing.expression_parser import Dialect
from thalweg.lang.parsing.parser import parse_query
from thalweg.lang.syntax import ErrorLevel, SparkGenerator, exp


class _Generator(SparkGenerator):
    """Spark's, with queries of ours inside expressions and NOT where SQL likes it."""

    def not_sql(self, expression: exp.Not) -> str:
        inner = expression.this
        if isinstance(inner, exp.Is) and not inner.args.get("negate"):
            return f"{self.sql(inner, 'this')} IS NOT {self.sql(inner, 'expression')}"
        if isinstance(inner, exp.In):
            subject = self.sql(inner, "this")
            return f"{subject} NOT{self.sql(inner).removeprefix(subject)}"
        return f"NOT {self.sql(inner)}"

    def nullsafeeq_sql(self, expression: exp.NullSafeEQ) -> str:
        return self.binary(expression, "<=>")

    def in_sql(self, expression: exp.In) -> str:
        query = expression.meta.get("query")
        if query is None:
            return str(super().in_sql(expression))
        return f"{self.sql(expression, 'this')} IN ({_query(query, ' ')})"

    def subquery_sql(self, expression: exp.Subquery, sep: str = " AS ") -> str:
        return f"({_query(expression.meta['query'], ' ')})"

    def exists_sql(self, expression: exp.Exists) -> str:
        return f"EXISTS ({_query(expression.meta['query'], ' ')})"


def expression_text(node: exp.Expr) -> str:
    """The text of one expression, item or key."""
    if any("within" in n.meta for n in node.walk()):
        raise _no_form("WITHIN")
    generator = _Generator(
        dialect=Dialect(),
        normalize_functions=False,
        comments=False,
        unsupported_level=ErrorLevel.IGNORE,
    )
    return str(generator.generate(node))


def query_text(query: ast.Query) -> str:
    """The text of a query, one clause a line; it is known to be read back as the same query."""
    text = _query(query, "\n")
    if not same(parse_query(text), query):
        raise BindError(
            f"the query cannot be written as text that means the same: {text}",
            remedy="write the unusual part of it in another way, or the whole as SQL",
        )
    return text


def same(a: Any, b: Any) -> bool:
    """Whether two trees are equal but for the places in their texts."""
    if isinstance(a, exp.Expr):
        return isinstance(b, exp.Expr) and a == b and same(_inside(a), _inside(b))
    if isinstance(a, tuple):
        return isinstance(b, tuple) and len(a) == len(b) and all(map(same, a, b))
    if is_dataclass(a):
        names = [f.name for f in fields(a) if f.name not in ("at", "window_at", "places")]
        return type(a) is type(b) and all(same(getattr(a, n), getattr(b, n)) for n in names)
    return type(a) is type(b) and bool(a == b)


def _inside(node: exp.Expr) -> tuple[ast.Query, ...]:
    return tuple(n.meta["query"] for n in node.walk() if "query" in n.meta)


def _no_form(clause: str) -> NotAvailableYet:
    return NotAvailableYet(
        f"{clause} has no form in Python yet", remedy="write the query as SQL: engine.query(text)"
    )


# -- queries -----------------------------------------------------------------------------------


def _query(query: ast.Query, gap: str) -> str:
    if isinstance(query, ast.Select):
        return gap.join(_clauses(query))
    right = _query(query.right, gap)
    if isinstance(query.right, ast.SetOperation):
        right = f"({right})"
    left = _query(query.left, gap)
    if isinstance(query.left, ast.SetOperation) and _binds_tighter(query, query.left):
        left = f"({left})"
    text = f"{left}{gap}{query.operator}{gap}{right}"
    return text + (f"{gap}WITH {_options(query.options)}" if query.options else "")


def _binds_tighter(outer: ast.SetOperation, inner: ast.SetOperation) -> bool:
    by_intersection = (q.operator.startswith("INTERSECT") for q in (outer, inner))
    return list(by_intersection) == [True, False]


def _clauses(q: ast.Select) -> Iterator[str]:
    _refuse_formless(q)
    words = ["SELECT", q.kind.value if q.kind else "", "DISTINCT" if q.distinct else ""]
    yield " ".join([*filter(None, words), _listed(q.items)])
    yield "FROM " + ", ".join(_from_item(item) for item in q.from_items)
    for condition in q.conditions:
        yield f"WHERE {expression_text(condition)}"
    if q.group_by:
        keys = _listed(q.group_by)
        yield f"GROUP BY {q.grouping} ({keys})" if q.grouping else f"GROUP BY {keys}"
    if q.having is not None:
        yield f"HAVING {expression_text(q.having)}"
    if q.order_by:
        yield f"ORDER BY {_listed(q.order_by)}"
    if q.limit is not None:
        yield f"LIMIT {expression_text(q.limit)}"
    for clause in q.clauses:
        yield clause.text(_Writer())
    if q.into is not None:
        yield _into(q.into)
    if q.options:
        yield f"WITH {_options(q.options)}"


def _refuse_formless(q: ast.Select) -> None:
    if q.qos:
        raise _no_form("QOS")


def _listed(nodes: Sequence[exp.Expr]) -> str:
    return ", ".join(expression_text(node) for node in nodes)


def _options(options: tuple[tuple[str, Any], ...]) -> str:
    shown = ", ".join(f"{dotted(key)} = {_option_value(value)}" for key, value in options)
    return f"({shown})"


def _into(into: ast.IntoClause) -> str:
    parts = ["INTO", into.kind]
    if into.kind != "CONSOLE":
        parts.append(expression_text(exp.Literal.string(into.target)))
    if into.format is not None:
        parts += ["FORMAT", written(into.format)]
    if into.options:
        parts += ["OPTIONS", _options(into.options)]
    return " ".join(parts)


def _option_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return expression_text(exp.Literal.string(value))
    return str(value)


# -- FROM --------------------------------------------------------------------------------------


def _from_item(item: ast.FromItem) -> str:
    if isinstance(item, ast.Source):
        return _source(item)
    right = _from_item(item.right)
    if isinstance(item.right, ast.JoinRef):
        right = f"({right})"
    kind = "" if item.kind == "INNER" else f"{item.kind} "
    on = "" if item.condition is None else f" ON {expression_text(item.condition)}"
    return f"{_from_item(item.left)} {kind}JOIN {right}{on}"


def _source(source: ast.Source) -> str:
    parts = [dotted(source.name or "") if source.subquery is None else ""]
    if source.subquery is not None:
        parts = [f"({_query(source.subquery, ' ')})"]
    if source.window is not None:
        parts.append(f"[{source.window.text(_Writer())}]")
    if source.alias is not None:
        parts.append(f"AS {written(source.alias)}")
    if source.clause is not None:
        parts.append(source.clause.text(_Writer()))
    return " ".join(parts)


class _Writer:
    """What a window kind asks for to write itself."""

    def duration(self, micros: int) -> str:
        return _duration(micros)

    def expression(self, written: exp.Expr) -> str:
        return expression_text(written)

    def listed(self, written: Sequence[exp.Expr]) -> str:
        return _listed(written)

    def name(self, plain: str) -> str:
        return written_name(plain)


def _duration(micros: int) -> str:
    amount, unit = amount_and_unit(micros)
    return f"{amount} {unit}"
