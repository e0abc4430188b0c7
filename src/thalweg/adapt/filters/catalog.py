"""The orderings by their name in `WITH (filters = ...)`."""

from __future__ import annotations

from dataclasses import replace

from thalweg.adapt.constants import INDEPENDENT_RATE, SWEEP_EVIDENCE, SWEEP_WINDOW
from thalweg.adapt.filters.agreedy import AGreedy
from thalweg.adapt.filters.auto import Auto
from thalweg.adapt.filters.independent import Independent
from thalweg.adapt.filters.localswaps import LocalSwaps
from thalweg.adapt.filters.ordering import Order, Ordering, Settings
from thalweg.adapt.filters.sweep import Sweep

ORDERINGS: dict[str, type[Ordering]] = {
    o.name: o for o in (Auto, AGreedy, Sweep, Independent, LocalSwaps, Ordering)
}


def usual_settings(name: str, settings: Settings, rate: float | None = None) -> Settings:
    """The defaults of an ordering where they differ from A-Greedy's; `rate` as the user sets it."""
    if name == "sweep":
        settings = replace(settings, window=SWEEP_WINDOW, evidence=SWEEP_EVIDENCE)
    if name == "local-swaps":
        settings = replace(settings, evidence=SWEEP_EVIDENCE)
    if name == "independent":
        settings = replace(settings, rate=INDEPENDENT_RATE)
    return settings if rate is None else replace(settings, rate=rate)


def make_ordering(name: str, settings: Settings, order: Order | None = None) -> Ordering:
    """The ordering of this name; a single predicate needs none but `fixed`."""
    if settings.predicates < 2:
        name = "fixed"
    return ORDERINGS[name](settings, order)
