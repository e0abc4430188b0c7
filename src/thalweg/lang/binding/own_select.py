"""SELECT over sources of a feature, which the feature binds itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from thalweg.lang.binding.bound_parts import Bind, Found, Items
from thalweg.lang.parsing import ast
from thalweg.plan.catalog import Catalog


@dataclass(frozen=True, slots=True)
class SelectParts:
    """A SELECT whose FROM is bound; `bind` binds the queries inside it."""

    query: ast.Select
    items: Items
    catalog: Catalog
    text: str
    bind: Bind


class OwnSelect(Protocol):
    """How a feature binds SELECT."""

    def applies(self, items: Items) -> bool:
        """Whether these are sources of the feature."""
        ...

    def found(self, parts: SelectParts) -> Found: ...


OWN_SELECTS: list[OwnSelect] = []
