"""Python functions that SQL may call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from thalweg.errors import ConfigError, DuplicateName
from thalweg.exec.expressions.evaluate import UserFunction
from thalweg.lang.binding.scope import is_reserved_function
from thalweg.plan.catalog import Catalog, FunctionDef
from thalweg.plan.types import DataType, type_named
from thalweg.runtime.settings import Settings


class Functions:
    """Registered functions: their signatures in the catalog, their code here."""

    def __init__(self, catalog: Catalog, settings: Settings) -> None:
        self._catalog = catalog
        self._settings = settings
        self.code: dict[str, UserFunction] = {}

    def define(
        self,
        name: str,
        function: Callable[..., Any],
        returns: str | DataType = "BOOLEAN",
        *,
        arguments: Sequence[str | DataType] | None = None,
        vectorized: bool = False,
        deterministic: bool = True,
        movable: bool | None = None,
        raises: bool | None = None,
    ) -> None:
        """Register a Python function for use in SQL.

        A scalar function gets Python values, a vectorised one pyarrow arrays. An exception is an
        error of that row: it is rejected, the query goes on.

        Predicates that call it are asked in whatever order is cheapest. One that is not
        `deterministic` keeps its place in the text unless it is declared `movable`. With `raises`
        true everything before it in the text stays before it; false promises that it never
        raises; unsaid, what stays before it is learned from the rows on which it raised.
        """
        types = None if arguments is None else tuple(_type(a) for a in arguments)
        free = deterministic if movable is None else movable
        definition = FunctionDef(name, _type(returns), types, deterministic, free, raises)
        if is_reserved_function(name):
            raise DuplicateName(
                f"{name}() is a function of the language", remedy="register it by another name"
            )
        if name.lower() in (n.lower() for n in self._catalog.functions if n != name):
            raise DuplicateName(f"a function {name} exists already", remedy="choose another name")
        self._catalog.functions[name] = definition
        self.code[name] = UserFunction(
            name, function, definition.returns, types, vectorized, deterministic,
            self._settings.function_deadline,
        )  # fmt: skip


def _type(given: str | DataType) -> DataType:
    if isinstance(given, DataType):
        return given
    found = type_named(given)
    if found is None:
        raise ConfigError(
            f"{given} is not a type", remedy="use BOOLEAN, BIGINT, DOUBLE, STRING, ..."
        )
    return found
