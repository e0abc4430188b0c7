"""The contract: what ERROR and WITHIN promise (`pulse.md` 7, 16.3.4-16.3.6, 17.6, 17.7, 17.10,
17.11, 17.18): at tuple instants 100 % of the values are within the bound; sets are sure or maybe.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pv
import pyarrow.parquet as pq
import pytest
from model_runs import MS, Relation, S, counters, loaded, models, play, relation, rows_of, table

DATA = Path("/work/shared/data")
UTC = pa.timestamp("us", "UTC")
SLACK = 1 + 1e-9


def values_at(found: list[dict[str, object]], key: str, column: str, stamps: np.ndarray) -> object:
    """The curve of a key at some instants from `q.models()`; NaN where it has none."""
    mine = [m for m in found if m["id"] == key]
    starts = np.array([m["start"] for m in mine])
    ends = np.array([1 << 62 if m["end"] is None else m["end"] for m in mine])
    width = max(len(m[column]) for m in mine)  # type: ignore[arg-type]
    curves = np.zeros((len(mine), width))
    for i, m in enumerate(mine):
        curves[i, : len(m[column])] = m[column]  # type: ignore[arg-type]
    owner = np.searchsorted(starts, stamps, side="right") - 1
    seconds = (stamps - starts[owner]) / S
    got = np.zeros(len(stamps))
    for power in range(width - 1, -1, -1):
        got = got * seconds + curves[owner, power]
    got[(owner < 0) | (stamps >= ends[owner])] = np.nan
    return got


def as_stream(keys: list[str], stamps: np.ndarray, **columns: np.ndarray) -> pa.Table:
    data = {"id": pa.array(keys, pa.string()), **{c: pa.array(v) for c, v in columns.items()}}
    return pa.table({**data, "ts": pa.array(stamps, UTC)}).sort_by("ts")


def beyond(rows: pa.Table, later: int) -> pa.Table:
    """With a last row, of no value, that makes time pass."""
    last = pc.max(rows["ts"].cast(pa.int64())).as_py() + later
    end = {c: [None] for c in rows.column_names} | {"id": ["~"], "ts": [last]}
    return pa.concat_tables([rows, pa.table(end, schema=rows.schema)])


def check_all(rows: pa.Table, column: str, model: str, bound: float, **how: object) -> int:
    """All tuples of all keys against the curve: within the bound, 100 %. Equal stamps of one key
    that are wider than twice the bound are outside the contract but the last (17.19)."""
    query = play(f"SELECT id, {column} FROM s {model}", {"s": beyond(rows, 8 * 86_400 * S)}, **how)
    found = models(query)
    ids = np.array(rows["id"].to_pylist())
    stamps = np.array(rows["ts"].cast(pa.int64()))
    values = rows[column].to_numpy()
    for key in np.unique(ids):
        mine = (ids == key) & np.isfinite(values)
        if mine.any():
            check_key(found, str(key), column, stamps[mine], values[mine], bound)
    return len(found)


def check_key(
    found: list[dict[str, object]],
    key: str,
    column: str,
    stamps: np.ndarray,
    values: np.ndarray,
    bound: float,
) -> None:
    got = values_at(found, key, column, stamps)
    assert not np.isnan(got).any(), key  # type: ignore[call-overload]
    off = np.abs(got - values)  # type: ignore[operator]
    allowed = bound * SLACK + 1e-9 * np.abs(values)
    wrong = off > allowed
    for at in np.unique(stamps[wrong]):
        here = values[stamps == at]
        wide = here.max() - here.min() > 2 * bound
        # of tuples at one instant that are wider apart than 2e, one is met
        assert wide, (key, at, off[stamps == at])
        assert (off[stamps == at] <= allowed[stamps == at]).any(), (key, at)


def walks(points: int, keys: int = 5) -> pa.Table:
    """Random walks at unequal times."""
    rng = np.random.default_rng(21)
    columns: dict[str, list[np.ndarray]] = {"x": [], "v": [], "ts": []}
    names: list[str] = []
    for key in range(keys):
        names += [f"k{key}"] * points
        steps = rng.integers(1, 400, points) * MS
        columns["ts"].append(np.cumsum(steps))
        columns["x"].append(np.cumsum(rng.normal(size=points)))
        columns["v"].append(rng.normal(size=points))
    made = {c: np.concatenate(v) for c, v in columns.items()}
    return as_stream(names, made.pop("ts"), **made)


@pytest.mark.parametrize("bound", [0.1, 1.0, 10.0])
@pytest.mark.parametrize(
    "model",
    [
        "MODEL (x = x) ERROR x WITHIN {}",
        "MODEL (x = x + v*t) FOR 3 SECONDS ERROR x WITHIN {}",
        "MODEL (FIT x DEGREE 0 WITHIN {})",
        "MODEL (FIT x DEGREE 1 WITHIN {} EVERY 5 SECONDS)",
        "MODEL (FIT x DEGREE 1 WITHIN {}) WITH (fit = 'swing')",
        "MODEL (FIT x DEGREE 2 WITHIN {})",
        "MODEL (FIT x DEGREE 4 WITHIN {})",
    ],
)
def test_random_walks(model: str, bound: float) -> None:
    check_all(walks(2_000), "x", model.format(bound), bound, epochs=4, buckets=2)


def test_wider_bounds_need_no_more_segments() -> None:
    """16.5, what must hold: violations are monotone in the bound."""
    rows = walks(2_000)
    counts = [check_all(rows, "x", f"MODEL (x = x) ERROR x WITHIN {b}", b)
              for b in (0.01, 0.1, 1.0, 10.0)]  # fmt: skip
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > 2 * counts[-1]


@pytest.mark.parametrize(
    ("column", "bound", "model"),
    [
        ("latitude", 1e-3, "MODEL (FIT latitude DEGREE 1 WITHIN 0.001)"),
        ("altitude", 100.0, "MODEL (FIT altitude DEGREE 1 WITHIN 100)"),
        ("altitude", 100.0, "MODEL (altitude = altitude + vertical_rate/60*t) FOR 1 MINUTE "
                            "ERROR altitude WITHIN 100"),
    ],
)  # fmt: skip
def test_tracks_of_aircraft(column: str, bound: float, model: str) -> None:
    path = DATA / "adsb" / "switzerland.parquet"
    if not path.exists():
        pytest.skip("the shared ADS-B data are not here")
    rows = pq.read_table(path).slice(0, 40_000)
    stamps = np.array(rows["timestamp"].cast(pa.timestamp("us")).cast(pa.int64()))
    given = {c: rows[c].to_numpy() for c in ("latitude", "altitude", "vertical_rate")}
    stream = as_stream(rows["icao24"].to_pylist(), stamps, **given)
    if "vertical_rate" in model:
        usable = pc.and_(pc.is_finite(stream["vertical_rate"]), pc.is_finite(stream["altitude"]))
        stream = stream.filter(usable)
    check_all(stream, column, model, bound, epochs=3)


def test_temperatures_of_transformers() -> None:
    path = DATA / "ett" / "ETTh1.csv"
    if not path.exists():
        pytest.skip("the shared ETT data are not here")
    rows = pv.read_csv(path)
    stamps = np.array(rows["date"].cast(pa.timestamp("us")).cast(pa.int64()))
    given = rows["OT"].to_numpy()
    stream = as_stream(["ot"] * len(given), stamps, x=given)
    for bound in (0.5, 5.0):
        check_all(stream, "x", f"MODEL (FIT x DEGREE 1 WITHIN {bound} EVERY 1 DAY)", bound)


def test_loads_of_the_benchmark_of_numenta() -> None:
    paths = sorted((DATA / "nab" / "realTraffic").glob("speed*.csv"))
    if not paths:
        pytest.skip("the shared NAB data are not here")
    for path in paths:
        rows = pv.read_csv(path)
        stamps = np.array(rows["timestamp"].cast(pa.timestamp("us")).cast(pa.int64()))
        given = rows["value"].to_numpy().astype(float)
        stream = as_stream([path.stem] * len(given), stamps, x=given)
        check_all(stream, "x", "MODEL (FIT x DEGREE 1 WITHIN 2 EVERY 6 HOURS)", 2.0)
        check_all(stream, "x", "MODEL (x = x) ERROR x WITHIN 2", 2.0)


# --- sure and maybe ---------------------------------------------------------------------------


def falling() -> dict[str, pa.Table]:
    """10 - 2t."""
    return {"s": table("id x v", ("a", 10.0, -2.0, 0), until=30 * S)}


LINE = "MODEL (x = x + v*t) FOR 10 SECONDS"


def test_without_error_there_is_no_maybe() -> None:
    """17.7: without ERROR the answer is the model's."""
    query = play(f"SELECT id, x FROM s {LINE} WHERE x < 4", falling())
    assert "__maybe" not in query.results().column_names


