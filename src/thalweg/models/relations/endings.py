"""When segments end by themselves: FOR, and the grid of FIT, say so the moment they begin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from thalweg.columns.frame import Frame
from thalweg.instants import AFTER_TIME, Ints


@dataclass(frozen=True, slots=True)
class Ending:
    """A segment ends so long after the instant in a column, or, with a grid, after the end of the
    cell that the instant is in."""

    start: str
    horizon: int
    every: int = 0

    def ends(self, starts: Ints) -> Ints:
        if self.every:
            starts = (starts // self.every + 1) * self.every
        return starts + self.horizon


def ends_of(frame: Frame, endings: Sequence[Ending]) -> Ints:
    """The instant before which each row vanishes, if nothing happens sooner."""
    found = np.full(frame.length, AFTER_TIME, np.int64)
    for ending in endings:
        found = np.minimum(found, ending.ends(np.asarray(frame.columns[ending.start].data)))
    return found
