"""A query is admitted only as it was planned."""

from __future__ import annotations

import pyarrow as pa
import pytest
from summing import rows, runner

from thalweg.errors import ConfigError
from thalweg.statements import SelectStatement, parse


def test_what_was_planned_by_other_names_is_refused_again() -> None:
    """A table that begins to change between planning and admitting a query."""
    made = runner()
    made.table("t", pa.table({"k": [0, 1], "g": [1, 2]}))
    text = "SELECT s.v, t.g FROM s [RANGE 9 MICROSECONDS], t WHERE s.k = t.k"
    sql = f"{text} WITH (materialize = 'none')"
    (said,) = parse(sql)
    assert isinstance(said, SelectStatement)
    planned = made.core.registration.plan("q", said.query, said.text, sql)
    made.query(text, "other")
    made.feed({"s": rows(0, 5)})
    made.table("t", pa.table({"k": [0, 1], "g": [3, 4]}))
    with pytest.raises(ConfigError, match="say materialize"):
        made.core.registration.admit(planned)