def test_with_error_the_answer_is_the_superset() -> None:
    """17.7: solved at c +- eps: x - 0.5 < 4 from 2.75 on, sure when x + 0.5 < 4, from 3.25 on."""
    answer = relation(f"SELECT id, x FROM s {LINE} WHERE x < 4 ERROR x WITHIN 0.5", falling())
    ((since, until),) = answer.spans()
    assert abs(since - 2_750_001) <= 1
    assert until == 10 * S
    for at, maybe in ((2_760 * MS, True), (3_240 * MS, True), (3_260 * MS, False), (9 * S, False)):
        assert answer.one(at)["__maybe"] is maybe, at


@pytest.mark.parametrize(
    ("condition", "maybe", "sure"),
    [
        ("x >= 4", [(2.751, 3.249)], [(0, 2.749)]),
        ("NOT x < 4", [(2.751, 3.249)], [(0, 2.749)]),
        ("x = 4", [(2.751, 3.249)], []),
        ("x <> 4", [(2.751, 3.249)], [(0, 2.749), (3.251, 9.99)]),
        ("x < 4 OR x > 6", [(1.751, 2.249), (2.751, 3.249)], [(0, 1.749), (3.251, 9.99)]),
        ("x BETWEEN 2 AND 6", [(1.751, 2.249), (3.751, 4.249)], [(2.251, 3.749)]),
        ("x < 100", [], [(0, 9.99)]),
        ("x > 100", [], []),
        ("abs(x) > 9", [(0.251, 0.749), (9.251, 9.749)], [(0, 0.249), (9.751, 9.99)]),
    ],
)
def test_maybe_of_conditions(
    condition: str, maybe: list[tuple[float, float]], sure: list[tuple[float, float]]
) -> None:
    """17.7 through the boolean algebra: there for certain, perhaps, or not at all."""
    sql = f"SELECT id, x FROM s {LINE} WHERE {condition} ERROR x WITHIN 0.5"
    answer = relation(sql, falling())
    for milli in range(0, 9_990, 10):
        at = milli * MS + 500
        rows = answer.at(at)
        seconds = at / S
        if any(a <= seconds <= b for a, b in maybe):
            assert [r["__maybe"] for r in rows] == [True], at
        elif any(a <= seconds <= b for a, b in sure):
            assert [r["__maybe"] for r in rows] == [False], at
        elif not any(abs(seconds - e) <= 0.0021 for span in maybe + sure for e in span):
            assert rows == [], at


