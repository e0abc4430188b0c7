"""Which means and integrals of square roots are solved, and what helps with the others."""

from __future__ import annotations

from thalweg.models.functions.conditions import first_call
from thalweg.models.functions.formulas import SAMPLED, Form, Known, NotSolvable, form_of
from thalweg.plan.expr import Expr, columns_of
from thalweg.windows.range import RangeWindow


def form_of_argument(name: str, argument: Expr, curves: Known) -> Form:
    """The form of what is aggregated; raises `NotSolvable` if it has none."""
    try:
        return form_of(argument, curves)
    except NotSolvable:
        shown = [curves[c].is_root for c in columns_of(argument) if c in curves]
        inner = first_call(argument, ("sqrt",), curves)
        if not any(shown) and (inner is None or inner == argument):
            raise
    raise NotSolvable(
        f"{argument} has a square root in it, which is aggregated by itself only",
        f"let the root stand alone, such as {name}(sqrt(...)) / 1000",
    )


def refuse_root(name: str, argument: Expr, degree: int, window: RangeWindow | None) -> None:
    """Raises `NotSolvable` unless the root is of a quadratic, over a window that slides."""
    if degree > 2:
        raise NotSolvable(
            f"{argument} is the root of a polynomial of degree {degree}, whose integral has no "
            "closed form",
            f"model what is under it by straight lines, or {SAMPLED}",
        )
    if window is None:
        raise NotSolvable(
            f"{name}({argument}) over all keys at each instant is no polynomial", SAMPLED
        )
    if window.slide is None:
        raise NotSolvable(
            f"{name}({argument}) of a square root is no polynomial of time, and is known at the "
            "boundaries of a window only",
            "give the window a SLIDE, such as [RANGE 1 MINUTE SLIDE 10 SECONDS]",
        )
