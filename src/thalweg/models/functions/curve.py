"""A column that is a function of time, and the columns of a relation that hold it."""

from __future__ import annotations

from dataclasses import dataclass

from thalweg.models.validation import Bound
from thalweg.plan.logical import Field
from thalweg.plan.types import BIGINT, DOUBLE

START = "__start"
EXACT = Bound(0.0)


@dataclass(frozen=True, slots=True)
class Curve:
    """A polynomial, a quotient of two, or the square root of either (`is_root`): the columns of its
    coefficients, ascending, and of the instant from which on time is counted. Without a `start`
    column it is the instant itself, as a TIMESTAMP. `bound` is how far it may be from the true
    values: 0 where every tuple counts, not known where tuples are absorbed whatever they bring."""

    coefficients: tuple[str, ...]
    start: str = ""
    divisor: tuple[str, ...] = ()
    bound: Bound = EXACT
    is_root: bool = False

    @property
    def is_instant(self) -> bool:
        return not self.start

    @property
    def degree(self) -> int:
        return len(self.coefficients) - 1

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that hold it."""
        return (*self.coefficients, *self.divisor, *((self.start,) if self.start else ()))

    @property
    def hidden(self) -> tuple[str, ...]:
        """The columns beside the one that it is known by."""
        return self.columns[1:]

    def under(self, alias: str) -> Curve:
        """The same as a column of a subquery."""

        def named(names: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(f"{alias}.{name}" for name in names)

        start = f"{alias}.{self.start}" if self.start else ""
        return Curve(named(self.coefficients), start, named(self.divisor), self.bound, self.is_root)


Curves = tuple[tuple[str, Curve], ...]


def curve_named(
    name: str, degree: int, start: str, divisor: int = -1, *, is_root: bool = False
) -> Curve:
    """The curve of a column of this name, with its columns named after it; `divisor` is the degree
    of what it is divided by, if it is."""
    higher = tuple(f"{name}^{i}" for i in range(1, degree + 1))
    below = tuple(f"{name}/{i}" for i in range(divisor + 1))
    return Curve((name, *higher), start, below, is_root=is_root)


def fields_of(curve: Curve) -> tuple[Field, ...]:
    """The fields of its coefficients."""
    names = (*curve.coefficients, *curve.divisor)
    return tuple(Field(name, DOUBLE, False) for name in names)


def start_field(name: str) -> Field:
    return Field(name, BIGINT, False)
