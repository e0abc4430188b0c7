"""MODEL, FIT, SAMPLE and ERROR built in Python mean what their text means."""

from __future__ import annotations

from datetime import timedelta

import pyarrow as pa
import pytest
from fluent_shop import assert_means, assert_round_trip, shop

from thalweg import col, fn
from thalweg.testing.runner import Runner


@pytest.fixture(scope="module")
def home() -> Runner:
    return shop()


def test_a_model_may_be_text_or_an_expression(home: Runner) -> None:
    text = "SELECT id FROM cars MODEL (x = x + v * t) FOR 10 SECONDS WHERE x > 3"
    cars = home["cars"]
    for polynomial in ("x + v * t", col("x") + col("v") * col("t")):
        built = cars.model(x=polynomial, horizon="10 s").filter(col("x") > 3).select("id")
        assert_means(home, built, text)


def test_a_power_is_written_as_a_call(home: Runner) -> None:
    built = home["cars"].model(x="x + v*t - 4.9*t^2").select("id", "x")
    assert_means(home, built, "SELECT id, x FROM cars MODEL (x = x + v*t - 4.9*t^2)")
    assert "pow(t, 2)" in built.sql()


def test_a_number_is_a_model(home: Runner) -> None:
    built = home["cars"].model({"x": 0}, y="y").select("x", "y")
    assert_means(home, built, "SELECT x, y FROM cars MODEL (x = 0, y = y)")


def test_several_columns_are_fitted_together(home: Runner) -> None:
    lines = home["cars"].fit("x", within=0.5, every=timedelta(minutes=1), horizon="1 min")
    built = lines.fit("y", degree=0, within="1%").fit("v", degree=2, within=2, relative=True)
    assert_means(
        home,
        built.select("x", "y", "v").with_options(fit="least squares"),
        "SELECT x, y, v FROM cars MODEL (FIT x DEGREE 1 WITHIN 0.5 EVERY 1 MINUTE, "
        "FIT y DEGREE 0 WITHIN 1%, FIT v DEGREE 2 WITHIN 2%) FOR 1 MINUTE "
        "WITH (fit = 'least squares')",
    )


def test_samples_and_bounds(home: Runner) -> None:
    held = home["cars"].model(x="x", y="y").select("id", "x", "y").error({"cars.x": 0.5}, y="1%")
    text = "SELECT id, x, y FROM cars MODEL (x = x, y = y) ERROR cars.x WITHIN 0.5, y WITHIN 1%"
    assert_means(home, held.sample(every="1 s"), f"{text} SAMPLE EVERY 1 SECOND")
    assert_means(home, held.sample(rate=4), f"{text} SAMPLE RATE 4")


def test_what_follows_samples_reads_them(home: Runner) -> None:
    samples = home["cars"].model(x="x").select("id", "x").sample(every="1 s")
    built = samples.range("1 min").group_by("id").agg(n=fn.count(), top=fn.max(col("x"))).istream()
    assert_means(
        home,
        built,
        "SELECT ISTREAM id, count(*) AS n, max(x) AS top FROM (SELECT id, x FROM cars "
        "MODEL (x = x) SAMPLE EVERY 1 SECOND) [RANGE 1 MINUTE] AS cars GROUP BY id",
    )
    for further in (samples.filter("x > 1"), samples.distinct(), samples.union(samples)):
        assert_round_trip(further)
        assert further.sql().count("SAMPLE EVERY 1 SECOND)") == further.sql().count("SAMPLE")


def test_a_window_comes_before_or_after_the_model(home: Runner) -> None:
    text = (
        "SELECT RSTREAM id, avg(x) AS mean, coverage(x) AS known "
        "FROM cars [RANGE 1 MINUTE SLIDE 1 SECOND] MODEL (x = x) GROUP BY id"
    )
    cars = home["cars"]
    for source in (
        cars.range("1 min", "1 s").model(x="x"),
        cars.model(x="x").range("1 min", "1 s"),
    ):
        means = source.group_by("id").agg(mean=fn.avg(col("x")), known=fn.coverage(col("x")))
        assert_means(home, means.rstream(), text)


def test_pairs_that_will_meet(home: Runner) -> None:
    a, b = (home["cars"].model(x="x + v * t", horizon="60 s").alias(n) for n in "ab")
    built = (
        a.join(b, on="a.id < b.id")
        .filter(fn.abs(col("a.x") - col("b.x")) < 5)
        .select(one="a.id", other="b.id")
        .with_options(release="eager")
    )
    model = "MODEL (x = x + v * t) FOR 60 SECONDS"
    assert_means(
        home,
        built,
        f"SELECT a.id AS one, b.id AS other FROM cars AS a {model} JOIN cars AS b {model} "
        "ON a.id < b.id WHERE abs(a.x - b.x) < 5 WITH (release = 'eager')",
    )


def test_a_built_stream_may_be_modeled(home: Runner) -> None:
    built = home["cars"].filter("v > 0").select("id", "x", "ts").model(x="x").sample(rate=1)
    assert_round_trip(built)
    assert "FROM (SELECT id, x, ts FROM cars WHERE v > 0) AS cars MODEL (x = x)" in built.sql()


def test_names_that_have_to_be_quoted() -> None:
    runner = Runner()
    ts = pa.array([0], pa.timestamp("us", "UTC"))
    odd = {"id": [1], "unit price": [1.0], "order": [2.0], "ts": ts}
    runner.stream("odd", pa.table(odd), key=["id"])
    assert_round_trip(runner["odd"].model({"unit price": "`unit price` + t"}).select("id"))
    assert_round_trip(runner["odd"].fit("order", within=1).fit("unit price", within=1))
