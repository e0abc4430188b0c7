"""The acceptance list of the StreaMon note: items 1, 2, 4, 5 and 22, against brute force.

Nothing here uses the reference evaluator: windows, snapshots and joins are computed again, in a
few lines, from the definitions of the note.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from thalweg.testing.compare import ResultRow, from_table
from thalweg.testing.runner import Runner

Row = tuple[int, int, int]  # ts, k, v
Bag = Counter[tuple[Any, ...]]
Content = Callable[[int], list[Row]]
HOW: list[dict[str, Any]] = [
    {},
    {"epochs": 5, "buckets": 3, "switches": 1},
    {"epochs": 9, "buckets": 2, "restarts": (2, 5)},
]


def table(rows: Sequence[Row]) -> pa.Table:
    ts, k, v = zip(*rows, strict=True) if rows else ((), (), ())
    return pa.table({
        "ts": pa.array(ts, pa.timestamp("us", "UTC")),
        "k": pa.array(k, pa.int64()),
        "v": pa.array(v, pa.int64()),
    })  # fmt: skip


def random_rows(seed: int, count: int, span: int, keys: int = 3) -> list[Row]:
    rng = Random(f"streamon {seed}")
    rows = [(rng.randint(0, span), rng.randint(1, keys), rng.randint(1, 4)) for _ in range(count)]
    return sorted(rows)


def emitted(sql: str, streams: dict[str, Sequence[Row]], **how: Any) -> list[ResultRow]:
    runner = Runner(**how)
    for name, rows in streams.items():
        runner.stream(name, table(rows))
    query = runner.query(sql)
    runner.run()
    return from_table(query.results())


def at(rows: Iterable[ResultRow], instant: int, sign: int = 1) -> Bag:
    return Counter(values for ts, s, values in rows if ts == instant and s == sign)


# --- the windows of section 1.2, as they are written there


def window(kind: str, rows: Sequence[Row], size: int) -> Content:
    """The content of a window at an instant; rows in stream order."""

    def content(now: int) -> list[Row]:
        seen = [r for r in rows if r[0] <= now]
        if kind == "RANGE":
            return [r for r in seen if r[0] >= now - size]
        if kind == "NOW":
            return [r for r in seen if r[0] == now]
        if kind == "ROWS":
            return seen[-size:]
        if kind == "PARTITION":
            keys = sorted({r[1] for r in seen})
            return [r for k in keys for r in [s for s in seen if s[1] == k][-size:]]
        return seen

    return content


def clause(kind: str, size: int) -> str:
    return {
        "RANGE": f"[RANGE {size} MICROSECONDS]",
        "NOW": "[NOW]",
        "ROWS": f"[ROWS {size}]",
        "PARTITION": f"[PARTITION BY k ROWS {size}]",
        "UNBOUNDED": "[UNBOUNDED]",
    }[kind]


WINDOWS = [("RANGE", 7), ("RANGE", 1), ("NOW", 0), ("ROWS", 1), ("ROWS", 4), ("PARTITION", 1),
           ("PARTITION", 3), ("UNBOUNDED", 0)]  # fmt: skip


@dataclass(frozen=True)
class View:
    """A relation by brute force: its bag at every instant from just before the first row on."""

    bag: Callable[[int], Bag]
    first: int
    last: int

    def changes(self) -> Iterable[tuple[int, Bag, Bag]]:
        """(instant, what appears, what vanishes), wherever something does."""
        for now in range(self.first, self.last + 1):
            before, after = self.bag(now - 1), self.bag(now)
            if before != after:
                yield now, after - before, before - after


def assert_maintained(view: View, rows: list[ResultRow]) -> None:
    """The signed rows of a relation are exactly the changes of the view."""
    expected = Counter[ResultRow]()
    for now, plus, minus in view.changes():
        expected.update({(now, 1, values): n for values, n in plus.items()})
        expected.update({(now, -1, values): n for values, n in minus.items()})
    assert Counter(rows) == expected


# --- #1


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize(("kind", "size"), WINDOWS)
def test_windows_at_every_instant(kind: str, size: int, how: dict[str, Any]) -> None:
    """streamon #1: every window matches a naive oracle at every instant."""
    for seed in range(4):
        rows = random_rows(seed, 40, 30)
        content = window(kind, rows, size)
        view = View(lambda now, c=content: Counter((k, v) for _, k, v in c(now)), 0, rows[-1][0])
        found = emitted(f"SELECT k, v FROM s {clause(kind, size)}", {"s": rows}, **how)
        assert_maintained(view, found)


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_row_window_emits_plus_then_minus(size: int, how: dict[str, Any]) -> None:
    """streamon #1: [ROWS N], once full, emits the newcomer and the oldest with one timestamp."""
    rows = [(10 * i, 1, i) for i in range(8)]
    found = emitted(f"SELECT v FROM s [ROWS {size}]", {"s": rows}, **how)
    for i, (ts, _, v) in enumerate(rows):
        assert at(found, ts) == Counter([(v,)])
        leaving = [(rows[i - size][2],)] if i >= size else []
        assert at(found, ts, -1) == Counter(leaving)
    assert {ts for ts, _, _ in found} == {ts for ts, _, _ in rows}


