"""Text that is no UTF-8 rejects its row when it is taken in, and fails no query."""

from __future__ import annotations

import pyarrow as pa
import pytest

from thalweg.testing import Runner

BAD = b"\xff\xfe"


def stamps(count: int) -> pa.Array:
    return pa.array(range(count), pa.timestamp("us", "UTC"))


def rows(texts: list[bytes | None]) -> pa.Table:
    text = pa.array(texts, pa.binary()).view(pa.string())
    return pa.table({"s": text, "b": pa.array(texts, pa.binary()), "ts": stamps(len(texts))})


@pytest.mark.parametrize("epochs", [1, 4])
def test_a_row_with_unreadable_text_is_rejected_and_the_others_go_on(epochs: int) -> None:
    runner = Runner(epochs=epochs)
    runner.stream("t", rows([b"a", BAD, None, "ä".encode()]))
    query = runner.query("SELECT upper(s) AS u FROM t WHERE s IS NULL OR s LIKE '%'", "q")
    runner.run()
    assert query.results()["u"].to_pylist() == ["A", None, "Ä"]
    (rejected,) = runner.rejects("t").to_pylist()
    assert rejected["__reason"] == "s is no UTF-8 text"
    assert rejected["s"] == r"\xff\xfe"
    assert query.stats()["streams"]["t"]["rejected"] == 1


@pytest.mark.parametrize("epochs", [1, 3])
def test_bytes_that_are_no_text_cannot_be_cast_to_it(epochs: int) -> None:
    table = rows([b"a", b"b", b"c"]).drop_columns(["s"])
    table = table.set_column(0, "b", pa.array([b"a", BAD, b"c"], pa.binary()))
    runner = Runner(epochs=epochs)
    runner.stream("t", table)
    strict = runner.query("SELECT upper(CAST(b AS STRING)) AS u FROM t", "q")
    safe = runner.query("SELECT TRY_CAST(b AS STRING) AS u FROM t", "r")
    joined = runner.query("SELECT b || '!' AS u, length(b) AS n FROM t", "j")
    chosen = runner.query("SELECT b FROM t WHERE upper(CAST(b AS STRING)) <> 'A'", "w")
    kept = runner.query("SELECT CAST(CAST(b AS STRING) AS BINARY) AS u FROM t", "k")
    runner.run()
    assert strict.results()["u"].to_pylist() == ["A", "C"]
    assert strict.rejects()["reason"].to_pylist() == ["the text is no UTF-8"]
    assert safe.results()["u"].to_pylist() == ["a", None, "c"]
    assert joined.results()["u"].to_pylist() == ["a!", "c!"]
    assert joined.rejects()["reason"].to_pylist() == ["the text is no UTF-8"]
    assert chosen.results()["b"].to_pylist() == [b"c"]
    assert chosen.rejects()["reason"].to_pylist() == ["the text is no UTF-8"]
    assert kept.results()["u"].to_pylist() == [b"a", b"c"]


def test_an_error_of_unreadable_bytes_outweighs_null_beside_it() -> None:
    names = pa.array([None, "y", "y"])
    table = pa.table({"b": [BAD, BAD, b"x"], "n": names, "ts": stamps(3)})
    runner = Runner()
    runner.stream("t", table)
    query = runner.query("SELECT trim(CAST(b AS STRING), n) AS c FROM t", "q")
    runner.run()
    assert query.results()["c"].to_pylist() == ["x"]
    assert query.rejects().num_rows == 2
