"""What cannot be built is refused at once, with what to do instead."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from fluent_shop import shop
from sqlglot import exp

from thalweg import col, fn, lit, when
from thalweg.errors import (
    AmbiguousName,
    BindError,
    ConfigError,
    DuplicateName,
    NotAvailableYet,
    ParseError,
    ThalwegError,
    TypeMismatch,
    UnboundedState,
    UnknownName,
    WindowMisuse,
)
from thalweg.fluent import foreign
from thalweg.testing.runner import Runner


@pytest.fixture(scope="module")
def home() -> Runner:
    return shop()


class SomethingElse:
    pass


REFUSED: list[tuple[type[ThalwegError], Callable[[Runner], Any], str]] = [
    # names
    (UnknownName, lambda r: r["trade"], "did you mean trades?"),
    (ConfigError, lambda r: list(r), "engine['trades']"),
    (UnknownName, lambda r: r["trades"].join("quote", "sym"), "did you mean quotes?"),
    (ConfigError, lambda r: col(""), "col('price')"),
    (ConfigError, lambda r: col("a.b.c"), "not the name of a column"),
    (ConfigError, lambda r: col("a."), "not the name of a column"),
    (ConfigError, lambda r: col("a`b"), "not the name of a column"),
    (ConfigError, lambda r: r["trades"].alias(""), "empty"),
    # expressions
    (ConfigError, lambda r: lit(SomethingElse()), "is no constant"),
    (ConfigError, lambda r: lit([1]), "is no constant"),
    (ConfigError, lambda r: col("a") + SomethingElse(), "is no expression"),
    (ConfigError, lambda r: col("a") == b"x", "is no expression"),
    (ConfigError, lambda r: col("a") + col("b").alias("x"), "stand last"),
    (ConfigError, lambda r: r["trades"].filter(col("b").desc()), "stand last"),
    (ConfigError, lambda r: r["trades"].select(col("b").desc()), "stand last"),
    (ConfigError, lambda r: col("a") > r["busy"], "isin"),
    (ConfigError, lambda r: col("a").isin(), "lit(False)"),
    (ConfigError, lambda r: col("a").isin([]), "lit(False)"),
    (ConfigError, lambda r: lit(Decimal("NaN")), "float('nan')"),
    (ConfigError, lambda r: lit(Decimal("1" * 39)), "at most 38"),
    (TypeMismatch, lambda r: col("a").cast("NUMBR"), "not a type"),
    (TypeMismatch, lambda r: col("a").cast("INT) + (b"), "not a type"),
    (ConfigError, lambda r: fn.cast(col("a")), ".cast('BIGINT')"),
    (ConfigError, lambda r: fn.max("price"), "fn.max(col('price'))"),
    (ConfigError, lambda r: fn.lag("price"), "fn.lag(col('price'))"),
    (ConfigError, lambda r: fn.sum(col("a")).filter("b").distinct(), "directly after"),
    (ConfigError, lambda r: fn.sum(col("a")).filter("b").over("c"), "directly after"),
    # text
    (ParseError, lambda r: r["trades"].filter("price >"), "column"),
    (ParseError, lambda r: r["trades"].filter(""), "one expression"),
    (ParseError, lambda r: r["trades"].filter("price > 1; qty > 2"), "one expression"),
    (ParseError, lambda r: r["trades"].select("sym, price"), "end of the statement"),
    (ParseError, lambda r: when("price >", 1), "column"),
    # models
    (ConfigError, lambda r: r["cars"].model(), "model(x='x + v * t')"),
    (ConfigError, lambda r: r["cars"].model(**{"": "x"}), "empty"),
    (ParseError, lambda r: r["cars"].model(x="x +"), "column"),
    (ParseError, lambda r: r["cars"].model(x="x, y"), "end of the statement"),
    (ConfigError, lambda r: r["cars"].fit("x", degree=1.5, within=1), "degree=1 draws lines"),
    (ConfigError, lambda r: r["cars"].fit("x", within="much"), "'1%' of each value"),
    (ConfigError, lambda r: r["cars"].fit("x", within=float("nan")), "no number for a bound"),
    (WindowMisuse, lambda r: r["cars"].fit("x", within=1, every="often"), "'5 min'"),
    (BindError, lambda r: r["cars"].model(x="x").fit("y", within=1), "do not go together"),
    (BindError, lambda r: r["cars"].model(x="x").model(y="y"), "in one model("),
    (
        BindError,
        lambda r: r["cars"].fit("x", within=1, horizon="1 s").fit("y", within=1, horizon="2 s"),
        "say horizon= once",
    ),
    (ConfigError, lambda r: r["cars"].model(x="x").sample(), "sample(every='1 s')"),
    (ConfigError, lambda r: r["cars"].model(x="x").sample(every="1 s", rate=1), "sample(rate=10)"),
    (ConfigError, lambda r: r["cars"].model(x="x").sample(rate="10"), "no number for a rate"),
    (BindError, lambda r: r["cars"].sample(rate=1).sample(rate=2), "SAMPLE stands there already"),
    (ConfigError, lambda r: r["cars"].model(x="x").error(), "error(x='1%')"),
    (ConfigError, lambda r: r["cars"].model(x="x").error(x=True), "no number for a bound"),
    (BindError, lambda r: r["cars"].error(x=1).error(y=1), "ERROR stands there already"),
    (BindError, lambda r: r["trades"].model(price="price").explain(), "KEY (...)"),
    (BindError, lambda r: r["cars"].sample(rate=1).explain(), "MODEL (x = x)"),
    (BindError, lambda r: r["cars"].error(x=1).explain(), "MODEL (x = x)"),
    # windows
    (WindowMisuse, lambda r: r["trades"].now().range("1 s"), ".istream() first"),
    (WindowMisuse, lambda r: r["trades"].range("5 fortnights"), "'5 min'"),
    (WindowMisuse, lambda r: r["trades"].range("-5 min"), "'5 min'"),
    (WindowMisuse, lambda r: r["trades"].range(-5), "less than nothing"),
    (WindowMisuse, lambda r: r["trades"].range(1.5), "'5 min'"),
    (WindowMisuse, lambda r: r["trades"].range(True), "'5 min'"),
    (WindowMisuse, lambda r: r["trades"].rows(0), "at least one row"),
    (WindowMisuse, lambda r: r["trades"].rows(True), "at least one row"),
    (WindowMisuse, lambda r: r["trades"].between(1, 2), "no point in time"),
    (ConfigError, lambda r: r["trades"].landmark(), "every="),
    (ConfigError, lambda r: r["trades"].landmark("2026-01-01", every="1 d"), "every="),
    (WindowMisuse, lambda r: r["trades"].landmark("noon").query(), "points in time"),
    (WindowMisuse, lambda r: r["companies"].now().query(), "drop the window"),
    (WindowMisuse, lambda r: r["busy"].now().query(), "ISTREAM"),
    # joins
    (ConfigError, lambda r: r["trades"].join("quotes"), "how='cross'"),
    (ConfigError, lambda r: r["trades"].join("quotes", []), "how='cross'"),
    (ConfigError, lambda r: r["trades"].join("quotes", "sym", "cross"), "drop on="),
    (ConfigError, lambda r: r["trades"].join("quotes", "sym", "lefty"), "did you mean left?"),
    (ConfigError, lambda r: r["trades"].join(7, "sym"), "engine['name']"),
    (ConfigError, lambda r: r["trades"].join(shop()["quotes"], "sym"), "different engines"),
    (ConfigError, lambda r: r["trades"].join("quotes", "sym").join("busy", "sym"), "a.sym = b.sym"),
    (DuplicateName, lambda r: r["trades"].now().join(r["trades"].now(), "sym").query(), "alias"),
    (AmbiguousName,
     lambda r: r["trades"].now().join(r["quotes"].now(), "sym").select("sym").query(),
     "trades.sym or quotes.sym"),
    # columns and groups
    (ConfigError, lambda r: r["trades"].select(), "select('*')"),
    (ConfigError, lambda r: r["trades"].select(a="price AS b"), "one name"),
    (ConfigError, lambda r: r["trades"].select(a=col("price").alias("b")), "one name"),
    (ConfigError, lambda r: r["trades"].filter(), "filter('price > 100')"),
    (ConfigError, lambda r: r["trades"].agg(), "fn.count()"),
    (ConfigError, lambda r: r["trades"].group_by("sym").select(), "keys or aggregates"),
    (ConfigError, lambda r: r["trades"].group_by(1), "group_by('sym')"),
    (ConfigError, lambda r: r["trades"].group_by("1"), "group_by('sym')"),
    (ConfigError, lambda r: r["trades"].group_by("*"), "group_by('sym')"),
    (ConfigError, lambda r: r["trades"].group_by(("a", "b")), "group_by('a', 'b')"),
    (ConfigError, lambda r: r["trades"].rollup(), "rollup('a', 'b')"),
    (ConfigError, lambda r: r["trades"].group_by("sym").having(), "count(*) > 2"),
    (BindError, lambda r: r["trades"].having("count(*) > 2"), ".agg(...)"),
    (BindError, lambda r: r["busy"].union("busy").having("count(*) > 2"), ".agg(...)"),
    # the whole
    (BindError, lambda r: r["trades"].istream().rstream(), "ISTREAM already"),
    (BindError, lambda r: r["trades"].order_by("sym").order_by("sym"), "drop the other"),
    (BindError, lambda r: r["trades"].limit(1).order_by("sym"), "before limit"),
    (BindError, lambda r: r["trades"].limit(1).limit(2), "already"),
    (ConfigError, lambda r: r["trades"].limit(-1), "limit(10)"),
    (BindError, lambda r: r["trades"].now().limit(1).query(), "RSTREAM"),
    (BindError, lambda r: r["busy"].union(r["busy"].order_by("sym")).query(), "at the end"),
    (UnknownName, lambda r: r["trades"].with_options(filter="x").query(), "did you mean filters?"),
    (ConfigError, lambda r: r["trades"].into("file", "out"), "did you mean files?"),
    (ConfigError, lambda r: r["trades"].into("files"), "into('files', 'out')"),
    (BindError, lambda r: r["trades"].into("console").into("console"), "drop one of them"),
    (BindError, lambda r: r["busy"].into("console").union("busy").query(), "at the end"),
    (BindError, lambda r: r["busy"].union(r["busy"].into("console")).query(), "at the end"),
    (BindError, lambda r: r["busy"].into("console").distinct().query(), "at the end"),
    (UnboundedState, lambda r: r["trades"].join("quotes", "sym").select("bid").query(), "[RANGE"),
    (UnknownName, lambda r: r["trades"].filter(col("pric") > 1).query(), "did you mean price?"),
    (NotAvailableYet,
     lambda r: r["trades"].filter("sym IN (SELECT sym FROM busy QOS (LATENCY (0:1, 1:0)))").sql(),
     "engine.query(text)"),
    (NotAvailableYet, lambda r: r["trades"].agg("avg(price) WITHIN (5%)").sql(),
     "engine.query(text)"),
    (BindError, lambda r: r["trades"].rstream().order_by(col("all")).sql(), "in another way"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "attempt", "words"), REFUSED)
def test_refusals(
    home: Runner, kind: type[ThalwegError], attempt: Callable[[Runner], Any], words: str
) -> None:
    with pytest.raises(ThalwegError) as caught:
        attempt(home)
    assert type(caught.value) is kind, repr(caught.value)
    assert words in str(caught.value)
    placed = caught.value.line is not None
    assert placed or caught.value.remedy or isinstance(caught.value, ParseError)


@pytest.mark.parametrize(
    "misuse",
    [
        lambda: col("a") > 1 and col("b") > 2,
        lambda: col("a") > 1 or col("b") > 2,
        lambda: not col("a"),
        lambda: 1 < col("a") < 2,
        lambda: col("a") in [1, 2],
        lambda: bool(fn.max(col("a"))),
    ],
)
def test_truth_is_per_row(misuse: Callable[[], Any]) -> None:
    with pytest.raises(TypeError, match="has no truth value") as caught:
        misuse()
    for remedy in ("&", "|", "~", ".between", ".isin"):
        assert remedy in str(caught.value)


def test_places_point_into_the_built_text(home: Runner) -> None:
    with pytest.raises(UnknownName) as caught:
        home["trades"].filter("price > 1").select("sym", "qtty").query()
    assert (caught.value.line, caught.value.column) == (1, 13)
    assert "SELECT sym, qtty\n              ^" in str(caught.value)


def test_names_of_one_query_are_taken(home: Runner) -> None:
    home["trades"].select("sym").query(name="mine")
    with pytest.raises(DuplicateName):
        home["trades"].select("price").query(name="mine")


class Foreign:
    """Stands for a column of another library, which, as Spark's does, has every attribute."""

    def astype(self, kind: Any, /) -> Any: ...

    def __getattr__(self, name: str) -> Foreign:
        return self


