"""The plans in force, by query, and what follows from all of them together."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import ItemsView, Iterator, Mapping, Sequence, ValuesView
from typing import Any

from thalweg.adapt.adaptation import Adaptation
from thalweg.exec.predicates.memo import Common, common_predicates
from thalweg.exec.tactics import Seen
from thalweg.plan.bound_query import QueryOptions
from thalweg.plan.catalog import Catalog
from thalweg.plan.expr import Expr
from thalweg.plan.physical import QueryPlan
from thalweg.store.packs import Key

log = logging.getLogger("thalweg")
_USUAL = QueryOptions()


class PlanTable(Mapping[str, QueryPlan]):
    """Plans by query, with the options they run under. `residuals` are, by cohort, predicates of
    its members beyond comparisons, each once, by its text."""

    def __init__(self, catalog: Catalog, adaptation: Adaptation) -> None:
        self.adaptation = adaptation
        self.residuals: dict[str, dict[str, Expr]] = {}
        self.limits: dict[str, int] = {}
        """Queries that may hold only so many bytes of state."""
        self._catalog = catalog
        self._plans: dict[str, QueryPlan] = {}
        self._options: dict[str, QueryOptions] = {}
        self._common: Common | None = None

    def __getitem__(self, name: str) -> QueryPlan:
        return self._plans[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._plans)

    def __len__(self) -> int:
        return len(self._plans)

    # what Mapping derives from these goes through __getitem__ plan by plan

    def __contains__(self, name: object) -> bool:
        return name in self._plans

    def get(self, name: str, default: Any = None) -> QueryPlan | Any:
        return self._plans.get(name, default)

    def items(self) -> ItemsView[str, QueryPlan]:
        return self._plans.items()

    def values(self) -> ValuesView[QueryPlan]:
        return self._plans.values()

    def put(
        self, name: str, plan: QueryPlan, options: QueryOptions, learned: Mapping[str, Any]
    ) -> None:
        """Run a query by a plan from the next epoch on, with what was learned of it before."""
        self._plans[name] = self.adaptation.watch(name, plan, options, learned)
        self._options[name] = options
        self.limits.pop(name, None)
        if options.state_limit is not None:
            self.limits[name] = options.state_limit
        self._common = None

    def replace(self, name: str, plan: QueryPlan) -> None:
        """Another plan for the same rows; what adapts goes on as it is."""
        self._plans[name] = plan

    def forget(self, name: str) -> None:
        """A query no longer goes with the epochs."""
        self._plans.pop(name, None)
        self._options.pop(name, None)
        self.limits.pop(name, None)
        self.adaptation.forget(name)
        self._common = None

    def options(self, name: str) -> QueryOptions:
        return self._options.get(name, _USUAL)

    @property
    def common(self) -> Common:
        """Predicates that several queries ask; found out once after many changes."""
        if self._common is None:
            self._common = common_predicates(self._plans.values())
        return self._common

    def keys_of(self, stream: str) -> tuple[Key, ...]:
        """Key indexes wanted on a stream's packs, the most used first."""
        wanted: Counter[Key] = Counter()
        for plan in self._plans.values():
            for of, key, use in plan.keys_wanted:
                if of == stream:
                    wanted[key] += use
        definition = self._catalog.streams.get(stream)
        if definition is not None and definition.key and definition.is_retained:
            wanted[definition.key] += 1  # for those who will ask about the past of one entity
        return tuple(k for k, _ in wanted.most_common())

    def learn(
        self, name: str, epoch: int, seen: Sequence[tuple[int, Seen]], strict: bool
    ) -> Mapping[str, Any] | None:
        """Change the plan by what an epoch has shown; what is to be kept of what was learned. Where
        learning fails, the query goes on without it."""
        try:
            self._plans[name] = self.adaptation.learn(name, self._plans[name], epoch, seen)
            return self.adaptation.kept(name)
        except Exception:
            if strict:
                raise
            self.adaptation.forget(name)
            log.exception("query %s stops adapting; its rows are not affected", name)
            return None
