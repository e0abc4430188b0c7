"""`engine["trades"]`: a query built step by step.

Each method gives a new value and applies to what stands before it. Where that cannot be said in the
same SELECT (a filter after a grouping, a window after a filter), what stands before becomes a
subquery.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from thalweg.errors import BindError, ConfigError, UnknownName, did_you_mean
from thalweg.fluent import building, clauses
from thalweg.fluent.expressions import (
    Condition,
    Item,
    Key,
    condition,
    ordering,
)
from thalweg.fluent.home import Home
from thalweg.fluent.joins import joined
from thalweg.fluent.literals import literal
from thalweg.fluent.modeled import Modeled
from thalweg.fluent.names import written
from thalweg.lang.parsing import ast
from thalweg.lang.syntax import exp
from thalweg.plan.logical import EmitKind
from thalweg.runtime.session.session import Callback, Query


def named(home: Home, name: str) -> Stream:
    """The stream, table, view or query of this name, to build on."""
    if not isinstance(name, str):
        raise ConfigError(f"{name!r} is no name", remedy="write engine['trades']")
    catalog = home.session.catalog
    if catalog.relation(name) is None:
        known = catalog.relation_names()
        raise UnknownName(f"unknown stream or table {name}", remedy=did_you_mean(name, known))
    return Stream(home, building.source(name))


@dataclass(frozen=True, slots=True, repr=False)
class Stream(Modeled):
    """A stream, table or view, or what a query makes of them; `engine["trades"]` gives one.

    >>> import pyarrow as pa
    >>> from thalweg import col, fn
    >>> from thalweg.testing.runner import Runner
    >>> runner = Runner()
    >>> ts = pa.array([0, 1_000_000, 2_000_000], pa.timestamp("us", "UTC"))
    >>> trades = pa.table({"sym": ["A", "B", "A"], "price": [10.0, 99.0, 30.0], "ts": ts})
    >>> _ = runner.stream("trades", trades)
    >>> means = (
    ...     runner["trades"]
    ...     .range("1 min")
    ...     .filter(col("price") < 50)
    ...     .group_by("sym")
    ...     .agg(mean=fn.avg(col("price")))
    ...     .istream()
    ... )
    >>> print(means.sql())
    SELECT ISTREAM sym, avg(price) AS mean
    FROM trades [RANGE 1 MINUTE]
    WHERE price < 50
    GROUP BY sym
    >>> query = means.query(name="means")
    >>> runner.run()
    >>> query.results().select(["sym", "mean"]).to_pylist()
    [{'sym': 'A', 'mean': 10.0}, {'sym': 'A', 'mean': 20.0}]
    """

    # -- rows --------------------------------------------------------------------------------

    def filter(self, *conditions: Condition) -> Stream:
        """Only rows for which all conditions hold: expressions, text, or Spark columns."""
        if not conditions:
            raise ConfigError("filter() needs a condition", remedy="write filter('price > 100')")
        found = tuple(condition(c) for c in conditions)
        return self._with(building.filtered(building.opened(self.draft), found))

    where = filter

    def join(
        self,
        other: Stream | str,
        on: Condition | Sequence[Condition] | None = None,
        how: str = "inner",
    ) -> Stream:
        """Rows of both side by side.

        `on` is a condition, several, or the name of a column that both have. `how` is inner, cross,
        left, right, full, semi, anti, asof or left asof.
        """
        return self._with(joined(self.draft, _other(self, other).draft, on, how))

    # -- columns -----------------------------------------------------------------------------

    def select(self, *items: Item, **named_items: Item) -> Stream:
        """These columns: expressions or text, by keyword with a name."""
        found = clauses.items_of(items, named_items)
        if not found:
            raise ConfigError("select() needs a column", remedy="write select('*') for all")
        return self._with(replace(building.opened(self.draft), items=found))

    def distinct(self) -> Stream:
        """Each row once."""
        query = self.draft
        settled = isinstance(query, ast.SetOperation) or query.distinct or clauses.says_more(query)
        opened = building.wrapped(query) if settled else query
        return self._with(building.with_first(opened, distinct=True))

    def group_by(self, *keys: Item, **named_keys: Item) -> Grouped:
        """One row per value of the keys: columns, or expressions with names."""
        return _grouped(self, None, keys, named_keys)

    def rollup(self, *keys: Item | Sequence[Item]) -> Grouped:
        """Groups by all keys, by all but the last, and so on to one group of all rows."""
        return _grouped(self, "ROLLUP", keys, {})

    def cube(self, *keys: Item | Sequence[Item]) -> Grouped:
        """Groups by every choice of the keys."""
        return _grouped(self, "CUBE", keys, {})

    def grouping_sets(self, *sets: Item | Sequence[Item]) -> Grouped:
        """Groups by each of these sets of keys: `grouping_sets(("sym", "venue"), "sym", ())`."""
        return _grouped(self, "GROUPING SETS", sets, {})

    def agg(self, *items: Item, **named_items: Item) -> Stream:
        """One row about all rows: `agg(n=fn.count())`."""
        return self.group_by().agg(*items, **named_items)

    def having(self, *conditions: Condition) -> Stream:
        """Only groups for which all conditions hold; they may contain aggregates, but not the names
        given to them, which are for `filter`."""
        query = self.draft
        if not isinstance(query, ast.Select) or not query.items or clauses.says_more(query):
            raise BindError("having() is about groups", remedy="let it follow .agg(...)")
        return self._with(clauses.having(query, conditions))

    # -- several -----------------------------------------------------------------------------

    def union(self, other: Stream | str, all: bool = False) -> Stream:
        """The rows of both, each once; all of them with `all`."""
        return _combined(self, "UNION", other, all)

    def except_(self, other: Stream | str, all: bool = False) -> Stream:
        """The rows that the other does not have; with `all`, as often as it has fewer."""
        return _combined(self, "EXCEPT", other, all)

    def intersect(self, other: Stream | str, all: bool = False) -> Stream:
        """The rows that both have; with `all`, as often as both do."""
        return _combined(self, "INTERSECT", other, all)

    # -- the whole ---------------------------------------------------------------------------

    def order_by(self, *keys: Key) -> Stream:
        """The order of the rows of an answer, for RSTREAM: output columns, by name or `.desc()`."""
        last = building.last_select(self.draft)
        if last.order_by or last.limit is not None:
            raise BindError("an order comes once and before limit()", remedy="drop the other one")
        found = tuple(ordering(k) for k in keys)
        return self._with(building.with_last(self.draft, order_by=found))

    def limit(self, n: int) -> Stream:
        """At most n rows of each answer, for RSTREAM."""
        if isinstance(n, bool) or not isinstance(n, int) or n < 0:
            raise ConfigError(f"limit() takes a number of rows, not {n!r}", remedy="limit(10)")
        if building.last_select(self.draft).limit is not None:
            raise BindError("there is a limit already", remedy="drop one of them")
        return self._with(building.with_last(self.draft, limit=literal(n)))

    def istream(self) -> Stream:
        """Emit the rows that come into the answer."""
        return self._emitting(EmitKind.ISTREAM)

    def dstream(self) -> Stream:
        """Emit the rows that go out of the answer."""
        return self._emitting(EmitKind.DSTREAM)

    def rstream(self) -> Stream:
        """Emit the whole answer, whenever a row arrives or a window slides."""
        return self._emitting(EmitKind.RSTREAM)

    def _emitting(self, kind: EmitKind) -> Stream:
        known = building.first_select(self.draft).kind
        if known is not None:
            raise BindError(
                f"the query is {known.value} already", remedy="say once, and last, what it emits"
            )
        return self._with(building.with_first(self.draft, kind=kind))

    def into(
        self, kind: str, target: str = "", format: str | None = None, **options: str | int | bool
    ) -> Stream:
        """`INTO ...`: where the output goes. `kind` is files, changelog or table with a path,
        spark with the name of a format, or console."""
        if building.last_select(self.draft).into is not None:
            raise BindError("the output goes somewhere already", remedy="drop one of them")
        clause = clauses.into_clause(kind, target, format, tuple(options.items()))
        return self._with(building.with_last(self.draft, into=clause))

    def with_options(self, **options: str | int | bool) -> Stream:
        """`WITH (...)` of the whole query: `with_options(unbounded=True)`."""
        return self._with(building.with_options(self.draft, tuple(options.items())))

    # -- done --------------------------------------------------------------------------------

    def query(self, name: str | None = None, callback: Callback | None = None) -> Query:
        """Register the query; the same as `engine.query(stream.sql(), name, callback)`."""
        return self.home.query(self.sql(), name, callback)

    def view(self, name: str) -> Stream:
        """Name the query for others to read (CREATE VIEW), and go on with it by that name."""
        self.home.sql(f"CREATE VIEW {written(name)} AS {self.sql()}")
        return named(self.home, name)

    def explain(self) -> str:
        """The plan, routing and bounded-state verdict."""
        return self.home.explain(self.sql())


@dataclass(frozen=True, slots=True)
class Grouped:
    """Groups of rows; `agg` says what is asked about each."""

    home: Home = field(compare=False, repr=False)
    draft: ast.Select = field(repr=False)
    keys: tuple[exp.Expr, ...]

    def having(self, *conditions: Condition) -> Grouped:
        """Only groups for which all conditions hold; aggregates may stand in them."""
        return replace(self, draft=clauses.having(self.draft, conditions))

    def agg(self, *items: Item, **named_items: Item) -> Stream:
        """The keys, and these columns."""
        found = (*self.keys, *clauses.items_of(items, named_items))
        if not found:
            raise ConfigError("agg() needs a column", remedy="write agg(n=fn.count())")
        return Stream(self.home, replace(self.draft, items=found))

    def select(self, *items: Item, **named_items: Item) -> Stream:
        """These columns and no others: keys only where they are named."""
        found = clauses.items_of(items, named_items)
        if not found:
            raise ConfigError("select() needs a column", remedy="name keys or aggregates")
        return Stream(self.home, replace(self.draft, items=found))


def _other(stream: Stream, other: Stream | str) -> Stream:
    found = named(stream.home, other) if isinstance(other, str) else other
    if not isinstance(found, Stream):
        raise ConfigError(
            f"{found!r} of type {type(found).__name__} cannot be combined with a stream",
            remedy="write engine['name'] or its name",
        )
    if found.home is not stream.home:
        raise ConfigError(
            "the two sides belong to different engines", remedy="register both with one"
        )
    return found


def _grouped(stream: Stream, kind: str | None, keys: tuple[Any, ...], named_keys: Any) -> Grouped:
    sets = [tuple(k) if isinstance(k, list | tuple) else k for k in keys]
    if kind is None and any(isinstance(k, tuple) for k in sets):
        raise ConfigError("a key is one column", remedy="write group_by('a', 'b')")
    if kind is not None and not sets:
        raise ConfigError(f"{kind} needs a key", remedy="write rollup('a', 'b')")
    found = [clauses.key_of(k) for k in sets] + [
        clauses.key_of(k) for k in clauses.items_of((), named_keys)
    ]
    query = replace(
        building.opened(stream.draft), group_by=tuple(f.node for f in found), grouping=kind
    )
    columns = dict.fromkeys(i for f in found for i in f.items)
    return Grouped(stream.home, query, tuple(columns))


def _combined(stream: Stream, operator: str, other: Stream | str, all: bool) -> Stream:
    sides = [clauses.part(s.draft) for s in (stream, _other(stream, other))]
    (left, first), (right, second) = (building.without_options(s) for s in sides)
    word = f"{operator} ALL" if all else operator
    both = ast.SetOperation(word, left, right, (), 0)
    options = (*first, *second)
    return stream._with(building.with_options(both, options) if options else both)
