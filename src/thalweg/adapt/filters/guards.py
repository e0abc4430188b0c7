"""Guards: for each predicate, the set of predicates that must be evaluated before it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from thalweg.exec.tactics import DROPPED, ERRED, Verdicts

Guards = tuple[frozenset[int], ...]
"""Per predicate those that stay before it."""


def free(count: int) -> Guards:
    """No predicate guards another."""
    return (frozenset(),) * count


def available(guards: Guards, placed: Iterable[int]) -> list[int]:
    """Predicates not placed yet that may be next."""
    done = set(placed)
    return [i for i in range(len(guards)) if i not in done and guards[i] <= done]


def allows(guards: Guards, order: Sequence[int]) -> bool:
    """Whether every predicate is placed after its guards."""
    seen: set[int] = set()
    for i in order:
        if not guards[i] <= seen:
            return False
        seen.add(i)
    return True


def respected(guards: Guards, order: Sequence[int]) -> list[int]:
    """The order, with each predicate delayed until its guards are placed."""
    found: list[int] = []
    waiting = list(order)
    while waiting:
        ready = next(i for i in waiting if guards[i] <= set(found))
        waiting.remove(ready)
        found.append(ready)
    return found


def learned(guards: Guards, verdicts: Verdicts, may_learn: Sequence[bool]) -> Guards:
    """Guards that a profile reveals: a predicate that errs on a row which an earlier one (in text
    order) drops is protected by it."""
    if not (verdicts == ERRED).any():
        return guards
    found = list(guards)
    for i in np.flatnonzero((verdicts == ERRED).any(0)).tolist():
        if may_learn[i]:
            rows = verdicts[verdicts[:, i] == ERRED]
            earlier = np.flatnonzero((rows[:, :i] == DROPPED).any(0))
            found[i] |= {int(k) for k in earlier}
    return tuple(found)