def test_foreign_columns_are_read_by_whoever_knows_them(
    home: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(foreign, "_CONVERTERS", [])
    with pytest.raises(ConfigError, match="is no expression"):
        home["trades"].filter(Foreign())
    node: exp.Expr = (col("price") > 1).node
    foreign.register(lambda value: node.copy() if isinstance(value, Foreign) else None)
    assert (
        home["trades"]
        .filter(Foreign(), ~(col("a") & Foreign()))
        .sql()
        .endswith("WHERE price > 1 AND NOT (a AND price > 1)")
    )
    node = col("price").alias("p").node
    assert home["trades"].select(Foreign()).sql().startswith("SELECT price AS p")
    with pytest.raises(ConfigError, match="has a name already"):
        home["trades"].filter(Foreign())
    node = col("price").desc().node
    assert home["trades"].order_by(Foreign()).sql().endswith("ORDER BY price DESC")


def test_spark_without_its_converter_is_told_what_to_import(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(foreign, "_CONVERTERS", [])
    monkeypatch.setattr(Foreign, "__module__", "pyspark.sql.classic.column")
    with pytest.raises(ConfigError, match=r"import thalweg\.spark\.columns"):
        col("a") + Foreign()


def test_nothing_heavy_is_imported() -> None:
    """`import thalweg` stays light, and the fluent side needs no Spark."""
    light = "import sys, thalweg; assert not {'sqlglot', 'pyarrow', 'pyspark'} & set(sys.modules)"
    free = "import sys; from thalweg import col, fn, lit, when; assert 'pyspark' not in sys.modules"
    for code in (light, free):
        subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
