"""The life cycle of a candidate: profiled, then used or not, and profiled again from time to time.

A cache in use that has come to cost more than it saves is dropped at once, unless that was tried
and did not pay; one that was not chosen gets its chance after each interval. In between the choice
stands unless figures have moved.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from thalweg.adapt.constants import CACHE_CHANGE, CACHE_INTERVAL, CACHE_WINDOW, LOG_LENGTH
from thalweg.adapt.joins.candidates import Segment, Shared

Choose = Callable[[Sequence[Segment]], Collection[Segment]]


class State(Enum):
    """The state of a candidate."""

    USED = "used"
    PROFILED = "profiled"
    UNUSED = "unused"


@dataclass(frozen=True, slots=True)
class Figures:
    """The benefit and the upkeep of a cache."""

    benefit: float
    upkeep: float

    def moved(self, old: Figures, change: float) -> bool:
        """Whether one of the two differs from its old value by more than this part."""
        pairs = ((self.benefit, old.benefit), (self.upkeep, old.upkeep))
        return any(abs(now - was) > change * abs(was) for now, was in pairs)


@dataclass(frozen=True, slots=True)
class Transition:
    """One change of state; new candidates start from None, and end there when a pipeline is put in
    another order."""

    segment: Segment
    before: State | None
    after: State | None
    why: str


class CacheStates:
    """The states of all candidates of a join.

    Pass it the figures of caches (`observed`) and the time (`tick`), call `decide`, and follow
    `states`. Figures are taken as given: the caller computes means. Intervals may begin shorter
    (`first`) and double: statistics while windows fill are not representative. Unless profiling
    bypasses caches, one in use `hides` look-ups from those within it.
    """

    def __init__(
        self,
        candidates: Iterable[Segment],
        *,
        needed: int = CACHE_WINDOW,
        change: float = CACHE_CHANGE,
        interval: float = CACHE_INTERVAL,
        first: float | None = None,
        hides: bool = True,
    ) -> None:
        self.transitions: deque[Transition] = deque(maxlen=LOG_LENGTH)
        self.states: dict[Segment, State] = {}
        self._needed, self._change, self._hides = needed, change, hides
        self._first, self._longest = interval if first is None else first, interval
        self._interval = self._first
        self._latest: dict[Segment, Figures] = {}
        self._judged: dict[Segment, Figures] = {}
        self._counts: Counter[Segment] = Counter()
        self._selected: set[Segment] | None = None
        self._since: float | None = None
        for segment in candidates:
            self._move(segment, State.PROFILED, "start")

    @property
    def used(self) -> frozenset[Segment]:
        return frozenset(self._in(State.USED))

    # -- observations ------------------------------------------------------------------------

    def observed(self, segment: Segment, benefit: float, upkeep: float, times: int = 1) -> None:
        """Record an observation of a cache in use or profiled, which may stand for several; of
        other caches none is expected, and late ones are ignored."""
        if self.states.get(segment, State.UNUSED) is State.UNUSED:
            return
        self._latest[segment] = Figures(benefit, upkeep)
        self._counts[segment] += times
        if self.states[segment] is State.USED:
            self._drop_losers(segment.shared)

    def _drop_losers(self, shared: Shared) -> None:
        """Drop a cache from the pipelines in which it loses; if the others do not make up for the
        upkeep together, drop it from all."""
        users = [s for s in self._in(State.USED) if s.shared == shared]
        losers = [s for s in users if self._latest[s].benefit < 0]
        rest = [s for s in users if s not in losers]
        cost = max((self._latest[s].upkeep for s in users), default=0.0)
        if sum(self._latest[s].benefit for s in rest) < cost:
            losers = users
        for segment in losers:
            self._move(segment, State.UNUSED, "it costs more than it saves")
            if self._selected is not None:
                self._selected.discard(segment)

    # -- choices -----------------------------------------------------------------------------

    def ready(self) -> bool:
        """Whether there are profiled candidates, each observed often enough."""
        profiled = self._in(State.PROFILED)
        return bool(profiled) and all(self._counts[s] >= self._needed for s in profiled)

    def moved(self) -> bool:
        """Whether the figures of a used or profiled candidate have changed since the last choice;
        before the first there is nothing to compare with."""
        if self._selected is None:
            return True
        return any(self._has_moved(s) for s in self._considered() if s in self._latest)

    def decide(self, choose: Choose) -> bool:
        """End profiling if everything is known: choose anew if figures have changed, else keep the
        last choice. Returns whether there was a new choice."""
        if not self.ready():
            return False
        anew = self.moved()
        considered = self._considered()
        if anew:
            self._selected = set(choose(considered))
            self._judged |= {s: self._latest[s] for s in considered}
        chosen = self._selected or set()
        for segment in considered:
            state = State.USED if segment in chosen else State.UNUSED
            self._move(segment, state, "chosen" if anew else "as before")
        return anew

    def tick(self, now: float) -> bool:
        """Once per interval profile again what is not used, and also a cache in use that hides the
        look-ups of one not used within it. Returns whether the interval was over."""
        if self._since is None:
            self._since = now
        if now - self._since < self._interval:
            return False
        self._since = now
        self._interval = min(2 * self._interval, self._longest)
        self._profile_again("the interval is over")
        return True

    def start_over(self, why: str) -> None:
        """Discard the figures: profile again now, and soon again, as at first."""
        self._since, self._interval = None, self._first
        self._profile_again(why)

    def _profile_again(self, why: str) -> None:
        """Profile candidates that are not used, and those that hide them."""
        unused = self._in(State.UNUSED)
        used = self._in(State.USED) if self._hides else []
        for segment in unused:
            self._move(segment, State.PROFILED, why)
        for segment in used:
            if any(u.within(segment) for u in unused):
                self._move(segment, State.PROFILED, "it hides an unused candidate")

    def go_back(self, chosen: Collection[Segment], why: str) -> None:
        """The last choice was a bad one: use these again, as far as they are candidates."""
        self._selected = set(chosen) & set(self.states)
        for segment, state in list(self.states.items()):
            if segment in self._selected:
                self._move(segment, State.USED, why)
            elif state is State.USED:
                self._move(segment, State.UNUSED, why)

    def reordered(self, candidates: Iterable[Segment], changed: Collection[int]) -> None:
        """Update the candidates after pipelines have changed: theirs and all that are no longer
        candidates are removed, new ones are profiled, the others stay as they are."""
        found = dict.fromkeys(candidates)
        for segment in [s for s in self.states if s.pipeline in changed or s not in found]:
            self._forget(segment)
        for segment in found:
            if segment not in self.states:
                self._move(segment, State.PROFILED, "a pipeline was reordered")

    # -- within ------------------------------------------------------------------------------

    def _in(self, state: State) -> list[Segment]:
        return [s for s, its in self.states.items() if its is state]

    def _considered(self) -> list[Segment]:
        return [s for s, its in self.states.items() if its is not State.UNUSED]

    def _has_moved(self, segment: Segment) -> bool:
        old = self._judged.get(segment)
        return old is None or self._latest[segment].moved(old, self._change)

    def _move(self, segment: Segment, after: State, why: str) -> None:
        before = self.states.get(segment)
        if before is after:
            return
        if after is State.PROFILED:
            self._counts[segment] = 0
        self.states[segment] = after
        self.transitions.append(Transition(segment, before, after, why))

    def _forget(self, segment: Segment) -> None:
        before = self.states.pop(segment)
        self.transitions.append(Transition(segment, before, None, "a pipeline was reordered"))
        for known in (self._latest, self._judged, self._counts):
            known.pop(segment, None)
        if self._selected is not None:
            self._selected.discard(segment)
