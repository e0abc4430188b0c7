"""MODEL (attr = polynomial, ...) [FOR d], MODEL (FIT attr DEGREE n WITHIN e[%] [EVERY d], ...)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from thalweg.errors import BindError, TypeMismatch, UnknownName, did_you_mean
from thalweg.lang.parsing.cursor import parse_alias
from thalweg.lang.parsing.select_clauses import ClauseKind, SourceBinder, SourceRelation
from thalweg.lang.syntax import TokenType, exp
from thalweg.models.fitting.contract import MOST_DEGREE
from thalweg.models.fitting.contract import Fit as PieceFit
from thalweg.models.functions.curve import Curve
from thalweg.models.language.polynomial_binding import coefficients
from thalweg.models.language.polynomial_parser import parse_polynomial
from thalweg.models.relations.fitted import FitModel, FittedAttribute
from thalweg.models.relations.modeled import Modeled
from thalweg.models.relations.tuples import Attribute
from thalweg.plan.expr import Column
from thalweg.plan.logical import Field, Node, Schema
from thalweg.plan.types import DOUBLE, TIMESTAMP
from thalweg.windows.protocol import WindowWriter

MINUTE = 60_000_000


@dataclass(frozen=True, slots=True)
class Formula:
    """`attribute = polynomial`."""

    attribute: str
    polynomial: exp.Expr

    def text(self, writer: WindowWriter) -> str:
        return f"{writer.name(self.attribute)} = {writer.expression(self.polynomial)}"


@dataclass(frozen=True, slots=True)
class Fit:
    """`FIT attribute DEGREE n WITHIN e[%] [EVERY d]`."""

    attribute: str
    degree: int
    within: float
    relative: bool = False
    every: int | None = None

    def text(self, writer: WindowWriter) -> str:
        percent = "%" if self.relative else ""
        name = writer.name(self.attribute)
        text = f"FIT {name} DEGREE {self.degree} WITHIN {self.within!r}{percent}"
        return text if self.every is None else f"{text} EVERY {writer.duration(self.every)}"


@dataclass(frozen=True, slots=True)
class ModelClause:
    models: tuple[Formula | Fit, ...]
    horizon: int | None = None

    def text(self, writer: WindowWriter) -> str:
        models = ", ".join(m.text(writer) for m in self.models)
        horizon = "" if self.horizon is None else f" FOR {writer.duration(self.horizon)}"
        return f"MODEL ({models}){horizon}"

    def bind(self, binder: SourceBinder, node: Node) -> SourceRelation:
        key = self._key(binder)
        self._refuse_twins(binder)
        attributes = tuple(_attribute(binder, m) for m in self.models)
        modeled = {a.name for a in attributes}
        if modeled & set(key):
            binder.fail(
                BindError(
                    "a column of the key cannot be modeled",
                    remedy="model another column, or choose another KEY",
                )
            )
        if self.horizon is not None and self.horizon <= 0:
            binder.fail(BindError("FOR takes a duration above zero", remedy="write FOR 10 SECONDS"))
        plain = tuple(f for f in binder.fields if f.name not in modeled and f.name != binder.time)
        relation = self._relation(binder, node, key, attributes, plain)
        shown = tuple(_shown(f, modeled) for f in binder.fields)
        known = {f.name for f in shown}
        new = tuple(Field(a.name, DOUBLE, False) for a in attributes if a.name not in known)
        curves = relation.curves
        if binder.time is not None:
            curves += ((binder.time, Curve((binder.time,))),)
            shown = tuple(
                Field(f.name, TIMESTAMP, False) if f.name == binder.time else f for f in shown
            )
        return SourceRelation(relation, shown + new, curves)

    def _key(self, binder: SourceBinder) -> tuple[str, ...]:
        if not binder.key:
            binder.fail(
                BindError(
                    f"a model needs to know which rows of {binder.alias} are about the same thing",
                    remedy="give the stream a key: CREATE STREAM ... KEY (...), or key= in Python",
                )
            )
        return binder.key

    def _refuse_twins(self, binder: SourceBinder) -> None:
        names = [m.attribute.lower() for m in self.models]
        twice = next((n for n in names if names.count(n) > 1), None)
        if twice is not None:
            binder.fail(BindError(f"{twice} is modeled twice", remedy="keep one of the models"))
        if len({type(m) for m in self.models}) > 1:
            binder.fail(
                BindError(
                    "FIT and attr = ... do not go together in one MODEL",
                    remedy="use two sources, one with FIT and one with attr = ...",
                )
            )

    def _relation(
        self,
        binder: SourceBinder,
        node: Node,
        key: tuple[str, ...],
        attributes: tuple[Attribute | FittedAttribute, ...],
        plain: Schema,
    ) -> Modeled | FitModel:
        predicted = tuple(a for a in attributes if isinstance(a, Attribute))
        if predicted:
            return Modeled(node, binder.alias, key, predicted, plain, self.horizon)
        fits = tuple(a for a in attributes if isinstance(a, FittedAttribute))
        grid = {m.every for m in self.models if isinstance(m, Fit) and m.every is not None}
        if len(grid) > 1 or 0 in grid:
            binder.fail(
                BindError(
                    "the FITs of one MODEL are cut by one grid",
                    remedy="write EVERY once, or the same for all, above zero",
                )
            )
        every = next(iter(grid), MINUTE)
        return FitModel(node, binder.alias, key, fits, plain, every, self.horizon or 0)


def _attribute(binder: SourceBinder, model: Formula | Fit) -> Attribute | FittedAttribute:
    if isinstance(model, Formula):
        return Attribute(_attribute_name(binder, model), coefficients(model.polynomial, binder))
    column = _fitted_column(binder, model.attribute)
    if not column.type.is_numeric:
        binder.fail(
            TypeMismatch(
                f"FIT takes a column of numbers, {model.attribute} is {column.type}",
                remedy="fit another column",
            )
        )
    if model.degree > MOST_DEGREE:
        binder.fail(
            BindError(
                f"FIT of degree {model.degree}",
                remedy=f"fitted polynomials have degree 0 to {MOST_DEGREE}",
            )
        )
    if model.within < 0:
        binder.fail(
            BindError(
                f"FIT {model.attribute} WITHIN {model.within:g}: a bound is not below zero",
                remedy="write WITHIN 0.5, or WITHIN 1% of each value's size",
            )
        )
    fit = PieceFit(model.degree, model.within, model.relative)
    return FittedAttribute(column.name, fit)


def _attribute_name(binder: SourceBinder, model: Formula) -> str:
    """The column of the stream of this name, or a new one."""
    known = {f.name.split(".", 1)[1].lower(): f.name for f in binder.fields}
    name = known.get(model.attribute.lower(), f"{binder.alias}.{model.attribute}")
    if name == binder.time:
        binder.fail(
            BindError(
                "the event time is not modeled: it is the instant itself",
                remedy="model another column",
            )
        )
    return name


def _shown(field: Field, modeled: set[str]) -> Field:
    return Field(field.name, DOUBLE, False) if field.name in modeled else field


def _fitted_column(binder: SourceBinder, name: str) -> Column:
    """The column of the stream that is fitted."""
    known = {f.name.split(".", 1)[1]: f for f in binder.fields}
    found = next((f for n, f in known.items() if n.lower() == name.lower()), None)
    if found is None:
        binder.fail(
            UnknownName(
                f"{binder.alias} has no column {name}", remedy=did_you_mean(name, list(known))
            )
        )
    return found.column()


# -- parsing ---------------------------------------------------------------------------------------


def _model(c: Any) -> Formula | Fit:
    if not c.word("FIT"):
        attribute = _attribute_written(c)
        if not c._match(TokenType.EQ):
            c.unexpected("'='")
        return Formula(attribute, parse_polynomial(c))
    attribute = _attribute_written(c)
    c.need("DEGREE")
    degree = c.integer("a degree")
    c.need("WITHIN")
    within = c.number("an error bound")
    relative = bool(c._match(TokenType.MOD))
    every = c.duration() if c.word("EVERY") else None
    return Fit(attribute, degree, within, relative, every)


def _attribute_written(c: Any) -> str:
    """The name of an attribute; the alias of its source may stand before it."""
    return str(c.dotted_name("an attribute")).rsplit(".", 1)[-1]


def _clause(c: Any) -> ModelClause:
    models = c.wrapped(lambda: _model(c))
    clause = ModelClause(models, c.duration() if c.word("FOR") else None)
    at = c.offset()
    if c._curr and c._curr.token_type == TokenType.L_BRACKET:
        c.fail("a window stands before MODEL", "write s [RANGE 1 MINUTE] MODEL (...)")
    alias = parse_alias(c)
    if alias is not None:
        c.fail("an alias stands before MODEL", f"write s {alias} MODEL (...)", at)
    return clause


MODEL = ClauseKind(
    "MODEL", _clause, ("MODEL (x = x + v * t) FOR 10 SECONDS", "MODEL (FIT x DEGREE 1 WITHIN 0.5)")
)
