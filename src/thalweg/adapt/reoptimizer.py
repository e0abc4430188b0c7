"""The Re-optimizer: from statistics to the plan to run next, one implementation per problem."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

from thalweg.adapt.planlog import Switch

Plan = TypeVar("Plan")


class Reoptimizer(Protocol[Plan]):
    """Chooses one part of a query's plan: candidates, what they cost, and which one runs.

    Everything it knows is soft: a new one that has seen nothing gives the same rows.
    """

    @property
    def plan(self) -> Plan:
        """What runs now."""
        ...

    def candidates(self) -> Sequence[Plan]:
        """Plans that present statistics speak for, the one that runs first."""
        ...

    def cost(self, plan: Plan) -> float | None:
        """Predicted cost per input row; None while too little is known."""
        ...

    def absorb(self, seen: Any, epoch: int) -> Sequence[Switch]:
        """Take in what the Executor has seen, and choose; the switches that follow."""
        ...
