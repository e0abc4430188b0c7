"""Settings: who wins, what is refused and where, and that the pages tell the truth."""

from __future__ import annotations

import pickle
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import thalweg as tw
from thalweg.cli import main
from thalweg.config import DEFAULTS, SECOND, Config, variable
from thalweg.errors import ConfigError
from thalweg.plan.catalog import DEFAULT_IDLE
from thalweg.runtime.session.session import Session
from thalweg.spark.settings import DEFAULT_MASTER
from thalweg.testing.runner import Runner

HOUR = 3600 * SECOND
GUIDE = (Path(__file__).parents[1] / "docs" / "guide.md").read_text("utf-8")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory without a file, an environment without settings."""
    monkeypatch.chdir(tmp_path)
    for name in DEFAULTS:
        monkeypatch.delenv(variable(name), raising=False)
    monkeypatch.delenv("THALWEG_CONFIG", raising=False)
    return tmp_path


def test_defaults() -> None:
    config = Config.load(env={})
    assert config == Config()
    assert config.results_retain == 24 * HOUR
    assert config.user_function_deadline == 30.0
    assert (config.tick_seconds, config.poll_seconds) == (0.5, 0.1)
    assert config.state_limit is None
    assert {d.origin for d in config.describe()} == {"default"}


def test_defaults_said_twice_are_the_same() -> None:
    """Where the layers forbid an import, a test keeps two constants equal."""
    assert DEFAULTS["idle"] == DEFAULT_IDLE
    (master,) = (d for d in Config().describe() if d.name == "master")
    assert master.shown == DEFAULT_MASTER
    assert Runner().core.settings.results_retain == DEFAULTS["results_retain"]


def test_later_places_win(elsewhere: Path) -> None:
    (elsewhere / "thalweg.toml").write_text(
        "parallelism = 2\nresults_retain = '3 h'\ntick_seconds = 2\nidle = 'never'\n"
    )
    env = {"THALWEG_RESULTS_RETAIN": "2h", "THALWEG_TICK_SECONDS": "250 ms"}
    config = Config.load(env=env, tick_seconds=0.125, master=None)
    assert config.parallelism == 2
    assert config.results_retain == 2 * HOUR
    assert config.tick_seconds == 0.125
    assert config.idle is None
    origins = {d.name: d.origin for d in config.describe()}
    assert origins["parallelism"] == "thalweg.toml: parallelism"
    assert origins["results_retain"] == "THALWEG_RESULTS_RETAIN"
    assert origins["tick_seconds"] == "argument"
    assert origins["master"] == "default"


def test_files_are_found(elsewhere: Path) -> None:
    other = elsewhere / "other.toml"
    other.write_text("parallelism = 3")
    (elsewhere / "thalweg.toml").write_text("parallelism = 2")
    named = {"THALWEG_CONFIG": str(other)}
    assert Config.load(env=named).parallelism == 3
    assert Config.load(elsewhere / "thalweg.toml", env=named).parallelism == 2
    with pytest.raises(ConfigError, match=r"no configuration file absent\.toml"):
        Config.load(env={"THALWEG_CONFIG": "absent.toml"})


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("results_retain", "INTERVAL 1 DAY", 24 * HOUR),
        ("results_retain", "0 s", 0),
        ("state_limit", "512 MiB", 512 << 20),
        ("state_limit", "1.5GB", 1_500_000_000),
        ("state_limit", "4096", 4096),
        ("state_limit", "none", None),
        ("durable", "off", False),
        ("durable", "TRUE", True),
        ("idle", "NEVER", None),
        ("idle", "5 seconds", 5 * SECOND),
        ("user_function_deadline", "2 minutes", 120.0),
        ("user_function_deadline", "1.5", 1.5),
        ("parallelism", "7", 7),
        ("path", "s3://bucket/x", "s3://bucket/x"),
        ("master", "", None),
    ],
)
def test_values_in_words(name: str, text: str, value: Any) -> None:
    assert getattr(Config.load(env={variable(name): text}), name) == value


def test_values_from_python() -> None:
    config = Config.load(env={}, results_retain=timedelta(hours=1), path=Path("a") / "b")
    assert (config.results_retain, config.path) == (HOUR, str(Path("a/b")))
    assert Config(state_limit="1 KiB").state_limit == 1024  # type: ignore[arg-type]
    assert Config(idle=None).idle is None
    assert pickle.loads(pickle.dumps(config)) == config


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("parallelism = 'two'", "thalweg.toml: parallelism cannot be 'two'"),
        ("parallelism = 0", "at least 1"),
        ("parallelism = true", "cannot be True"),
        ("parallelism = 1.5", "cannot be 1.5"),
        ("results_retain = 7200", "give a duration"),  # of what?
        ("results_retain = '-1 h'", "give a duration"),
        ("results_retain = 'soon'", "cannot be 'soon'"),
        ("durable = 1", "true or false"),
        ("state_limit = '12 apples'", "such as '512 MiB'"),
        ("state_limit = 0", "cannot be 0"),
        ("tick_seconds = 0", "above 0"),
        ("poll_seconds = nan", "above 0"),
        ("user_function_deadline = inf", "above 0"),
        ("path = ''", "give text"),
        ("path = 3", "give text"),
        ("reslts_retain = '1 h'", "did you mean results_retain?"),
        ("[engine]\nparallelism = 1", "there is no setting engine"),
        ("parallelism", "is not TOML"),
    ],
)
def test_a_file_that_is_refused(elsewhere: Path, line: str, said: str) -> None:
    (elsewhere / "thalweg.toml").write_text(line)
    with pytest.raises(ConfigError) as refused:
        Config.load(env={})
    assert said in str(refused.value)
    assert "thalweg.toml" in str(refused.value)


@pytest.mark.parametrize(
    ("key", "text", "said"),
    [
        ("THALWEG_RESULT_RETAIN", "2h", "did you mean THALWEG_RESULTS_RETAIN?"),
        ("THALWEG_PARALLELISM", "many", "THALWEG_PARALLELISM cannot be 'many'"),
        ("THALWEG_RESULTS_RETAIN", "7200", "give a duration"),
        ("THALWEG_DURABLE", "maybe", "true or false"),
    ],
)
def test_a_variable_that_is_refused(key: str, text: str, said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        Config.load(env={key: text})
    assert said in str(refused.value)
    assert key in str(refused.value)


def test_variables_of_others_are_let_be() -> None:
    env = {
        "THALWEG_TRACEBACK": "1", "THALWEG_BENCH_DATA": "/x", "THALWEG_SERVICE_HOST": "10.0.0.1",
        "THALWEG_PORT": "tcp://10.0.0.1:80", "THALWEG_PORT_80_TCP_ADDR": "10.0.0.1", "PATH": "/bin",
    }  # fmt: skip
    assert Config.load(env=env) == Config()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"paralelism": 2}, "did you mean parallelism?"),
        ({"parallelism": -1}, "argument: parallelism cannot be -1"),
        ({"results_retain": -5}, "argument: results_retain cannot be -5"),
    ],
)
def test_arguments_that_are_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        Config.load(env={}, **given)
    assert said in str(refused.value)
    if "paralelism" not in given:
        with pytest.raises(ConfigError):
            Config(**given)


def test_it_is_public() -> None:
    assert tw.Config is Config


# -- where settings are shown --------------------------------------------------------------------


def test_doctor_says_where_values_come_from(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THALWEG_RESULTS_RETAIN", "2h")
    main(["doctor"])
    shown = capsys.readouterr().out
    assert "results_retain = 2 h  (THALWEG_RESULTS_RETAIN)" in shown
    assert "idle = 10 s  (default)" in shown


def test_doctor_refuses_a_wrong_setting(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THALWEG_IDLE", "long")
    assert main(["doctor"]) == 1
    shown = capsys.readouterr().out
    assert "THALWEG_IDLE cannot be 'long'" in shown
    assert "or 'never'" in shown


def test_the_guide_lists_every_setting() -> None:
    """Name, default and meaning, in order, as `Config` has them."""
    listed = GUIDE.split("<!-- settings: begin -->")[1].split("<!-- settings: end -->")[0]
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \| (.*?) \|$", listed, re.M)
    assert rows == [(d.name, d.shown, d.meaning) for d in Config().describe()]


# -- the default for IDLE --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("clause", "idle"), [("", 3 * SECOND), ("IDLE 7 SECONDS", 7 * SECOND), ("IDLE NEVER", None)]
)
def test_streams_without_idle_take_the_default(clause: str, idle: int | None) -> None:
    core = Runner().core
    core.settings.default_idle = 3 * SECOND
    made = Session(core).sql(
        f"CREATE STREAM s (ts TIMESTAMP) TIMESTAMP BY ts {clause} FROM FILES 'x' FORMAT csv"
    )
    assert made.idle == idle
