"""The plan log: every switch with its reason, what it was to bring, and what it brought."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from thalweg.adapt.constants import LOG_LENGTH, TRANSIENT_EPOCHS

PENDING, KEPT, REVERTED = "pending", "kept", "reverted"


@dataclass(slots=True)
class Switch:
    """One change of plan. `predicted` are costs per row of the old and the new plan by the
    statistics at that moment, `before` and `after` what rows cost as measured (seconds, or units of
    injected costs). `outcome` is `pending` until enough rows were seen."""

    epoch: int
    subject: str
    old: tuple[str, ...]
    new: tuple[str, ...]
    statistic: str
    incumbent: str
    challenger: str
    had: float
    has: float
    evidence: int
    predicted: tuple[float, float] | None = None
    before: float | None = None
    after: float | None = None
    outcome: str = PENDING

    @property
    def pair(self) -> tuple[str, str]:
        """Whose statistics moved against whose."""
        return self.incumbent, self.challenger

    def to_dict(self) -> dict[str, Any]:
        return {
            "epoch": self.epoch,
            "subject": self.subject,
            "old": list(self.old),
            "new": list(self.new),
            "statistic": self.statistic,
            "incumbent": self.incumbent,
            "challenger": self.challenger,
            "had": self.had,
            "has": self.has,
            "evidence": self.evidence,
            "predicted_old": None if self.predicted is None else self.predicted[0],
            "predicted_new": None if self.predicted is None else self.predicted[1],
            "measured_before": self.before,
            "measured_after": self.after,
            "outcome": self.outcome,
        }

    def __str__(self) -> str:
        ratios = f"{self.challenger} {self.has:.4g}, {self.incumbent} {self.had:.4g}"
        costs = ""
        if self.before is not None and self.after is not None:
            costs = f"; measured {self.before:.3g} → {self.after:.3g} per row"
        return (
            f"epoch {self.epoch}: {' → '.join(self.new)} instead of {' → '.join(self.old)} "
            f"({self.statistic}: {ratios}, {self.evidence} profiled rows){costs}; {self.outcome}"
        )


class PlanLog:
    """The last switches of a query, oldest first."""

    def __init__(self) -> None:
        self._entries: deque[Switch] = deque(maxlen=LOG_LENGTH)
        self.transients: Counter[tuple[str, str]] = Counter()
        self.count = 0

    def __iter__(self) -> Iterator[Switch]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __getitem__(self, at: int) -> Switch:
        return self._entries[at]

    def add(self, switch: Switch) -> None:
        """Note a switch. One that goes back to the plan before shows that the last was a
        transient; who caused it is remembered."""
        last = next((s for s in reversed(self._entries) if s.subject == switch.subject), None)
        if last and last.old == switch.new and switch.epoch - last.epoch <= TRANSIENT_EPOCHS:
            self.transients[last.pair] += 1
        self._entries.append(switch)
        self.count += 1
