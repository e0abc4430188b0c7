"""What adapting has brought so far, in one sentence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from thalweg.instants import format_seconds

_LEAST = 0.01
"""The share of the time below which a difference is not worth telling."""
UNKNOWN = "what adapting saves is not known: no rows have been profiled in full"


@dataclass(frozen=True, slots=True)
class Balance:
    """So many `seconds` of some work were measured, those of adapting among them; in the order of
    the text they would have been so many more as are `saved`, by estimate."""

    work: str
    seconds: float
    saved: float

    def __add__(self, other: Balance) -> Balance:
        return Balance(self.work, self.seconds + other.seconds, self.saved + other.saved)

    @property
    def share(self) -> float:
        """The part of the time without adapting that was saved, or lost if it is negative."""
        without = self.seconds + self.saved
        return self.saved / without if without > 0 else 0.0

    def __str__(self) -> str:
        if abs(self.share) < _LEAST:
            found = f"adapting has made no difference to {self.work}"
        elif self.saved > 0:
            found = f"adapting saved {100 * self.share:.0f} % of {self.work}"
        else:
            found = f"adapting has not paid in {self.work}"
        took, text = format_seconds(self.seconds), format_seconds(self.seconds + self.saved)
        return f"{found} ({took} measured; in the order of the text {text} by estimate)"


def sentence(reports: Iterable[Mapping[str, Any]]) -> str:
    """The balances in the reports of some watches, added up for each kind of work, as one
    sentence."""
    sums: dict[str, Balance] = {}
    for one in (Balance(**r["balance"]) for r in reports if r.get("balance")):
        sums[one.work] = sums[one.work] + one if one.work in sums else one
    return "; ".join(map(str, sums.values())) or UNKNOWN
