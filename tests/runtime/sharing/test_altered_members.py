"""Queries that left those they were run with, and came back with another text."""

from __future__ import annotations

from two_streams import rows

from thalweg.testing.runner import Runner


def test_a_member_that_came_back_has_its_new_text_after_all() -> None:
    """Whoever registers the text it was created with attaches to what it says now."""
    made = Runner(share_from=0)
    made.stream("a", rows())
    made.query("SELECT k FROM a WHERE k = 0", "q")
    made.query("SELECT k FROM a WHERE k = 0", "other")
    made.feed({"a": rows(1, 2, 3)})
    made.queries["q"].alter("SELECT k FROM a WHERE k = 1")
    for at in (4, 7, 10):
        made.feed({"a": rows(at, at + 1, at + 2)})
    assert "q" in made.core.cohorts.by_name
    again = Runner(share_from=0, storage=made.storage)
    again.stream("a", rows())
    again.session.resume()
    query = again.query("SELECT k FROM a WHERE k = 0", "q")
    assert query.text == "SELECT k FROM a WHERE k = 1"
    again.sql("ALTER QUERY q SET (share = 'off')")
    for at in (13, 16, 19):
        again.feed({"a": rows(at, at + 1, at + 2)})
    assert set(query.results()["k"].to_pylist()[1:]) == {1}