def test_a_range_is_closed_at_both_ends() -> None:
    """streamon #1: a row of ts 10 is in [RANGE 5] from 10 to 15 and leaves at 16."""
    found = emitted("SELECT v FROM s [RANGE 5 MICROSECONDS]", {"s": [(10, 1, 7), (30, 1, 8)]})
    assert found == [(10, 1, (7,)), (16, -1, (7,)), (30, 1, (8,))]


def test_now_is_one_instant() -> None:
    """streamon #1: [NOW] is [RANGE 0]."""
    rows = random_rows(5, 30, 20)
    now = emitted("SELECT k, v FROM s [NOW]", {"s": rows})
    assert Counter(now) == Counter(emitted("SELECT k, v FROM s [RANGE 0 SECONDS]", {"s": rows}))


def test_what_comes_and_goes_in_one_instant_was_never_there() -> None:
    """streamon #1: three rows of one instant through [ROWS 1] leave one change."""
    found = emitted("SELECT v FROM s [ROWS 1]", {"s": [(5, 1, 1), (5, 1, 2), (5, 1, 3)]})
    assert found == [(5, 1, (3,))]


# --- #2


SNAPSHOTS = {
    "range": "{} k, v FROM s [RANGE 6 MICROSECONDS]",
    "rows": "{} k, v FROM s [ROWS 3]",
    "partition": "{} v FROM s [PARTITION BY k ROWS 1]",
    "now": "{} k FROM s [NOW]",
    "filter": "{} k FROM s [RANGE 4 MICROSECONDS] WHERE v > 1",
    "join": "{} a.v, b.v AS w FROM s [RANGE 5 MICROSECONDS] a, r [ROWS 4] b WHERE a.k = b.k",
    "aggregate": "{} k, count(*) AS c, sum(v) AS t FROM s [RANGE 6 MICROSECONDS] GROUP BY k",
    "everything": "{} count(*) AS c, max(v) AS m FROM s [RANGE 3 MICROSECONDS]",
    "slide": "{} k, v FROM s [RANGE 6 MICROSECONDS SLIDE 4 MICROSECONDS]",
}


def snapshots(rows: list[ResultRow], instants: Iterable[int]) -> dict[int, Bag]:
    """The relation at each instant: the sum of its signed rows."""
    found: dict[int, Bag] = {}
    for now in instants:
        bag: Bag = Counter()
        for ts, sign, values in rows:
            if ts <= now:
                bag[values] += sign
        assert min(bag.values(), default=0) >= 0
        found[now] = +bag
    return found


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("name", SNAPSHOTS)
def test_streams_are_differences_of_snapshots(name: str, how: dict[str, Any]) -> None:
    """streamon #2: Istream, Dstream and Rstream against bag differences of snapshots."""
    rows = {"s": random_rows(1, 35, 25), "r": random_rows(2, 35, 25)}
    text = SNAPSHOTS[name]
    used = rows if "r [" in text else {"s": rows["s"]}
    relation, istream, dstream, rstream = (
        emitted(text.format(f"SELECT {word}"), used, **how)
        for word in ("", "ISTREAM", "DSTREAM", "RSTREAM")
    )
    arrivals = {ts for stream in used.values() for ts, _, _ in stream}
    instants = range(min(arrivals), max(arrivals) + 6)
    states = snapshots(relation, [min(arrivals) - 1, *instants])
    if name == "slide":
        arrivals = {now for now in instants if now % 4 == 0 and now <= max(arrivals) + 4}
    for now in instants:
        before, after = states[now - 1], states[now]
        assert at(istream, now) == after - before
        assert at(dstream, now) == before - after
        assert at(rstream, now) == (after if now in arrivals else Counter())


# --- #4


def shuffled(rows: Sequence[Row], skew: int, rng: Random) -> list[Row]:
    """An order of arrival in which no row is more than `skew` behind one before it."""
    waiting, arrived = sorted(rows), []
    while waiting:
        allowed = [i for i, r in enumerate(waiting) if r[0] <= waiting[0][0] + skew]
        arrived.append(waiting.pop(rng.choice(allowed)))
    return arrived


