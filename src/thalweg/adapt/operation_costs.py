"""The costs of the operations of a join."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class JoinCosts:
    """Seconds (or units) per tuple that is looked up in a window, and per tuple that a match makes;
    per key that is looked up in a cache, per combination found, per combination added."""

    probe: float
    made: float
    lookup: float
    found: float
    update: float


UNITS = JoinCosts(1.0, 1.0, 1.0, 1.0, 1.0)
"""Unit costs: every operation counts as one."""
