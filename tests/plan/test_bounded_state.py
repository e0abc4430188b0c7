"""Queries whose state would grow for ever are refused unless that is wanted."""

from __future__ import annotations

import pytest

from thalweg.errors import UnboundedState
from trade_rows import runner_over


@pytest.mark.parametrize(
    "text",
    [
        "SELECT count(DISTINCT qty) AS n FROM t",
        "SELECT median(price) AS n FROM t",
        "SELECT t.sym FROM t FULL JOIN c ON t.sym = c.sym",
        "SELECT date_trunc('minute', ts) AS m, count(*) AS n FROM t "
        "WHERE sym IN (SELECT sym FROM c) GROUP BY date_trunc('minute', ts)",
    ],
)
def test_what_keeps_values_for_ever_needs_consent(text: str) -> None:
    with pytest.raises(UnboundedState):
        runner_over().query(text)
