"""What commands and scripts commit, and what is refused before anything is."""

from __future__ import annotations

import pytest
from summing import SUMS, epoch, runner

from thalweg.errors import ConfigError, UnknownName
from thalweg.store import manifest


def test_a_change_that_is_refused_commits_nothing() -> None:
    made = runner()
    made.query(SUMS, "q")
    before = epoch(made)
    for statement in ("DROP QUERY nosuch", "ALTER QUERY q AS SELECT v FROM s"):
        with pytest.raises((UnknownName, ConfigError)):
            made.sql(statement)
    assert epoch(made) == before


def test_what_precedes_an_error_in_a_script_is_committed() -> None:
    made = runner()
    made.sql(f"CREATE QUERY a AS {SUMS}; CREATE QUERY b AS {SUMS}")
    with pytest.raises(UnknownName):
        made.sql("DROP QUERY a; DROP QUERY nosuch; DROP QUERY b")
    assert manifest.load(made.storage)[1]["queries"].keys() == {"b"}


def test_a_query_is_refused_before_its_options_are_looked_at() -> None:
    with pytest.raises(UnknownName, match="unknown query nosuch"):
        runner().sql("ALTER QUERY nosuch SET (nonsense = 1)")


def test_resuming_what_runs_waits_for_nothing() -> None:
    made = runner()
    query = made.query(SUMS, "q")
    before = epoch(made)
    query.resume()
    assert epoch(made) == before
