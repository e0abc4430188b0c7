"""EXPLAIN ADAPT: what is watched, what was learned, what was changed, and what it brought."""

from __future__ import annotations

from thalweg.adapt.filters.watch import FilterWatch, OrderWatch
from thalweg.adapt.joins.caching import CacheWatch
from thalweg.adapt.joins.calibration import UNITS
from thalweg.adapt.loop import SELECTIVITY, Adaptation

_LAST = 5


def explain_adaptation(adaptation: Adaptation, name: str) -> str:
    """The adaptive part of a query's plan in words."""
    watched = adaptation.queries.get(name)
    if watched is None or not (watched.orders or watched.caches):
        return "adaptive: nothing (no conjunction of two or more predicates, no join of three)"
    lines = []
    for watch in watched.orders:
        lines += _order(adaptation, name, watch)
    for caches in watched.caches:
        lines += _caches(caches)
    lines.append(f"switches: {watched.log.count}")
    lines += [f"  {switch}" for switch in list(watched.log)[-_LAST:]]
    return "\n".join(lines)


def _caches(watch: CacheWatch) -> list[str]:
    candidates = watch.described()
    if not candidates:
        return ["adaptive: no subresult that pipelines in this order could cache"]
    unit = "" if watch.costs is UNITS else " s"
    lines = [f"adaptive: caches, {watch.pool.pages - watch.pool.free} of {watch.pool.pages} pages"]
    for c in candidates:
        figures = "not yet known"
        if c.saves is not None and c.upkeep is not None:
            figures = f"saves {c.saves:.3g}{unit}, upkeep {c.upkeep:.3g}{unit} an epoch (estimate)"
        lines.append(f"  {c.name}: {c.state.value}, {figures}")
    return lines


def _order(adaptation: Adaptation, name: str, watch: OrderWatch) -> list[str]:
    ordering = watch.ordering
    what = "filters" if isinstance(watch, FilterWatch) else f"pipeline of {watch.subject}"
    lines = [f"adaptive: {what} by {ordering.name}, {ordering.rate:.2%} of the rows profiled"]
    unit = "" if ordering.settings.injected is not None else " s"
    for number in watch.plan:
        text = watch.texts[number]
        passing = adaptation.profiler.estimate((name, watch.name_of(number), SELECTIVITY))
        cost = ordering.costs.per_row[number]
        shown = f"passes {passing} of the rows it is asked (estimate)" if passing.count else "new"
        guards = ", ".join(watch.texts[g] for g in sorted(ordering.guards[number]))
        behind = f", behind {guards}" if guards else ""
        lines.append(f"  {text}: {shown}, {cost:.3g}{unit} a row{behind}")
    spent = ordering.overhead
    lines.append(
        f"  overhead: profile {spent.profile:.3g} s ({spent.extra} evaluations), window "
        f"{spent.window:.3g} s, matrix {spent.matrix:.3g} s, repair {spent.repair:.3g} s"
    )
    hindsight = watch.hindsight()
    if hindsight is not None:
        best = " → ".join(watch.texts[i] for i in hindsight.order)
        lines.append(
            f"  return on adapting: {hindsight.gain:.3f} (estimate; best static order: {best})"
        )
    return lines
