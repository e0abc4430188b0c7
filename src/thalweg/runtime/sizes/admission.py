"""`WITH (max_rows = n)`: a join that is larger is refused when its query is registered."""

from __future__ import annotations

from thalweg.errors import JoinTooLarge
from thalweg.estimate.figure import UNKNOWN, Figure, Kind
from thalweg.plan.bound_query import BoundQuery
from thalweg.plan.logical import Window
from thalweg.runtime.sizes.asked_join import AskedJoin
from thalweg.runtime.sizes.join_sizes import JoinSizes
from thalweg.runtime.sizes.living_rows import NEVER, scan_of


def refuse_larger(sizes: JoinSizes, bound: BoundQuery) -> None:
    """Refuse a query whose join has more rows than its `max_rows`, over what lives now; where a
    stream has had no rows yet, by the limits that windows declare."""
    most = bound.options.max_rows
    if most is None:
        return
    asked = sizes.asked(bound.root)
    found, advice, basis = _declared(asked), "narrow the windows", "by the windows' own limits"
    if asked.frontier != NEVER:
        bounds = sizes.bound_of(bound.root)
        found, advice, basis = bounds.whole.figure, bounds.advice, "over the rows that live now"
    if found.rows is not None and found.rows > most:
        raise JoinTooLarge(
            f"the join has {found}, {basis}: more than max_rows = {most:,}",
            remedy=f"{advice}; or raise max_rows",
        )


def _declared(asked: AskedJoin) -> Figure:
    """The product of what tables have and windows hold at most."""
    rows = 1
    for source in asked.selected.sources.values():
        most = source.window.most_rows if isinstance(source, Window) else None
        if scan_of(source).is_table:
            most = len(asked.rows.of(source, asked.frontier))
        if most is None:
            return UNKNOWN
        rows *= most
    return Figure.of(rows, Kind.DECLARED)
