"""Trials: whether a switch has paid, as measured."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from thalweg.adapt.planlog import KEPT, Switch

Choice = TypeVar("Choice")


class Trial(Generic[Choice]):
    """The cost of rows after a switch, compared with their cost before it. One switch at a time is
    on trial; another one ends it. This base measures nothing: every switch is kept."""

    def __init__(self) -> None:
        self.switch: Switch | None = None
        self.old: Choice | None = None
        """The choice before the switch on trial."""

    @property
    def is_on(self) -> bool:
        return self.switch is not None

    def saw(self, seen: Any) -> None:
        """Record an observation under the plan in force."""

    def begin(self, switch: Switch, old: Choice, new: Choice) -> None:
        """Start the trial of a new plan. A switch is kept untried if there is nothing to compare
        with."""
        self.give_up()
        switch.outcome = KEPT

    def give_up(self) -> None:
        """End the trial without a verdict, as other conditions have changed."""
        self.end(KEPT)

    def has_failed(self, cost_of: Callable[[Choice], float | None]) -> bool:
        """Whether there is a verdict, and it is against the switch; then the trial is over.
        `cost_of` predicts the present cost of a choice."""
        return False

    def end(self, outcome: str) -> None:
        if self.switch is not None:
            self.switch.outcome = outcome
        self.switch = None
