"""What lies where FROM FILES points: refused, or told, before a row is read."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from thalweg.errors import ConfigError, DuplicateName, NotAvailableYet, SourceError, ThalwegError
from thalweg.errors import UnknownName as Unknown
from thalweg.plan.catalog import SourceSpec, StreamDef
from thalweg.plan.logical import Field
from thalweg.plan.types import BIGINT, DOUBLE
from thalweg.runtime.sources.files import list_files, read_file, read_files
from thalweg.runtime.sources.found_files import awaited, find, refuse_files
from thalweg.testing.runner import Runner

FIELDS = (Field("k", BIGINT, True), Field("price", DOUBLE, True))


def stream(folder: object, form: str, **options: object) -> StreamDef:
    spec = SourceSpec("files", str(folder), form, tuple(options.items()))
    return StreamDef("s", FIELDS, None, source=spec)


def why_nothing(given: StreamDef) -> str:
    found = awaited(given)
    assert found is not None
    return found[0]


def put(folder: Path, name: str, text: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)


@pytest.mark.parametrize(
    ("options", "error", "message", "remedy"),
    [
        ("max_files = 3", Unknown, "has no option max_files here", "max_files_per_trigger?"),
        ("GLOBB = '*'", Unknown, "has no option GLOBB here", "did you mean glob?"),
        ("header = true", Unknown, "has no option header here", "known: glob, max_files"),
        ("glob = '*', Glob = 'a*'", DuplicateName, "option Glob stands twice", "keep one"),
        ("glob = 3", ConfigError, "glob = 3 is no pattern of names", "such as"),
        ("max_files_per_trigger = 0", ConfigError, "= 0 is no number of files", "1 or more"),
        ("max_files_per_trigger = true", ConfigError, "= True is no number of files", "1 or more"),
        ("max_files_per_trigger = 'x'", ConfigError, "= x is no number of files", "1 or more"),
    ],
)
def test_options_that_files_have_not_are_refused(
    options: str, error: type[ThalwegError], message: str, remedy: str
) -> None:
    with pytest.raises(error, match=message) as caught:
        Runner().sql(
            "CREATE STREAM s (k BIGINT) TIMESTAMP BY ARRIVAL\n"
            f"FROM FILES 'data' FORMAT csv OPTIONS ({options})"
        )
    assert remedy in str(caught.value.remedy)
    assert caught.value.line == 1


def test_options_of_tables_are_their_own() -> None:
    source = "CREATE TABLE t (k BIGINT) FROM"
    with pytest.raises(Unknown, match="no option max_files_per_trigger here"):
        Runner().sql(f"{source} FILES 'x' FORMAT csv OPTIONS (max_files_per_trigger = 3)")
    with pytest.raises(NotAvailableYet, match="a table cannot be read FROM SPARK"):
        Runner().sql(f"{source} SPARK 'jdbc'")


def test_a_table_takes_the_files_of_its_pattern(tmp_path: Path) -> None:
    put(tmp_path, "a.csv", "k,price\n1,2\n")
    put(tmp_path, "readme.txt", "prices")
    spec = SourceSpec("files", str(tmp_path), "csv", (("GLOB", "*.csv"),))
    assert list_files(spec) == [str(tmp_path / "a.csv")]
    none = SourceSpec("files", str(tmp_path), "csv", (("glob", "*.json"),))
    with pytest.raises(SourceError, match=r"there are no files \*.json under"):
        list_files(none)


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"stream s: there is no folder .*/absent"):
        refuse_files(stream(tmp_path / "absent", "csv"))


def test_another_format_is_refused_and_strange_files_are_not(tmp_path: Path) -> None:
    put(tmp_path, "a.csv.gz", "")
    put(tmp_path, "_done.parquet", "hidden")
    put(tmp_path / "below", "b.parquet", "Spark does not look here")
    with pytest.raises(SourceError, match=r"FORMAT parquet, but .* holds csv") as caught:
        refuse_files(stream(tmp_path, "parquet"))
    assert caught.value.remedy == "say FORMAT csv"
    put(tmp_path, "readme.md", "")
    refuse_files(stream(tmp_path, "parquet"))  # no more "only": parquet may come


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_missing_column_is_refused_with_the_nearest(tmp_path: Path, form: str) -> None:
    if form == "csv":
        put(tmp_path, "a.csv", "k,prize\n1,2.5\n")
    else:
        pq.write_table(pa.table({"k": [1], "prize": [2.5]}), tmp_path / "a.parquet")
    with pytest.raises(SourceError, match=r"a\.\w+ has no column price, which s declares") as found:
        refuse_files(stream(tmp_path, form))
    assert found.value.remedy == "did you mean prize?"
    path = str(tmp_path / f"a.{form}")
    with pytest.raises(SourceError, match="has no column price, which t declares"):
        read_file("t", FIELDS, SourceSpec("files", path, form), path)


def test_a_later_file_without_the_column_is_a_reject_that_says_so(tmp_path: Path) -> None:
    pq.write_table(pa.table({"k": [1], "prize": [2.5]}), tmp_path / "a.parquet")
    (records,) = read_files(stream(tmp_path, "parquet"), [str(tmp_path / "a.parquet")])
    assert records.malformed is not None
    (why,) = records.malformed.to_pylist()
    assert "has no column price" in why


def test_a_file_that_cannot_be_read_is_no_reason_to_refuse(tmp_path: Path) -> None:
    put(tmp_path, "a.parquet", "PAR1 this is no parquet file")
    refuse_files(stream(tmp_path, "parquet"))


def test_why_nothing_comes_yet(tmp_path: Path) -> None:
    given = stream(tmp_path, "csv")
    assert "there is no file *.csv* in" in why_nothing(given)
    put(tmp_path, "a.tsv", "k\n")
    assert "(1 of other names)" in why_nothing(given)
    put(tmp_path, "b.csv", "k,price\n")
    assert awaited(given) is None
    assert "there is no file a*" in why_nothing(stream(tmp_path / "x*", "csv", glob="a*"))


def test_a_column_that_no_record_of_json_has_is_told(tmp_path: Path) -> None:
    put(tmp_path, "a.json", '{"k": 1, "prize": 2}\n{"k": 2}\n')
    given = stream(tmp_path, "json")
    refuse_files(given)  # it may be rare
    what, remedy = awaited(given) or ("", "")
    assert what.endswith("a.json has price: it is NULL")
    assert remedy == "did you mean prize?"


def test_partitions_and_patterns_are_seen_as_spark_sees_them(tmp_path: Path) -> None:
    put(tmp_path / "in" / "day=1", "a.csv", "k,price\n")
    put(tmp_path / "in" / "other", "b.csv", "k,price\n")
    found = find(stream(tmp_path / "in", "csv").source)
    assert found is not None
    assert [Path(p).name for p in found.matching] == ["a.csv"]
    found = find(stream(f"{tmp_path}/in/oth*", "csv").source)
    assert found is not None
    assert [Path(p).name for p in found.matching] == ["b.csv"]
    assert find(stream("elsewhere://bucket/x", "csv").source) is None
    assert find(stream(tmp_path, "csv", glob="{a,b}*").source) is None


def test_a_record_that_is_nested_too_deeply_is_a_reject(tmp_path: Path) -> None:
    deep = "[" * 5_000 + "]" * 5_000
    put(tmp_path, "a.json", f'{{"k": 1, "price": 2}}\n{{"k": {deep}}}\n{deep}\n{{"k": 3}}\n')
    given = stream(tmp_path, "json")
    assert awaited(given) is None
    (records,) = read_files(given, [str(tmp_path / "a.json")])
    reasons = [] if records.malformed is None else records.malformed.to_pylist()
    kept = zip(records.table["k"].to_pylist(), reasons, strict=True)
    assert sorted(k for k, why in kept if why is None) == [1, 3]
    assert [w.split(": ")[1] for w in reasons if w] == ["nested too deeply"] * 2
