"""A sweep: one query with many parameters, over the rows that are kept of its streams.

`:name` stands for a constant, a duration or a bound. What queries with different parameters have in
common (the segments of FIT above all) is computed once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from thalweg.errors import ConfigError
from thalweg.exec.evaluate_once import EvaluateOnce
from thalweg.exec.expressions.evaluate import UserFunction
from thalweg.plan.catalog import Catalog
from thalweg.plan.physical import QueryPlan
from thalweg.runtime.planner import Planner, output_schema
from thalweg.runtime.session.core import EngineCore
from thalweg.runtime.session.sweeps.batches import Batch, Batches, OwnTables
from thalweg.runtime.session.sweeps.parameters import Row, check_parameters, with_parameters
from thalweg.store.pack_cache import PackCache
from thalweg.store.packs import TIME, PackMeta
from thalweg.store.storage import Storage


def over_kept_rows(
    core: EngineCore,
    sql: str,
    parameters: Sequence[Row] | pa.Table,
    arrived: Mapping[str, Sequence[PackMeta]] | None = None,
) -> pa.Table:
    """A sweep over the rows that an engine keeps of its streams, and over packs that have
    `arrived` beside them. No epoch begins until it is done, so that no row is dropped meanwhile."""

    def run() -> pa.Table:
        texts = [sql, *(view.text for view in core.catalog.views.values())]
        core.tables.need(t for t in core.tables.unread if _mentioned(t, texts))
        packs = {n: tuple(s.packs) for n, s in core.state.streams.items()}
        packs |= {n: tuple(p) for n, p in core.state.tables.items()}
        for name, more in (arrived or {}).items():
            packs[name] = (*packs.get(name, ()), *more)
        sweep = Sweep(core.catalog, packs, core.storage, core.functions.code)
        return sweep.run(sql, parameters)

    return core.changes.between_epochs(run)


def _mentioned(name: str, texts: Sequence[str]) -> bool:
    """Whether a name is a word of some text: then it may be read."""
    word = re.compile(rf"\b{re.escape(name)}\b", re.IGNORECASE)
    return any(word.search(text) for text in texts)


class Sweep:
    """Runs sweeps over packs: those of streams and tables, by name."""

    def __init__(
        self,
        catalog: Catalog,
        packs: Mapping[str, Sequence[PackMeta]],
        storage: Storage,
        functions: Mapping[str, UserFunction],
    ) -> None:
        self._planner = Planner(catalog)
        self._packs = dict(packs)
        self._cache = PackCache(OwnTables(storage))
        self._functions = functions
        self._evaluator: EvaluateOnce | None = None

    def run(self, sql: str, parameters: Sequence[Row] | pa.Table) -> pa.Table:
        """What each query emits, one after another: its parameters, its columns, `__ts`, and
        `__sign` for relations. The schema's metadata say how many rows were rejected because
        they erred, each counted once where queries share what they compute."""
        rows = parameters.to_pylist() if isinstance(parameters, pa.Table) else list(parameters)
        types = _types(parameters, rows)
        check_parameters(sql, rows)
        if not rows:
            raise ConfigError("a sweep without parameters", remedy="give one row of them, or more")
        found: dict[int, pa.Table] = {}
        for batch in Batches(self._planner.catalog, sql, rows).each(lambda: self._largest):
            found |= self._together(batch) if len(batch.numbers) > 1 else self._alone(sql, batch)
        whole = _beside(rows, types, [found[i] for i in range(len(rows))])
        rejected = 0 if self._evaluator is None else self._evaluator.rejected
        return whole.replace_schema_metadata({"thalweg.rejected": str(rejected)})

    def _alone(self, sql: str, batch: Batch) -> dict[int, pa.Table]:
        bound = self._planner.bind(with_parameters(sql, batch.rows[0]))
        plan, schema = self._planner.physical(bound), output_schema(bound)
        return {batch.numbers[0]: _in_time(self._answer(plan), schema)}

    def _together(self, batch: Batch) -> dict[int, pa.Table]:
        """The answers of a query with a table of parameters, by parameter."""
        self._packs[batch.table] = (batch.written(self._cache.storage),)
        schema = output_schema(batch.planned.bound)
        whole = _in_time(self._answer(batch.planned.plan), schema)
        place = whole.column(batch.place).to_numpy()
        whole = whole.take(pa.array(np.argsort(place, kind="stable"))).drop_columns([batch.place])
        counts = np.bincount(place, minlength=len(batch.numbers))
        first = np.cumsum(counts) - counts
        return {n: whole.slice(int(first[i]), int(counts[i])) for i, n in enumerate(batch.numbers)}

    def _answer(self, plan: QueryPlan) -> pa.Table | None:
        if self._evaluator is None:
            self._evaluator = EvaluateOnce(self._cache, self._functions, self._start(plan))
        return self._evaluator.answer(plan, self._of(plan), self._until(plan))

    @property
    def _largest(self) -> int:
        return 0 if self._evaluator is None else self._evaluator.largest

    def _of(self, plan: QueryPlan) -> list[tuple[PackMeta, ...]]:
        return [tuple(self._packs.get(leaf.relation, ())) for leaf in plan.leaves]

    def _stamps(self, plan: QueryPlan) -> list[PackMeta]:
        return [p for name in plan.streams for p in self._packs.get(name, ()) if p.rows]

    def _start(self, plan: QueryPlan) -> int:
        return min((p.min_ts for p in self._stamps(plan)), default=0)

    def _until(self, plan: QueryPlan) -> int:
        """Just past all that rows make appear, as at the end of a run."""
        last = max((p.max_ts for p in self._stamps(plan)), default=-1)
        return plan.ended(plan.last_change(last) + 1)


def _types(parameters: Sequence[Row] | pa.Table, rows: Sequence[Row]) -> dict[str, pa.DataType]:
    if isinstance(parameters, pa.Table):
        return {f.name: f.type for f in parameters.schema}
    names = dict.fromkeys(name for row in rows for name in row)
    return {n: pa.array([row.get(n) for row in rows]).type for n in names}


def _in_time(found: pa.Table | None, schema: pa.Schema) -> pa.Table:
    """The rows of one query in the order of time."""
    if found is None:
        return schema.empty_table()
    return found.select(schema.names).cast(schema).sort_by(TIME)


def _beside(
    rows: Sequence[Row], types: Mapping[str, pa.DataType], found: Sequence[pa.Table]
) -> pa.Table:
    """All rows, with their parameters before them."""
    whole = pa.concat_tables(found, promote_options="permissive")
    which = pa.array(np.repeat(np.arange(len(rows)), [t.num_rows for t in found]))
    values = {n: pa.array([row[n] for row in rows], t).take(which) for n, t in types.items()}
    return pa.table({**values, **{n: whole.column(n) for n in whole.column_names}})
