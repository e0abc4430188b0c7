"""DROP STREAM: nothing is left of a stream that nobody reads, and its name is free."""

from __future__ import annotations

import pytest
from timed_rows import batch, runner

from thalweg.errors import ConfigError, ThalwegError, UnknownName


def test_a_stream_is_dropped() -> None:
    made = runner("s", "r")
    made.query("SELECT v FROM s", "q")
    made.feed({"s": batch((1, 1)), "r": batch((1, 1))})
    with pytest.raises(ThalwegError, match="q"):
        made.sql("DROP STREAM s")  # while it is read
    made.sql("DROP QUERY q; DROP STREAM s")
    assert "s" not in made.core.catalog.streams
    assert "s" not in made.core.state.streams
    with pytest.raises(UnknownName):
        made.query("SELECT v FROM s")
    made.stream("s", batch(), lateness="5 seconds")  # another definition of the name
    made.feed({"s": batch((5, 5))})
    assert made.query("SELECT v FROM s", "q").stats()["streams"]["s"]["rows"] == 1


def test_its_files_are_deleted() -> None:
    made = runner("s")
    made.feed({"s": batch((1, 1), (2, 2))})
    made.sql("DROP STREAM s")
    assert not [n for n in made.storage.files if n.startswith("log/")]


def test_rows_that_were_read_before_it_was_dropped_are_left_out() -> None:
    """They lie in the log, and another stream of the name may be defined by then."""
    made = runner("s", "r")
    waiting = made.entry({"s": batch((1, 1))})
    made.core.state.next_seq += 1  # as another entry after it would be
    made.sql("DROP STREAM s")
    made.core.state.next_seq -= 1
    made.stream("s", batch(), lateness="5 seconds")
    query = made.query("SELECT v FROM s", "q")
    made.epoch([waiting])
    made.close()
    assert query.results().num_rows == 0
    assert made.core.state.dropped == {}


@pytest.mark.parametrize("name", ["SysStream", "s.rejects", "nothing"])
def test_what_is_no_stream_of_the_users_is_not_dropped(name: str) -> None:
    made = runner("s")
    made.query("SELECT entity FROM SysStream [NOW]")
    with pytest.raises((ConfigError, UnknownName)):
        made.session.services.streams.drop(name)


def test_rejects_that_are_read_hold_a_stream() -> None:
    made = runner("s")
    made.query("SELECT reason FROM s.rejects [NOW]", "q")
    with pytest.raises(ThalwegError, match="q reads"):
        made.sql("DROP STREAM s")


def test_a_view_is_dropped_as_a_view() -> None:
    made = runner("s")
    made.sql("CREATE VIEW w RETAIN 1 HOUR AS SELECT v FROM s")
    with pytest.raises(ConfigError, match="DROP VIEW w"):
        made.sql("DROP STREAM w")