def noisy(seed: int, bound: float) -> tuple[dict[str, pa.Table], dict[str, pa.Table]]:
    """Tuples as exact as can be, and the same lines as models see them."""
    rng = np.random.default_rng(seed)
    rows = []
    for key in ("a", "b", "c"):
        x, v, at = rng.uniform(-3, 3), rng.uniform(-1, 1), 0
        for _ in range(40):
            rows.append((key, float(x), float(v), at))
            step = int(rng.integers(100, 700)) * MS
            x += v * step / S + rng.uniform(-bound, bound) * 0.6
            at += step
            if rng.random() < 0.1:
                v = rng.uniform(-1, 1)
    rows.sort(key=lambda r: r[-1])
    return {"s": table("id x v", *rows, until=60 * S)}, {"s": table("id x v", *rows, until=60 * S)}


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("condition", ["x > 0.3", "x BETWEEN -1 AND 1", "NOT (x < 0 OR x > 2)"])
def test_every_row_of_exact_values_is_there(seed: int, condition: str) -> None:
    """16.3.6, "no sure result missing": at tuple instants, where the exact value satisfies the
    condition there is a row, at least maybe; where it does not no row is sure."""
    data, _ = noisy(seed, 0.4)
    sql = f"SELECT id, x FROM s MODEL (x = x + v*t) WHERE {condition} ERROR x WITHIN 0.4"
    query = play(sql, data, epochs=3)
    answer = Relation(rows_of(query.results()))
    tests = {
        "x > 0.3": lambda x: x > 0.3,
        "x BETWEEN -1 AND 1": lambda x: -1 <= x <= 1,
        "NOT (x < 0 OR x > 2)": lambda x: 0 <= x <= 2,
    }
    for row in data["s"].to_pylist()[:-1]:
        at = int(row["ts"].timestamp() * S + 0.5)
        mine = [r for r in answer.at(at) if r["id"] == row["id"]]
        holds = tests[condition](row["x"])
        assert len(mine) <= 1
        assert mine or not holds, (row, "is missing")
        assert holds or not mine or mine[0]["__maybe"], (row, "is there for sure, wrongly")
    assert sum(counters(query.stats(), "absorbed")) > 20


@pytest.mark.parametrize("seed", range(4))
def test_pairs_of_exact_values_are_there(seed: int) -> None:
    """The same for a join: a.x < b.x with both within the bound, at common instants."""
    rng = np.random.default_rng(seed)
    rows = []
    for key in ("a", "b", "c"):
        steps = rng.normal(size=60) * 0.25
        values = np.cumsum(steps).tolist()
        rows += [(key, v, i * 500 * MS) for i, v in enumerate(values)]
    rows.sort(key=lambda r: r[-1])
    data = {"s": table("id x", *rows, until=60 * S)}
    answer = relation(
        "SELECT a.id AS i, b.id AS j, a.x AS x, b.x AS y FROM s AS a MODEL (x = x) JOIN s AS b "
        "MODEL (x = x) ON a.id < b.id WHERE a.x < b.x ERROR a.x WITHIN 0.5, b.x WITHIN 0.5",
        data,
    )
    exact = {(key, at): value for key, value, at in rows}
    for at in range(0, 30 * S, 500 * MS):
        for i, j in (("a", "b"), ("a", "c"), ("b", "c")):
            holds = exact[i, at] < exact[j, at]
            mine = [r for r in answer.at(at) if (r["i"], r["j"]) == (i, j)]
            assert mine or not holds, (at, i, j)
            assert holds or not mine or mine[0]["__maybe"], (at, i, j)


