"""What relations of groups of segments have in common."""

from __future__ import annotations

from dataclasses import dataclass

from thalweg.instants import format_duration
from thalweg.models.functions.curve import Curves
from thalweg.plan.logical import Node
from thalweg.plan.relations.protocol import Need, Together


@dataclass(frozen=True, slots=True)
class Grouped(Node):
    """Functions of time by groups of the input's rows, over a window or at each instant. `curves`
    are the modeled columns of the input; `slide` is how often the window asks for an answer."""

    input: Node
    keys: tuple[str, ...]
    curves: Curves
    window: int | None
    slide: int | None

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)


def grouped_need(keys: tuple[str, ...]) -> Need:
    return Need(Together.KEYS, frozenset(keys)) if keys else Need(Together.ALL)


def by_words(keys: tuple[str, ...]) -> str:
    return f" by {', '.join(keys)}" if keys else ""


def window_words(window: int | None) -> str:
    return ", at each instant" if window is None else f", over the last {format_duration(window)}"
