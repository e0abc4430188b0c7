"""WITH (option = value, ...): known names with valid values, or a refusal."""

from __future__ import annotations

from typing import Any

from thalweg.errors import BindError, NotAvailableYet, UnknownName, did_you_mean
from thalweg.lang.parsing import ast
from thalweg.lang.parsing.places import place
from thalweg.plan.bound_query import ALLOWED_OPTIONS, QueryOptions


def query_options(query: ast.Query, text: str) -> QueryOptions:
    """The options of WITH."""
    return QueryOptions(**checked_options(query.options, text, query.at))


def checked_options(options: tuple[tuple[str, Any], ...], text: str, at: int) -> dict[str, Any]:
    """Options by their names, with validated values."""
    chosen: dict[str, Any] = {}
    for key, value in options:
        name = key.lower()
        allowed = ALLOWED_OPTIONS.get(name)
        if allowed is None:
            raise UnknownName(
                f"unknown option {key}", remedy=did_you_mean(name, ALLOWED_OPTIONS)
            ).at(text, *place(text, at))
        if name in chosen:
            raise BindError(f"option {name} is given twice", remedy="give it once").at(
                text, *place(text, at)
            )
        try:
            chosen[name] = _option(name, value, allowed)
        except BindError as error:
            raise error.at(text, *place(text, at)) from None
    return chosen


def written(value: Any) -> str:
    """The value of an option as it is written."""
    if isinstance(value, bool):
        return str(value).lower()
    return f"'{value}'" if isinstance(value, str) else str(value)


def _option(name: str, value: Any, allowed: tuple[Any, ...] | type) -> Any:
    if allowed is float:
        if isinstance(value, (bool, str)) or not 0 <= value <= 1:
            raise BindError(
                f"option {name} takes a share between 0 and 1, not {written(value)}",
                remedy=f"write one such as {name} = 0.02",
            )
        return float(value)
    if isinstance(allowed, type):
        if type(value) is allowed:
            if isinstance(value, int) and not isinstance(value, bool) and value <= 0:
                raise BindError(
                    f"option {name} takes a number above 0, not {value}",
                    remedy=f"write one such as {name} = 100000000",
                )
            return value
        wanted = {"bool": "true or false", "int": "a whole number"}[allowed.__name__]
        raise BindError(
            f"option {name} takes {wanted}, not {written(value)}", remedy=f"write {name} = {wanted}"
        )
    if name == "constraints" and str(value).lower() in allowed[1:]:
        raise NotAvailableYet(
            f"constraints = {value!r} is not available yet", remedy="leave it out: rows are exact"
        )
    if str(value).lower() in allowed:
        return str(value).lower()
    raise BindError(
        f"option {name} cannot be {written(value)}", remedy="one of " + ", ".join(allowed)
    )
