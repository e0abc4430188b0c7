"""`fn`: every function of the language, and your own, by its name."""

from __future__ import annotations

from collections.abc import Callable

from thalweg.aggregates import aggregate_names
from thalweg.errors import ConfigError
from thalweg.fluent.calls import Call
from thalweg.fluent.expressions import Operand, scalar
from thalweg.lang.binding.over import FUNCTIONS as OVER_FUNCTIONS
from thalweg.lang.syntax import exp
from thalweg.plan.functions import function_names

_SYNTAX = {
    "cast": "col('x').cast('BIGINT')",
    "try_cast": "col('x').try_cast('BIGINT')",
    "extract": "fn.year(col('ts')), fn.hour(col('ts')), ...",
    "exists": "col('x').isin(query)",
}


class Functions:
    """Functions as attributes. Arguments are expressions or values; a string is a value.

    Names that are words of Python take a `_`: `fn.if_(...)`.

    >>> from thalweg import col, fn
    >>> fn.round(fn.avg(col("price")), 1)
    round(avg(price), 1)
    >>> fn.count(), fn.count(col("sym")).distinct()
    (count(*), count(DISTINCT sym))
    """

    def __getattr__(self, name: str) -> Callable[..., Call]:
        if name.startswith("__"):
            raise AttributeError(name)
        function = name.removesuffix("_")

        def call(*arguments: Operand) -> Call:
            return _call(function, arguments)

        call.__name__ = call.__qualname__ = name
        call.__doc__ = f"`{function}(...)` of the language."
        return call

    def __dir__(self) -> list[str]:
        known = [n for n in function_names() if n != "if"]
        return sorted({*known, "if_", *aggregate_names(), *OVER_FUNCTIONS})


fn = Functions()


def _call(name: str, arguments: tuple[Operand, ...]) -> Call:
    if name.lower() in _SYNTAX:
        raise ConfigError(
            f"{name} is not written as a call in Python", remedy=f"write {_SYNTAX[name.lower()]}"
        )
    of_rows = (*aggregate_names(), *OVER_FUNCTIONS)
    if name.lower() in of_rows and arguments and isinstance(arguments[0], str):
        raise ConfigError(
            f"{name}() would be about the text {arguments[0]!r}, the same in every row",
            remedy=f"write fn.{name}(col({arguments[0]!r})), or lit(...) if the text is meant",
        )
    if name.lower() == "count" and not arguments:
        return Call(exp.Anonymous(this=name, expressions=[exp.Star()]))
    nodes = [scalar(a) for a in arguments]
    return Call(exp.Anonymous(this=name, expressions=nodes))
