"""Models of a source, and what a query over models asks for: MODEL, FIT, SAMPLE, ERROR."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from thalweg.errors import BindError, ConfigError
from thalweg.fluent import building
from thalweg.fluent.expressions import Expression, condition
from thalweg.fluent.names import identifier
from thalweg.fluent.windowed import Windowed
from thalweg.fluent.windows import Duration, micros
from thalweg.lang.parsing import ast
from thalweg.lang.parsing.fragments import parse_whole
from thalweg.lang.syntax import exp
from thalweg.models.language.error_clause import ErrorBound, ErrorClause
from thalweg.models.language.model_clause import Fit, Formula, ModelClause
from thalweg.models.language.polynomial_parser import parse_polynomial
from thalweg.models.language.sample_clause import SampleClause

Polynomial = str | Expression | int | float
"""A polynomial in `t`; a string is text of the language."""
Within = float | str
"""How far off values may be: a number, or a share such as `"1%"`."""


@dataclass(frozen=True, slots=True, repr=False)
class Modeled(Windowed):
    """A query that is being built, with the models that its source may get."""

    def model(
        self,
        models: Mapping[str, Polynomial] | None = None,
        /,
        *,
        horizon: Duration | None = None,
        **named: Polynomial,
    ) -> Self:
        """`MODEL (x = x + v * t) FOR horizon`: columns as polynomials in `t`, the seconds since the
        row. A string is text of the language; a mapping is for names that are none in Python.

        >>> import pyarrow as pa
        >>> from thalweg.testing import Runner
        >>> runner = Runner()
        >>> ts = pa.array([0], pa.timestamp("us", "UTC"))
        >>> cars = pa.table({"id": [1], "x": [0.0], "v": [3.0], "ts": ts})
        >>> _ = runner.stream("cars", cars, key=["id"])
        >>> soon = runner["cars"].model(x="x + v * t", horizon="10 s").filter("x > 20")
        >>> print(soon.select("id").istream().sql())
        SELECT ISTREAM id
        FROM cars MODEL (x = x + v * t) FOR 10 SECONDS
        WHERE x > 20
        """
        given = {**(models or {}), **named}
        if not given:
            raise ConfigError(
                "model() needs a column and its polynomial",
                remedy="write model(x='x + v * t'), or model(x='x') to hold the last value",
            )
        return self._modeled(
            tuple(Formula(_name(n), _polynomial(p)) for n, p in given.items()), horizon
        )

    def fit(
        self,
        column: str,
        *,
        degree: int = 1,
        within: Within,
        relative: bool = False,
        every: Duration | None = None,
        horizon: Duration | None = None,
    ) -> Self:
        """`MODEL (FIT column DEGREE degree WITHIN within EVERY every) FOR horizon`: polynomials
        through the values of a column, at most `within` away from each; `relative`, or text such as
        `"1%"`, is in percent of the value. Call it again for another column of the same source.

        >>> from thalweg.testing import Runner
        >>> import pyarrow as pa
        >>> runner = Runner()
        >>> ts = pa.array([0], pa.timestamp("us", "UTC"))
        >>> _ = runner.stream("rooms", pa.table({"id": [1], "heat": [20.5], "ts": ts}), key=["id"])
        >>> lines = runner["rooms"].fit("heat", within=0.2, every="5 min")
        >>> print(lines.select("id", "heat").sample(every="1 min").sql())
        SELECT id, heat
        FROM rooms MODEL (FIT heat DEGREE 1 WITHIN 0.2 EVERY 5 MINUTES)
        SAMPLE EVERY 1 MINUTE
        """
        if isinstance(degree, bool) or not isinstance(degree, int) or degree < 0:
            raise ConfigError(
                f"a degree is a whole number from 0 on, not {degree!r}",
                remedy="degree=0 holds a value, degree=1 draws lines",
            )
        bound, percent = _bound(within)
        cells = None if every is None else micros(every)
        return self._modeled(
            (Fit(_name(column), degree, bound, percent or relative, cells),), horizon
        )

    def sample(self, *, every: Duration | None = None, rate: float | None = None) -> Self:
        """`SAMPLE EVERY every` or `SAMPLE RATE rate` (per second): the answer at the instants of a
        grid. It is about the query before it; what follows reads the samples."""
        if (every is None) == (rate is None):
            raise ConfigError(
                "samples come so often, or at such a rate",
                remedy="write sample(every='1 s') or sample(rate=10)",
            )
        if rate is None:
            assert every is not None
            return self._closing(SampleClause(every=micros(every)))
        return self._closing(SampleClause(rate=_number(rate, "a rate")))

    def error(self, bounds: Mapping[str, Within] | None = None, /, **named: Within) -> Self:
        """`ERROR x WITHIN 0.5, y WITHIN 1%`: how far answers may be from those over the rows
        themselves: `error(x=0.5, y="1%")`, or `error({"a.x": 0.5})`."""
        given = {**(bounds or {}), **named}
        if not given:
            raise ConfigError(
                "error() needs a column and its bound", remedy="write error(x=0.5) or error(x='1%')"
            )
        return self._closing(
            ErrorClause(tuple(ErrorBound(condition(n), *_bound(b)) for n, b in given.items()))
        )

    def _modeled(self, models: tuple[Formula | Fit, ...], horizon: Duration | None) -> Self:
        if not building.is_source(self.draft):
            return self._with(building.wrapped(self.draft))._modeled(models, horizon)
        assert isinstance(self.draft, ast.Select)
        (source,) = self.draft.sources
        known = source.clause
        span = None if horizon is None else micros(horizon)
        if known is None:
            return self._source(clause=ModelClause(models, span))
        assert isinstance(known, ModelClause)
        if any(isinstance(m, Formula) for m in (*known.models, *models)):
            raise BindError(
                f"{building.name_of(self.draft)} has a model already",
                remedy="say all columns in one model(x=..., y=...); fit() and model() do not go "
                "together",
            )
        if None not in (span, known.horizon) and span != known.horizon:
            raise BindError("one source has two horizons", remedy="say horizon= once")
        return self._source(
            clause=ModelClause(
                (*known.models, *models), span if span is not None else known.horizon
            )
        )

    def _closing(self, clause: SampleClause | ErrorClause) -> Self:
        """The query with one more clause at its end."""
        query = self.draft
        if isinstance(query, ast.SetOperation):
            query = building.wrapped(query)
        if any(type(c) is type(clause) for c in query.clauses):
            raise BindError(
                f"{'SAMPLE' if isinstance(clause, SampleClause) else 'ERROR'} stands there already",
                remedy="say it once, with all columns",
            )
        return self._with(replace(query, clauses=(*query.clauses, clause)))


def _name(given: str) -> str:
    identifier(given)
    return given


def _polynomial(given: Polynomial) -> exp.Expr:
    if isinstance(given, str):
        return parse_whole(given, parse_polynomial)
    return condition(given)  # type: ignore[arg-type]


def _bound(given: Any) -> tuple[float, bool]:
    """A bound, and whether it is in percent."""
    if isinstance(given, str):
        text = given.strip()
        try:
            return float(text.removesuffix("%")), text.endswith("%")
        except ValueError:
            raise ConfigError(
                f"{given!r} is no bound", remedy="write 0.5, or '1%' of each value"
            ) from None
    return _number(given, "a bound"), False


def _number(given: Any, what: str) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float) or not math.isfinite(given):
        raise ConfigError(f"{given!r} is no number for {what}", remedy="write one such as 0.5")
    return float(given)
