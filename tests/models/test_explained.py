"""EXPLAIN of queries over models, in words that need no other page."""

from __future__ import annotations

import pyarrow as pa
import pytest

from thalweg.errors import BindError, NotAvailableYet, ParseError
from thalweg.testing.runner import Runner


@pytest.fixture(scope="module")
def home() -> Runner:
    made = Runner()
    ts = pa.array([0, 1_000_000], pa.timestamp("us", "UTC"))
    cars = {"id": ["a", "b"], "x": [0.0, 50.0], "y": [0.0, 1.0], "v": [3.0, -2.0], "ts": ts}
    made.stream("cars", pa.table(cars), key=["id"])
    made.sql(
        "CREATE VIEW lines RETAIN 1 DAY AS SELECT id, x FROM cars MODEL (FIT x DEGREE 1 WITHIN 1)"
    )
    made.sql("CREATE VIEW fast AS SELECT id, x, v, ts FROM cars WHERE v > 0")
    return made


LINE = "FROM cars MODEL (x = x + v*t)"
WORDS = {
    f"SELECT id, x {LINE}": (
        "model of cars: x = x + v*t, from each row of id to its next, t in seconds since that row",
        "id, x of relation 0, as functions of time",
        "x: the value where the row begins; __model: the start and the coefficients",
        "state: bounded (cars: a segment of each id)",
    ),
    f"SELECT id {LINE} FOR 10 SECONDS WHERE x > 20 AND v > 1": (
        "from each row of id to its next, for 10 s at most",
        "while x > 20, solved for time to the microsecond",
    ),
    f"SELECT id, x {LINE} SAMPLE RATE 10": (
        "RSTREAM (id STRING, x DOUBLE)",
        "samples of relation 0 at the multiples of 100 ms since 1970",
        "id, x of relation 1, at the instant of each row",
    ),
    "SELECT id, x FROM cars MODEL (FIT x DEGREE 1 WITHIN 0)": (
        "fit of cars: x by straight lines through each row, for each id",
        "within cells of 1 min (EVERY): answers lag by at most 1 min",
    ),
    "SELECT id, x, y FROM cars MODEL (FIT x DEGREE 2 WITHIN 1% EVERY 5 MINUTES, "
    "FIT y DEGREE 0 WITHIN 0.5) FOR 1 MINUTE": (
        "x by polynomials of degree 2, at most 1 % of its size from each row (WITHIN); "
        "y by values that hold, at most 0.5 from each row (WITHIN), for each id",
        "within cells of 5 min (EVERY), and 1 min beyond its end: answers lag by at most 5 min",
    ),
    "SELECT id, x FROM cars MODEL (FIT x DEGREE 1 WITHIN 1) WITH (fit = 'swing')": (
        "at most 1 from each row (WITHIN), by swing",
    ),
    f"SELECT id {LINE} WHERE x > 25 ERROR x WITHIN 0.5": (
        "a row whose x is within 0.5 of the model changes nothing (ERROR)",
        "while x > 25 may hold, given the bounds of ERROR",
        "may hold while cars.x > (25.0 - 0.5)",
        "holds for certain while cars.x > (25.0 + 0.5); the rest has __maybe = true",
    ),
    "SELECT a.id AS one, b.id AS other FROM cars a MODEL (x = x + v*t) FOR 9 SECONDS, "
    "cars b MODEL (x = x) FOR 9 SECONDS WHERE a.id < b.id AND abs(a.x - b.x) < 5 "
    "WITH (release = 'eager')": (
        "predictions (one STRING, other STRING, valid_from TIMESTAMP, valid_until TIMESTAMP)",
        "predictions of when abs(a.x - b.x) < 5 will hold for rows of relation 2, as soon as a row",
        "of each a.id, b.id the newest counts; NULL in valid_from says that it is off",
    ),
    "SELECT RSTREAM id, avg(x) AS mean, sum(x) AS total, coverage(x) AS known "
    "FROM cars [RANGE 1 MINUTE SLIDE 1 SECOND] MODEL (x = x) GROUP BY id": (
        "avg(cars.x) (the mean over time: the integral by the time covered)",
        "sum(cars.x) (the integral: the value times seconds)",
        "coverage(cars.x) (the part of the time for which there is a value)",
        "over the last 1 min",
    ),
    "SELECT RSTREAM a.id, a.m FROM (SELECT id, avg(x) AS m FROM cars "
    "[RANGE 1 MINUTE SLIDE 5 SECONDS] MODEL (x = x) GROUP BY id) a WHERE a.m > 3": (
        "relation 2 as it is at the multiples of 5 s since 1970",
        "samples of relation",
    ),
    "SELECT sum(x) AS total FROM cars MODEL (x = x)": (
        "sum(cars.x) (the sum of the rows that are there) of relation 1, at each instant",
    ),
    "SELECT id, x FROM lines WHERE x > 3": (
        "segments that the view lines keeps",
        "state: bounded (lines: the segments that are there at an instant)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("query", WORDS)
def test_words(home: Runner, query: str) -> None:
    found = home.explain(query)
    for words in WORDS[query]:
        assert words in found, found


def test_models_of_a_view_are_bounded(home: Runner) -> None:
    """However long the stream below it is: one segment of each key is kept."""
    model = "MODEL (x = x + v*t) FOR 10 SECONDS"
    text = f"SELECT a.id FROM fast a {model}, fast b {model} WHERE a.id < b.id AND a.x < b.x"
    assert "state: bounded (a: a segment of each id; b: a segment" in home.explain(text)


def test_predictions_know_the_keys_of_their_own_sources_alone(home: Runner) -> None:
    text = f"SELECT c.x FROM (SELECT x {LINE}) c WHERE c.x > 3 WITH (release = 'eager')"
    with pytest.raises(NotAvailableYet, match="in the FROM of this SELECT"):
        home.explain(text)


def test_a_subquery_keeps_columns_that_the_select_around_it_reads(home: Runner) -> None:
    """They are narrowed to what is read by the subquery, not by those around it."""
    text = (
        "SELECT RSTREAM c.id, c.y, d.x FROM (SELECT id, x, y FROM cars MODEL (x = x)) c, "
        "cars d MODEL (x = x) WHERE c.id = d.id AND c.x >= d.x AND c.y > 0 SAMPLE EVERY 1 SECOND"
    )
    made = Runner()
    ts = pa.array([0, 1_000_000], pa.timestamp("us", "UTC"))
    made.stream(
        "cars", pa.table({"id": [1, 2], "x": [5.0, 6.0], "y": [0.0, 1.0], "ts": ts}), key=["id"]
    )
    query = made.query(text)
    made.run()
    assert query.results().select(["id", "y", "x"]).to_pylist() == [{"id": 2, "y": 1.0, "x": 6.0}]


@pytest.mark.parametrize(
    ("behind", "words"), [("[RANGE 1 MINUTE]", "a window stands before"), ("c", "write s c MODEL")]
)
def test_what_stands_before_model_is_said(home: Runner, behind: str, words: str) -> None:
    with pytest.raises(ParseError, match=words):
        home.explain(f"SELECT id FROM cars MODEL (x = x) {behind}")


@pytest.mark.parametrize(("method", "degree"), [("hull", 2), ("swing", 0), ("mid-range", 1)])
def test_a_way_to_fit_that_does_not_suit_the_degree_is_refused(
    home: Runner, method: str, degree: int
) -> None:
    with pytest.raises(BindError, match=f"not {degree}"):
        home.explain(
            f"SELECT id FROM cars MODEL (FIT x DEGREE {degree} WITHIN 1) WITH (fit = '{method}')"
        )
