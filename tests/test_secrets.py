"""Secrets in OPTIONS: named instead of written, and never shown where they are written."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from thalweg.errors import ConfigError, ThalwegError
from thalweg.lang.parsing.parser import parse_query
from thalweg.masking import masked, without_credentials
from thalweg.plan.catalog import SourceSpec
from thalweg.runtime.error_causes import told
from thalweg.runtime.session.client import Client
from thalweg.runtime.state.open_path import claim
from thalweg.runtime.state.stream_definitions import described_source, read_source
from thalweg.runtime.upkeep.inspection import inspect
from thalweg.secrets import Secret, with_values
from thalweg.statements import parse
from thalweg.store.storage import LocalStorage
from thalweg.testing import Runner

WORD = "hunter2"
OPTIONS = (
    f"OPTIONS (password = '{WORD}', 'kafka.sasl.jaas.config' = 'x required password=\"{WORD}\";', "
    f"`fs.s3a.secret.key` = '{WORD}', url = 'jdbc:x://me:{WORD}@host/db', topic = 'trades', "
    f"api_key = {WORD}, 'conn' = 'Endpoint=sb://a;AccountKey={WORD};x=1')"
)


@pytest.fixture
def runner() -> Runner:
    made = Runner()
    stamps = pa.array([0], pa.timestamp("us", "UTC"))
    made.stream("s", pa.table({"k": [1], "token": ["a"], "ts": stamps}))
    return made


def test_nothing_that_is_shown_has_the_value(
    runner: Runner, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sql = f"SELECT k FROM s INTO FILES '{tmp_path}' FORMAT json {OPTIONS}"
    query = runner.query(sql, "q")
    runner.run()
    shown = [
        runner.sql("SHOW QUERIES").to_pylist(),
        runner.sql("EXPLAIN q"),
        runner.explain(sql),
        runner.sql("EXPLAIN ADAPT q"),
        query.stats(),
        repr(query),
        inspect(runner.storage).to_dict(),
        Client(runner.storage).queries().to_pylist(),
        capsys.readouterr(),
    ]
    assert WORD not in "\n".join(map(str, shown))
    assert "trades" in str(shown)
    assert WORD in query.text  # as it was written: it is what is registered


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT nosuch FROM s INTO SPARK 'kafka' {OPTIONS}",
        f"SELECT k FROM s INTO SPARK 'kafka' {OPTIONS} WITH (nosuch = 1)",
        f"SELECT k FROM s INTO SPARK 'kafka' OPTIONS (password = '{WORD}' nosuch",
        f"SELECT k FROM s INTO SPARK 'kafka' OPTIONS (password = '{WORD}",
    ],
)
def test_a_refusal_points_to_its_place_without_the_value(runner: Runner, sql: str) -> None:
    with pytest.raises(ThalwegError) as found:
        runner.query(sql, "q")
    assert WORD not in str(found.value)
    _, line, caret, *_ = str(found.value).splitlines()
    if "SELECT nosuch" in line:
        assert line[caret.index("^") :].startswith("nosuch")


def test_only_options_and_addresses_are_masked() -> None:
    plain = "SELECT k FROM s WHERE token = 'a' OR key = 'b' AND token = secret"
    assert masked(plain) == plain
    text = "FROM SPARK 'x' OPTIONS (a = 'it''s (', password = 'x\ny', b = SECRET 'p') WHERE c = 'd'"
    assert masked(text) == text.replace("'x\ny'", "'***\n'")
    assert masked("OPTIONS (password = SECRET 'pw')") == "OPTIONS (password = SECRET 'pw')"
    assert without_credentials("no route to amqp://me:pw@host") == "no route to amqp://me:***@host"
    assert WORD not in told(OSError(f"cannot log in with password={WORD}"))


def test_a_secret_is_read_where_it_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BROKER_PASSWORD", WORD)
    (tmp_path / "broker.user").write_text("me\n")
    monkeypatch.setenv("THALWEG_SECRETS", str(tmp_path))
    options = (("p", Secret("BROKER_PASSWORD")), ("u", Secret("broker.user")), ("t", "x"))
    assert dict(with_values(options)) == {"p": WORD, "u": "me", "t": "x"}
    for missing in ("nosuch", "../etc/passwd", "/etc/passwd", ""):
        with pytest.raises(ConfigError, match="there is no secret") as found:
            Secret(missing).value()
        assert "environment variable" in found.value.remedy


def test_what_is_written_down_has_the_name_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PW", WORD)
    sql = (
        "CREATE STREAM s (k BIGINT, ts TIMESTAMP) TIMESTAMP BY ts FROM SPARK 'kafka' FORMAT json "
        "OPTIONS (topic = 'a', 'kafka.password' = SECRET 'PW')"
    )
    (statement,) = parse(sql)
    source = statement.source  # type: ignore[attr-defined]
    spec = SourceSpec("spark", source.target, source.format, source.options)
    written = described_source(spec)
    assert WORD not in written
    assert "PW" in json.loads(written)["options"][1][1].values()
    assert read_source(written) == spec
    assert dict(with_values(read_source(written).options))["kafka.password"] == WORD


def test_secrets_stand_in_options_of_sources_and_sinks_only(runner: Runner) -> None:
    select = parse_query("SELECT k FROM s INTO SPARK 'x' OPTIONS (p = SECRET 'a', secret = 'b')")
    assert select.into is not None  # type: ignore[union-attr]
    assert select.into.options == (("p", Secret("a")), ("secret", "b"))  # type: ignore[union-attr]
    with pytest.raises(ThalwegError):
        runner.query("SELECT k FROM s WITH (profile = SECRET 'a')", "q")


def test_a_path_is_its_owners_alone(tmp_path: Path) -> None:
    made = LocalStorage(str(tmp_path / "a" / "path"))
    claim(made).close()
    assert Path(made.root).stat().st_mode & 0o077 == 0
