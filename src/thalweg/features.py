"""What Thalweg can do beyond its core: the one place that lists it.

The core brings its kinds of windows, aggregates, relations, watches and statements in tables of its
own, each in the lowest room that has what the kinds need. A feature adds to these tables; nothing
below this module knows of it. What must be known where a plan is run (how a relation runs, how a
node becomes one) is registered by the feature's own module as it is imported, so that a worker that
unpickles a plan finds it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from thalweg.adapt.kinds import WATCH_KINDS
from thalweg.adapt.watch import WatchKind
from thalweg.aggregates import AGGREGATE_KINDS
from thalweg.aggregates.kind import AggregateKind
from thalweg.lang.binding.own_functions import OWN_FUNCTIONS, OwnFunction
from thalweg.lang.binding.own_select import OWN_SELECTS, OwnSelect
from thalweg.lang.parsing.select_clauses import (
    OWN_SOURCES,
    SELECT_CLAUSES,
    SOURCE_CLAUSES,
    ClauseKind,
    OwnSource,
)
from thalweg.models import feature as models
from thalweg.plan.state_slots import SLOT_KINDS, SlotKind
from thalweg.statements import LANGUAGE as CORE_LANGUAGE
from thalweg.statements.protocol import ObjectKind, StatementKind
from thalweg.windows import WINDOW_KINDS
from thalweg.windows.protocol import WindowKind


@dataclass(frozen=True, slots=True)
class Feature:
    """What a capability adds, table by table."""

    name: str
    windows: tuple[WindowKind, ...] = ()
    aggregates: tuple[AggregateKind, ...] = ()
    functions: tuple[OwnFunction, ...] = ()
    clauses: tuple[ClauseKind, ...] = ()
    source_clauses: tuple[ClauseKind, ...] = ()
    sources: tuple[OwnSource, ...] = ()
    selects: tuple[OwnSelect, ...] = ()
    slots: tuple[SlotKind, ...] = ()
    watches: tuple[WatchKind, ...] = ()
    statements: tuple[StatementKind, ...] = ()
    objects: tuple[ObjectKind, ...] = ()

    def _entries(self) -> Iterable[tuple[list[Any], Any]]:
        """Each entry with the table it goes into."""
        tables: tuple[tuple[list[Any], tuple[Any, ...]], ...] = (
            (WINDOW_KINDS, self.windows),
            (AGGREGATE_KINDS, self.aggregates),
            (OWN_FUNCTIONS, self.functions),
            (SELECT_CLAUSES, self.clauses),
            (SOURCE_CLAUSES, self.source_clauses),
            (OWN_SOURCES, self.sources),
            (OWN_SELECTS, self.selects),
            (SLOT_KINDS, self.slots),
            (WATCH_KINDS, self.watches),
        )
        return ((table, entry) for table, entries in tables for entry in entries)

    def add(self) -> None:
        for table, entry in self._entries():
            table.append(entry)

    def remove(self) -> None:
        for table, entry in self._entries():
            table.remove(entry)


MODELS = Feature(
    "models",
    aggregates=models.AGGREGATES,
    functions=models.FUNCTIONS,
    clauses=models.CLAUSES,
    source_clauses=models.SOURCE_CLAUSES,
    sources=models.SOURCES,
    selects=models.SELECTS,
    slots=models.SLOTS,
)
FEATURES: tuple[Feature, ...] = (MODELS,)
"""In the order in which they are added."""

for _feature in FEATURES:
    _feature.add()

LANGUAGE = CORE_LANGUAGE.plus(
    [statement for feature in FEATURES for statement in feature.statements],
    [kind for feature in FEATURES for kind in feature.objects],
)
"""The statements and objects of the core and of all features."""
