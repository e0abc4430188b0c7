"""Functions of a feature, over columns of which it knows more than their types."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from thalweg.plan.expr import Expr


@dataclass(frozen=True, slots=True)
class OwnFunction:
    """`bind` makes the call from the arguments and the names of the columns in view that are
    functions of time; it raises a `ThalwegError` where there is none."""

    name: str
    bind: Callable[[Sequence[Expr], frozenset[str]], Expr]


OWN_FUNCTIONS: list[OwnFunction] = []
