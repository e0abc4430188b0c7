"""The sub-join that explodes, and what would help, in one line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from thalweg.estimate.bounds import SubJoin
from thalweg.estimate.hypergraph import in_words


def advice(
    subjoins: Sequence[SubJoin],
    sizes: Mapping[str, int | None],
    keys: Mapping[str, Sequence[str]],
) -> str:
    """The sub-join that grows most over the largest of its parts, by what its parts have in common.

    `sizes` has the rows of each input that pass its filters, `keys` for each attribute the inputs
    that have it."""
    known = {frozenset(s.sources): s.figure.rows for s in subjoins}
    known.update({frozenset((n,)): rows for n, rows in sizes.items()})
    worst: tuple[float, int] | None = None
    for number, one in enumerate(subjoins):
        before = [known.get(frozenset(one.sources) - {n}) for n in one.sources]
        largest = max((b for b in before if b is not None), default=None)
        rows = one.figure.rows
        if rows is None or largest is None or len(one.sources) < 2:
            continue
        growth = rows / max(largest, 1)
        if worst is None or growth > worst[0]:
            worst = growth, number
    if worst is None or worst[0] <= 1:
        return "no sub-join is larger than the parts it is made of"
    return _told(subjoins[worst[1]], worst[0], keys)


def _told(one: SubJoin, growth: float, keys: Mapping[str, Sequence[str]]) -> str:
    shared = [a for a, among in keys.items() if sum(n in one.sources for n in among) > 1]
    what = f"{in_words(one.sources)} explodes: {one.figure}, {growth:,.1f} times its largest part"
    if not shared:
        return f"{what}; its inputs share no key: join them by one"
    return (
        f"{what}; keys of {', '.join(shared)} occur many times on several sides: "
        "filter frequent keys, or aggregate one side by them before the join"
    )