@pytest.mark.parametrize("batch", [1, 3, 10])
@pytest.mark.parametrize("skew", [0, 1, 4, 15])
def test_nothing_leaves_before_it_is_safe(skew: int, batch: int) -> None:
    """streamon #4: with skew ≤ δ output is sorted; after τ exactly what is before τ-δ is out."""
    rng = Random(f"skew {skew} {batch}")
    rows = shuffled(random_rows(skew, 60, 50), skew, rng)
    runner = Runner()
    runner.stream("s", table(rows), lateness=skew)
    released: list[ResultRow] = []
    query = runner.query("SELECT k, v FROM s", callback=lambda t: released.extend(from_table(t)))
    latest = -1
    for i in range(0, len(rows), batch):
        report = runner.feed({"s": table(rows[i : i + batch])})
        latest = max(latest, *(r[0] for r in rows[i : i + batch]))
        safe = Counter((ts, 1, (k, v)) for ts, k, v in rows if ts < latest - skew)
        assert Counter(released) == safe
        assert report is not None
        assert report.late == 0
    runner.close()
    stamps = [ts for ts, _, _ in released]
    assert stamps == sorted(stamps)
    assert Counter(released) == Counter((ts, 1, (k, v)) for ts, k, v in rows)
    assert runner.rejects("s").num_rows == 0
    assert query.stats()["streams"]["s"]["late"] == 0


def test_two_streams_wait_for_the_slower_one() -> None:
    """streamon #4: with two inputs nothing is released that either could still precede."""
    runner = Runner()
    for name, lateness in (("s", 0), ("r", 3)):
        runner.stream(name, table([]), lateness=lateness)
    released: list[ResultRow] = []
    runner.query(
        "SELECT ISTREAM a.v, b.v AS w FROM s [UNBOUNDED] a, r [UNBOUNDED] b WHERE a.k = b.k "
        "WITH (unbounded = true)",
        callback=lambda t: released.extend(from_table(t)),
    )
    runner.feed({"s": table([(10, 1, 1), (20, 1, 2)])})
    assert released == []
    runner.feed({"r": table([(12, 1, 5)])})
    assert released == []  # F is 12 - 3
    runner.feed({"r": table([(16, 1, 6)])})
    assert released == [(12, 1, (1, 5))]  # F is 13
    runner.feed({"r": table([(14, 1, 7)])})
    assert released == [(12, 1, (1, 5))]
    runner.close()
    assert Counter(released) == Counter(
        [(12, 1, (1, 5)), (14, 1, (1, 7)), (16, 1, (1, 6)), (20, 1, (2, 5)), (20, 1, (2, 6)),
         (20, 1, (2, 7))]
    )  # fmt: skip
    assert [ts for ts, _, _ in released] == sorted(ts for ts, _, _ in released)


# --- #5 (the plans themselves: tests/plan/test_rewrites.py)


@pytest.mark.parametrize(("kind", "size"), WINDOWS)
def test_a_filter_commutes_with_time_windows_only(kind: str, size: int) -> None:
    """streamon #5: filtering the stream first is the same for [RANGE] and not for [ROWS]."""
    rows = random_rows(11, 60, 40)
    first = [r for r in rows if r[2] > 2]
    after = emitted(f"SELECT k, v FROM s {clause(kind, size)} WHERE v > 2", {"s": rows})
    content = window(kind, rows, size)
    view = View(lambda now: Counter((k, v) for _, k, v in content(now) if v > 2), 0, rows[-1][0])
    assert_maintained(view, after)
    before = emitted(f"SELECT k, v FROM s {clause(kind, size)}", {"s": first})
    shorter = [r for r in after if r[0] <= first[-1][0]]
    assert (Counter(before) == Counter(shorter)) == (kind not in ("ROWS", "PARTITION"))


@pytest.mark.parametrize(
    ("clause_", "line"),
    [("[RANGE 5 SECONDS]", "    filter v > 2"), ("[ROWS 5]", "    filter above the window v > 2")],
)
def test_explain_says_where_the_filter_is(clause_: str, line: str) -> None:
    """streamon #5: EXPLAIN shows the filter below [RANGE] and above [ROWS]."""
    runner = Runner()
    runner.stream("s", table([]))
    assert line in runner.explain(f"SELECT k FROM s {clause_} WHERE v > 2").splitlines()


# --- #22


