"""A sweep: one query with many parameters, over the rows that are kept of its streams.

`:name` stands for a constant, a duration or a bound. What queries with different parameters have in
common (the segments of FIT above all) is computed once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from thalweg.errors import ConfigError, did_you_mean
from thalweg.exec.evaluate_once import EvaluateOnce
from thalweg.exec.expressions.evaluate import UserFunction
from thalweg.plan.catalog import Catalog
from thalweg.plan.physical import QueryPlan
from thalweg.runtime.planner import Planner, output_schema
from thalweg.runtime.session.core import EngineCore
from thalweg.store.pack_cache import PackCache
from thalweg.store.packs import TIME, PackMeta

Row = Mapping[str, Any]
_PARTS = re.compile(
    r"""'(?:[^']|'')*' | "(?:[^"]|"")*" | `[^`]*` | --[^\n]* | /\*.*?\*/ | ::
    | :(?P<name>[A-Za-z_]\w*)""",
    re.VERBOSE | re.DOTALL,
)


def over_kept_rows(
    core: EngineCore,
    sql: str,
    parameters: Sequence[Row] | pa.Table,
    arrived: Mapping[str, Sequence[PackMeta]] | None = None,
) -> pa.Table:
    """A sweep over the rows that an engine keeps of its streams, and over packs that have
    `arrived` beside them. No epoch begins until it is done, so that no row is dropped meanwhile."""

    def run() -> pa.Table:
        packs = {n: tuple(s.packs) for n, s in core.state.streams.items()}
        packs |= {n: tuple(p) for n, p in core.state.tables.items()}
        for name, more in (arrived or {}).items():
            packs[name] = (*packs.get(name, ()), *more)
        cache = PackCache(core.storage)
        return Sweep(core.catalog, packs, cache, core.functions.code).run(sql, parameters)

    return core.changes.between_epochs(run)


class Sweep:
    """Runs sweeps over packs: those of streams and tables, by name."""

    def __init__(
        self,
        catalog: Catalog,
        packs: Mapping[str, Sequence[PackMeta]],
        cache: PackCache,
        functions: Mapping[str, UserFunction],
    ) -> None:
        self._planner = Planner(catalog)
        self._packs = packs
        self._cache = cache
        self._functions = functions

    def run(self, sql: str, parameters: Sequence[Row] | pa.Table) -> pa.Table:
        """What each query emits, one after another: its parameters, its columns, `__ts`, and
        `__sign` for relations. The schema's metadata say how many rows were rejected because
        they erred, each counted once where queries share what they compute."""
        rows = parameters.to_pylist() if isinstance(parameters, pa.Table) else list(parameters)
        types = _types(parameters, rows)
        check_parameters(sql, rows)
        evaluator: EvaluateOnce | None = None
        found = []
        for row in rows:
            bound = self._planner.bind(with_parameters(sql, row))
            plan, schema = self._planner.physical(bound), output_schema(bound)
            if evaluator is None:
                evaluator = EvaluateOnce(self._cache, self._functions, self._start(plan))
            table = evaluator.answer(plan, self._of(plan), self._until(plan))
            found.append(_in_time(table, schema))
        if not found:
            raise ConfigError("a sweep without parameters", remedy="give one row of them, or more")
        whole = _beside(rows, types, found)
        rejected = 0 if evaluator is None else evaluator.rejected
        return whole.replace_schema_metadata({"thalweg.rejected": str(rejected)})

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


# -- parameters ------------------------------------------------------------------------------------


def placeholders(sql: str) -> tuple[str, ...]:
    """The names that stand in a text behind colons, outside of quotes and comments."""
    return tuple(dict.fromkeys(m["name"] for m in _PARTS.finditer(sql) if m["name"]))


def with_parameters(sql: str, row: Row) -> str:
    """The text with values in place of names."""
    return _PARTS.sub(lambda m: _written(row[m["name"]]) if m["name"] else m[0], sql)


def check_parameters(sql: str, rows: Iterable[Row]) -> None:
    wanted = placeholders(sql)
    for row in rows:
        missing = [n for n in wanted if n not in row]
        if missing:
            raise ConfigError(
                f"the parameter :{missing[0]} has no value",
                remedy=f"give one for each of {', '.join(f':{n}' for n in wanted)}",
            )
        extra = [n for n in row if n not in wanted]
        if extra:
            raise ConfigError(
                f"the query has no parameter :{extra[0]}",
                remedy=did_you_mean(extra[0], wanted),
            )
        taken = [n for n in row if n in (TIME, "__sign")]
        if taken:
            raise ConfigError(f"{taken[0]} is a reserved name", remedy="choose another one")


def _written(value: Any) -> str:
    """A value as it is written in SQL; a text such as '10 SECONDS' is a duration where one is
    wanted."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, (int, float, Decimal)):
        return f"({value!r})" if value < 0 else str(value)
    if isinstance(value, timedelta):
        return f"'{value // timedelta(microseconds=1)} microseconds'"
    if isinstance(value, datetime):
        return f"TIMESTAMP '{value.isoformat()}'"
    if isinstance(value, date):
        return f"DATE '{value.isoformat()}'"
    return "'" + str(value).replace("'", "''") + "'"
