"""What was checked and what the user was told, carried from child processes to the report.

A message is judged by one rule: it names the thing that is at fault, and it says what to do.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Check:
    fault: str
    what: str
    holds: bool
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Told:
    """The first line of what a user sees, and the verdict on the whole of it."""

    fault: str
    line: str
    names_it: bool
    has_remedy: bool

    @property
    def is_clear(self) -> bool:
        return self.names_it and self.has_remedy


@dataclass(slots=True)
class Ledger:
    fault: str
    checks: list[Check] = field(default_factory=list)
    told: list[Told] = field(default_factory=list)
    figures: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def check(self, what: str, holds: object, detail: object = "") -> bool:
        """Note a check; the detail is kept where it fails."""
        self.checks.append(Check(self.fault, what, bool(holds), "" if holds else str(detail)))
        return bool(holds)

    def none(self, what: str, found: list[str]) -> bool:
        """Note a check that holds if nothing was found."""
        return self.check(what, not found, "\n".join(found[:5]))

    def tell(self, text: str, thing: str, needs_remedy: bool = True) -> None:
        """Judge a message; `thing` is a pattern of what its first line has to name. A reason beside
        a rejected row needs no remedy of its own."""
        self.told.append(
            Told(
                self.fault,
                (text.splitlines() or ["(nothing)"])[0],
                re.search(thing, text.splitlines()[0] if text else "") is not None,
                "→" in text or not needs_remedy,
            )
        )

    @property
    def passed(self) -> int:
        return sum(c.holds for c in self.checks)

    @property
    def failed(self) -> list[Check]:
        return [c for c in self.checks if not c.holds]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_dict(data: dict[str, Any]) -> Ledger:
        return Ledger(
            data["fault"],
            [Check(**c) for c in data["checks"]],
            [Told(**t) for t in data["told"]],
            data["figures"],
            data["notes"],
        )
