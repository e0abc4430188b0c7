"""The handle of a query tells what its query is, or was."""

from __future__ import annotations

from summing import SUMS, runner


def test_the_handle_of_a_dropped_query_still_tells_what_it_was() -> None:
    made = runner()
    query = made.query(SUMS, "q")
    schema, plan, explained = query.schema, query.plan, query.explain()
    query.drop()
    made.query("SELECT v FROM s [RANGE 5 MICROSECONDS]", "q")
    assert query.status == "dropped"
    assert (query.schema, query.plan, query.explain()) == (schema, plan, explained)
