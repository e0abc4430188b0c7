"""What lasts is drawn as far as rows are known, and nothing lies outside the frame."""

from __future__ import annotations

import re

import pyarrow as pa

from thalweg.models.picture import LEFT, RIGHT, WIDTH
from thalweg.testing.runner import Runner


def test_a_segment_that_lasts_reaches_to_the_newest_row() -> None:
    runner = Runner()
    ts = pa.array([i * 1_000_000 for i in range(90)], pa.timestamp("us", "UTC"))
    rows = {"id": ["a"] * 90, "x": [float(i) for i in range(90)], "ts": ts}
    runner.stream("s", pa.table(rows), key=["id"], retain="1 day")
    query = runner.query("SELECT id, x FROM s MODEL (FIT x DEGREE 1 WITHIN 1)")
    runner.run()
    svg = query.plot().svg
    assert "s.x of 1 key<" in svg
    drawn = [float(x) for x in re.findall(r'<circle cx="([\d.]+)"', svg)]
    assert len(drawn) == 90 + query.models().num_rows
    assert max(drawn) <= WIDTH - RIGHT
    ends = [
        max(map(float, re.findall(r"([\d.]+),", p)))
        for p in re.findall(r'polyline points="([^"]+)"', svg)
    ]
    assert min(drawn) >= LEFT
    assert max(ends) == WIDTH - RIGHT
