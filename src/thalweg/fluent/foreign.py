"""Columns of other libraries, read by converters that these register.

`thalweg.spark.columns` registers one for Spark's `Column` when the engine is loaded; nothing here
imports Spark.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from thalweg.errors import ConfigError
from thalweg.lang.syntax import exp

Converter = Callable[[object], exp.Expr | None]
"""Gives the expression an object stands for, or None if it is not of its kind."""

_CONVERTERS: list[Converter] = []


class SparkColumn(Protocol):
    """A `pyspark.sql.Column`, by what it can do."""

    def astype(self, kind: Any, /) -> Any: ...


def register(converter: Converter) -> None:
    """Ask this converter, too, about values that are not the language's own."""
    if converter not in _CONVERTERS:
        _CONVERTERS.append(converter)


def converted(value: object) -> exp.Expr:
    """The expression of a foreign column, or a refusal."""
    for converter in _CONVERTERS:
        found = converter(value)
        if found is not None:
            return found
    kind = type(value)
    if kind.__module__.split(".")[0] == "pyspark":
        raise ConfigError(
            f"nothing here reads Spark's {kind.__name__}",
            remedy="import thalweg.spark.columns (an Engine does), or write SQL text",
        )
    raise ConfigError(
        f"{value!r} of type {kind.__name__} is no expression",
        remedy="use col('name'), a number, text, bool, None, datetime, date, timedelta or Decimal",
    )