def test_the_example_of_section_3_1() -> None:
    """streamon #22: inserting ⟨1⟩ in R1 gives ⟨1,1,2⟩, ⟨1,1,3⟩ on the way and ⟨1,1,2,2⟩."""
    runner = Runner()
    stamp = pa.timestamp("us", "UTC")
    r1 = pa.table({"ts": pa.array([10], stamp), "a": [1]})
    r2 = pa.table({"ts": pa.array([1, 2, 3], stamp), "a": [1, 1, 2], "b": [2, 3, 3]})
    r3 = pa.table({"ts": pa.array([4], stamp), "b": [2]})
    for name, rows in (("r1", r1), ("r2", r2), ("r3", r3)):
        runner.stream(name, rows)
    query = runner.query(
        "SELECT r1.a AS a1, r2.a AS a2, r2.b AS b2, r3.b AS b3 FROM r1 [RANGE 20 MICROSECONDS], "
        "r2 [RANGE 20 MICROSECONDS], r3 [RANGE 20 MICROSECONDS] WHERE r1.a = r2.a AND r2.b = r3.b"
    )
    assert "Δr1 → r2 on r2.a = r1.a → r3 on r3.b = r2.b" in query.explain()
    runner.run()
    assert from_table(query.results()) == [(10, 1, (1, 1, 2, 2))]


JOINS = {
    2: "a.k = b.k",
    3: "a.k = b.k AND b.v = c.v",
    4: "a.k = b.k AND b.v = c.v AND c.k = d.k",
}


def joined(size: int, contents: Sequence[Content]) -> Callable[[int], Bag]:
    """The join of the windows at an instant, by nested loops."""

    def matches(rows: tuple[Row, ...]) -> bool:
        fits = rows[0][1] == rows[1][1]
        fits = fits and (size < 3 or rows[1][2] == rows[2][2])
        return fits and (size < 4 or rows[2][1] == rows[3][1])

    def bag(now: int) -> Bag:
        partial: list[tuple[Row, ...]] = [()]
        for content in contents:
            partial = [(*p, r) for p in partial for r in content(now)]
        return Counter(tuple(v for _, k, v in rows) for rows in partial if matches(rows))

    return bag


MIXES = [
    ("RANGE", "RANGE", "RANGE", "RANGE"),
    ("RANGE", "ROWS", "NOW", "RANGE"),
    ("ROWS", "PARTITION", "ROWS", "ROWS"),
    ("UNBOUNDED", "RANGE", "ROWS", "PARTITION"),
]


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("mix", MIXES)
@pytest.mark.parametrize("size", [2, 3, 4])
def test_deltas_are_those_of_the_view(size: int, mix: tuple[str, ...], how: dict[str, Any]) -> None:
    """streamon #22: MJoin's + and - elements equal brute-force maintenance of the join view."""
    names = "abcd"[:size]
    lengths = {"RANGE": 6, "ROWS": 3, "PARTITION": 1, "NOW": 0, "UNBOUNDED": 0}
    count = {2: 30, 3: 20, 4: 12}[size]
    for seed in range(2):
        rows = {n: random_rows(seed * 10 + i, count, 18) for i, n in enumerate(names)}
        kinds = list(zip(names, mix[:size], strict=True))
        contents = [window(kind, rows[n], lengths[kind]) for n, kind in kinds]
        last = max(r[-1][0] for r in rows.values())
        view = View(joined(size, contents), 0, last)
        sources = ", ".join(f"s{n} {clause(kind, lengths[kind])} {n}" for n, kind in kinds)
        items = ", ".join(f"{n}.v AS {n}" for n in names)
        found = emitted(
            f"SELECT {items} FROM {sources} WHERE {JOINS[size]} WITH (unbounded = true)",
            {f"s{n}": r for n, r in rows.items()},
            **how,
        )
        assert_maintained(view, found)


def test_an_expiry_takes_every_result_of_the_row_along() -> None:
    """streamon #22: when a row leaves its window, all it was part of leaves with it, once."""
    rows = {
        "a": [(0, 1, 1), (3, 1, 2), (40, 9, 9)],
        "b": [(1, 1, 7), (2, 1, 8)],
    }
    found = emitted(
        "SELECT a.v, b.v AS w FROM a [RANGE 10 MICROSECONDS], b [RANGE 5 MICROSECONDS] "
        "WHERE a.k = b.k",
        rows,
    )
    assert Counter(found) == Counter([
        (1, 1, (1, 7)), (2, 1, (1, 8)), (3, 1, (2, 7)), (3, 1, (2, 8)),
        (7, -1, (1, 7)), (7, -1, (2, 7)), (8, -1, (1, 8)), (8, -1, (2, 8)),
    ])  # fmt: skip


def test_a_row_may_join_itself_and_is_counted_once() -> None:
    """streamon #22: a self-join pairs every row with itself exactly once."""
    found = emitted("SELECT a.v, b.v AS w FROM s [NOW] a, s [NOW] b WHERE a.k = b.k",
                    {"s": [(1, 1, 5), (1, 1, 6), (4, 1, 7)]})  # fmt: skip
    plus = Counter(values for _, sign, values in found if sign == 1)
    assert plus == Counter([(5, 5), (5, 6), (6, 5), (6, 6), (7, 7)])