@pytest.mark.parametrize("bound", [0.25, 1.0])
def test_bounds_of_results_hold(bound: float) -> None:
    """7.4: sum L_i * eps_i <= bound: a difference of two models is within the bound at all common
    tuple instants."""
    rng = np.random.default_rng(8)
    stamps = [i * 250 * MS for i in range(120)]
    sides = {n: np.cumsum(rng.normal(size=120) * 0.3).tolist() for n in ("s", "r")}
    data = {
        n: table("id x", *(("a", v, at) for v, at in zip(vs, stamps, strict=True)), until=60 * S)
        for n, vs in sides.items()
    }
    answer = relation(
        "SELECT a.id, 2*a.x - b.x AS m FROM s AS a MODEL (x = x) JOIN r AS b MODEL (x = x) "
        f"ON a.id = b.id ERROR m WITHIN {bound}",
        data,
    )
    for i, at in enumerate(stamps):
        (row,) = answer.at(at)
        assert abs(row["m"] - (2 * sides["s"][i] - sides["r"][i])) <= bound * SLACK


def test_an_average_over_keys_may_use_the_whole_bound() -> None:
    """16.3.5: an average over K keys allows the whole bound, not bound/K: a tuple off by 0.9 of
    four keys is absorbed under 1."""
    rows = [(k, 1.0, 0) for k in "abcd"] + [("a", 1.9, S)]
    data = {"s": table("id x", *rows, until=30 * S)}
    query = play("SELECT avg(x) AS m FROM s MODEL (x = x) ERROR m WITHIN 1", data)
    assert len(models(query)) == 4


def test_distances_have_the_bound_of_their_norm() -> None:
    """17.10: sqrt of a sum of squares has L = 1 in the Euclidean norm: with 0.7 on both attributes
    a distance is within 1 (0.7 * sqrt(2) = 0.99)."""
    rows = [("a", 0.0, 3.0, 0), ("a", 0.6, 3.6, S), ("a", 0.9, 3.9, 2 * S)]
    data = {"s": table("id x y", *rows, until=30 * S)}
    sql = "SELECT id, sqrt(x*x + y*y) AS m FROM s MODEL (x = x, y = y) ERROR m WITHIN 1"
    answer = relation(sql, data)
    for _, x, y, at in rows:
        (row,) = answer.at(at)
        assert abs(row["m"] - (x * x + y * y) ** 0.5) <= 1 + 1e-9


def test_fits_have_the_contract_of_their_within() -> None:
    """17.7: eps is for FIT its WITHIN; with ERROR the set of a fitted query is sure or maybe."""
    rows = walks(500, 2)
    data = {"s": beyond(rows, 120 * S)}
    sql = "SELECT id, x FROM s MODEL (FIT x DEGREE 1 WITHIN 0.5) WHERE x > 1 ERROR x WITHIN 0.5"
    answer = relation(sql, data)
    for row in rows.to_pylist():
        at = int(row["ts"].timestamp() * S + 0.5)
        mine = [r for r in answer.at(at) if r["id"] == row["id"]]
        assert mine or row["x"] <= 1, row
        assert row["x"] > 1 or not mine or mine[0]["__maybe"], row


@pytest.mark.parametrize("keys", [100, 100_000])
def test_work_follows_what_changes(keys: int) -> None:
    """What must hold: equations solved per epoch follow changed segments, not living keys: ten
    tuples of new values, with few or many keys alive."""
    rows = [(f"k{i}", 10.0 + i % 7, -1.0, 0) for i in range(keys)]
    data = {"s": table("id x v", *rows)}
    runner = loaded(data)
    query = runner.query("SELECT id FROM s MODEL (x = x + v*t) WHERE x < 4", name="q")
    runner.feed(data)
    runner.feed({"s": table("id x v", ("k0", 1.0, 1.0, S))})
    before = solved(query)
    news = [(f"k{i}", 20.0, -1.0, 2 * S) for i in range(1, 11)]
    runner.feed({"s": table("id x v", *news)})
    runner.feed({"s": table("id x v", ("k0", 1.0, 1.0, 3 * S))})
    assert 10 <= solved(query) - before <= 40


def solved(query: object) -> int:
    found = counters(query.stats(), "solved") + counters(query.stats(), "equations")  # type: ignore[attr-defined]
    assert found, "stats() count no equations that were solved"
    return max(found)
