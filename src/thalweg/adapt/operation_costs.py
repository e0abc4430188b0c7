"""What the operations of a join cost."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class JoinCosts:
    """Seconds (or units) for a tuple that is looked up in a window, for each that a match makes;
    for a key that is looked up in a cache, for each combination found, for each that is added."""

    probe: float
    made: float
    lookup: float
    found: float
    update: float


UNITS = JoinCosts(1.0, 1.0, 1.0, 1.0, 1.0)
"""Every operation counts as one."""
