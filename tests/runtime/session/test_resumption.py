"""Queries of an earlier run: shown at once, and taken up again."""

from __future__ import annotations

from summing import SUMS, rows, runner

from thalweg.testing import Runner


def test_queries_of_an_earlier_run_are_shown_before_they_go_on() -> None:
    made = runner()
    made.query(SUMS, "own")
    made.query("SELECT k FROM s WHERE k > 1 WITH (share = 'on')", "member")
    for name in ("leader", "dormant"):
        made.query(f"{SUMS.replace('20', '30')} WITH (materialize = 'none')", name)
    made.feed({"s": rows(0, 10)})
    again = Runner(storage=made.storage)
    shown = again.sql("SHOW QUERIES").to_pylist()
    assert {r["name"]: r["coverage"] for r in shown} == dict.fromkeys(
        ("own", "leader", "dormant", "member")
    )
    again.stream("s", rows(0, 1), retain="1 hour")
    again.resume()
    covered = {r["coverage"] for r in again.sql("SHOW QUERIES").to_pylist()}
    assert covered == {"COMPLETE"}
