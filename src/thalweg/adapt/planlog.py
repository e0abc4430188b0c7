"""The plan log: which plans were considered and why, every switch, and its effect."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from thalweg.adapt.constants import CONSIDERED_LATELY, LOG_KEPT, LOG_LENGTH, TRANSIENT_EPOCHS
from thalweg.instants import format_seconds

ROW_SECONDS, ROW_UNITS, EPOCH_SECONDS = "s a row", "units a row", "s an epoch"
"""Units of costs; times are shown in the unit that reads best."""
PENDING, KEPT, REVERTED = "pending", "kept", "reverted"
SWITCHED = "switched"


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a plan is preferred to another: which statistic exceeded which other.

    The incumbent's value was `had`, the challenger's `has` (drops per unit of cost in the profile,
    unless `statistic` says otherwise), over `evidence` profiled rows.
    """

    statistic: str
    incumbent: str
    challenger: str
    had: float
    has: float
    evidence: int


@dataclass(slots=True)
class Switch:
    """One change of plan. `predicted` are costs per row of the old and the new plan by the
    statistics at that moment, `before` and `after` the measured costs of a row (seconds, or units
    of injected costs). `outcome` is `pending` until enough rows were processed."""

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
    unit: str = ROW_SECONDS
    """The unit of `before` and `after`."""

    @staticmethod
    def because(
        why: Reason, epoch: int, subject: str, old: tuple[str, ...], new: tuple[str, ...]
    ) -> Switch:
        return Switch(
            epoch, subject, old, new, why.statistic, why.incumbent, why.challenger, why.had,
            why.has, why.evidence,
        )  # fmt: skip

    @property
    def why(self) -> str:
        """The reason in words."""
        if not self.had and not self.has:
            return self.statistic
        if self.statistic.startswith("drops"):
            times = f"{self.has / self.had:.3g} times as many as" if self.had else "some,"
            found = f"{self.challenger} {times} {self.incumbent}" + ("" if self.had else " none")
            return f"{self.statistic}: {found} (estimate from {self.evidence:,} profiled rows)"
        new, old = (amount(value, self.unit) for value in (self.has, self.had))
        found = f"{self.statistic}: {self.challenger} {new}, {self.incumbent} {old}"
        return found + (f" (estimate from {self.evidence:,} rows)" if self.evidence else "")

    @property
    def pair(self) -> tuple[str, str]:
        """The incumbent and the challenger."""
        return self.incumbent, self.challenger

    def to_dict(self) -> dict[str, Any]:
        found = asdict(self)
        predicted = found.pop("predicted") or (None, None)
        return {
            **found,
            "old": list(self.old),
            "new": list(self.new),
            "predicted_old": predicted[0],
            "predicted_new": predicted[1],
            "measured_before": found.pop("before"),
            "measured_after": found.pop("after"),
        }

    @staticmethod
    def from_dict(given: Mapping[str, Any]) -> Switch:
        known = {f.name: given[f.name] for f in fields(Switch) if f.name in given}
        known |= {"old": tuple(given["old"]), "new": tuple(given["new"])}
        costs = given["predicted_old"], given["predicted_new"]
        known["predicted"] = None if None in costs else costs
        known["before"], known["after"] = given["measured_before"], given["measured_after"]
        return Switch(**known)

    def __str__(self) -> str:
        costs = ""
        if self.before is not None and self.after is not None:
            before, after = (amount(value, self.unit) for value in (self.before, self.after))
            costs = f"; measured {before} before, {after} after"
        return (
            f"epoch {self.epoch}: {' → '.join(self.new)} instead of {' → '.join(self.old)}; "
            f"{self.why}{costs}; {self.outcome}"
        )


@dataclass(frozen=True, slots=True)
class Considered:
    """The plans that were compared, the one in force first, each with its predicted cost per row
    (None: unknown); `why` they were compared, and the outcome."""

    epoch: int
    subject: str
    why: str
    plans: tuple[tuple[tuple[str, ...], float | None], ...]
    outcome: str
    unit: str = ROW_SECONDS

    def to_dict(self) -> dict[str, Any]:
        plans = [[list(plan), cost] for plan, cost in self.plans]
        return {**asdict(self), "plans": plans}

    @staticmethod
    def from_dict(given: Mapping[str, Any]) -> Considered:
        plans = tuple((tuple(plan), cost) for plan, cost in given["plans"])
        return Considered(**{**given, "plans": plans})

    def __str__(self) -> str:
        shown = (
            " → ".join(plan) + ("" if cost is None else f" at {amount(cost, self.unit)}")
            for plan, cost in self.plans
        )
        plans = " | ".join(shown) + (
            " (estimate)" if any(c is not None for _, c in self.plans) else ""
        )
        return f"epoch {self.epoch}, {self.subject}: {self.why}; {plans}: {self.outcome}"


def amount(cost: float, unit: str) -> str:
    """A cost in words.

    >>> amount(2.5e-07, ROW_SECONDS), amount(2.0, ROW_UNITS)
    ('250 ns a row', '2 units a row')
    """
    seconds, _, per = unit.partition(" ")
    return f"{format_seconds(cost)} {per}" if seconds == "s" else f"{cost:.3g} {unit}"


class PlanLog:
    """The last switches of a query, oldest first, and what was `considered`."""

    def __init__(self, kept: Mapping[str, Any] | None = None) -> None:
        kept = kept or {}
        self._entries = deque(map(Switch.from_dict, kept.get("switches", ())), LOG_LENGTH)
        for switch in self._entries:
            if switch.outcome == PENDING:  # the trial ended before a verdict
                switch.outcome = KEPT
        self.considered = deque(map(Considered.from_dict, kept.get("considered", ())), LOG_LENGTH)
        self.transients: Counter[tuple[str, str]] = Counter()
        self.count: int = kept.get("count", 0)
        self._kept: Mapping[str, Any] | None = kept

    def __iter__(self) -> Iterator[Switch]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __getitem__(self, at: int) -> Switch:
        return self._entries[at]

    def add(self, switch: Switch) -> None:
        """Add a switch. One that goes back to the plan before shows that the last was a transient;
        the predicates that caused it are remembered."""
        last = next((s for s in reversed(self._entries) if s.subject == switch.subject), None)
        if last and last.old == switch.new and switch.epoch - last.epoch <= TRANSIENT_EPOCHS:
            self.transients[last.pair] += 1
        self._entries.append(switch)
        self.count += 1
        self.changed()

    def consider(self, found: Considered) -> None:
        """Note what was compared, unless that was done with the same outcome not long ago."""
        lately = list(self.considered)[-CONSIDERED_LATELY:]
        if any(_alike(one, found) for one in lately):
            return
        self.considered.append(found)
        self.changed()

    def changed(self) -> None:
        """Mark an entry as new or changed."""
        self._kept = None

    def kept(self) -> Mapping[str, Any]:
        """The end of the log as JSON, to be continued after a restart; the same value as long as
        nothing has changed."""
        if self._kept is None:
            self._kept = {
                "count": self.count,
                "switches": [s.to_dict() for s in list(self._entries)[-LOG_KEPT:]],
                "considered": [c.to_dict() for c in list(self.considered)[-LOG_KEPT:]],
            }
        return self._kept


def _alike(one: Considered, other: Considered) -> bool:
    """Whether the same plans were compared with the same outcome, and none was switched to."""
    same = [p for p, _ in one.plans] == [p for p, _ in other.plans]
    return same and one.subject == other.subject and one.outcome == other.outcome != SWITCHED
