"""Every setting in one typed value: defaults, then a file, then the environment, then arguments.

A file is TOML with settings as keys: `thalweg.toml` in the working directory, or the file that
`THALWEG_CONFIG` names. A variable is `THALWEG_` and the setting in capitals. What is unknown, of
the wrong type or impossible is refused with its place: a setting that is silently ignored is
worse than none.
"""

from __future__ import annotations

import math
import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from thalweg.errors import ConfigError, ParseError, did_you_mean, nearest
from thalweg.lang.durations import parse_duration

FILE = "thalweg.toml"
PREFIX = "THALWEG_"
FILE_VARIABLE = "THALWEG_CONFIG"
NOT_SETTINGS = {FILE_VARIABLE, "THALWEG_TRACEBACK", "THALWEG_BENCH_DATA", "THALWEG_DATA"}
# what Kubernetes sets in every pod beside a service of our name
_OF_A_SERVICE = re.compile(PREFIX + r"(\w+_)?(SERVICE_HOST|SERVICE_PORT|PORT)(_\w+)?")

SECOND = 1_000_000
RESULTS_RETAIN = 86_400 * SECOND
IDLE = 10 * SECOND
TICK_SECONDS = 0.5
POLL_SECONDS = 0.1
USER_FUNCTION_DEADLINE = 30.0

_SIZES = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_SIZES |= {"KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "TIB": 1 << 40}
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", re.I)


@dataclass(frozen=True, slots=True)
class Kind:
    """How a setting is read (a ValueError refuses it), and shown; `wanted` says what it takes.

    `bare` numbers mean something in a file; durations there need a unit.
    """

    wanted: str
    read: Callable[[Any], Any]
    show: Callable[[Any], str] = str
    bare: bool = True


@dataclass(frozen=True, slots=True)
class Described:
    """A setting as it stands: its value, the value in words, and where it came from."""

    name: str
    value: Any
    shown: str
    origin: str
    meaning: str


# -- kinds -------------------------------------------------------------------------------------


def _text(given: Any) -> str:
    text = os.fspath(given)
    if not isinstance(text, str) or not text:
        raise ValueError
    return text


def _count(given: Any) -> int:
    number = int(given) if isinstance(given, str) else given
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise ValueError
    return number


_WORDS = {"true": True, "yes": True, "on": True, "1": True}
_WORDS |= {"false": False, "no": False, "off": False, "0": False}


def _flag(given: Any) -> bool:
    found = _WORDS.get(given.strip().lower()) if isinstance(given, str) else given
    if not isinstance(found, bool):
        raise ValueError
    return found


def _duration(given: Any) -> int:
    if isinstance(given, bool) or not isinstance(given, (str, int, timedelta)):
        raise ValueError
    micros = parse_duration(given)
    if micros < 0:
        raise ValueError
    return micros


def _duration_or_never(given: Any) -> int | None:
    return None if _is_word(given, "never") else _duration(given)


def _seconds(given: Any) -> float:
    """Numbers are seconds, with or without a word."""
    if isinstance(given, bool):
        raise ValueError
    try:
        seconds = float(given)
    except (TypeError, ValueError):
        seconds = _duration(given) / SECOND
    if not 0 < seconds < math.inf:
        raise ValueError
    return seconds


def _bytes(given: Any) -> int | None:
    if _is_word(given, "none"):
        return None
    found = _SIZE.fullmatch(str(given)) if isinstance(given, (str, int)) else None
    if found is None or isinstance(given, bool) or found[2].upper() not in _SIZES:
        raise ValueError
    size = int(Decimal(found[1]) * _SIZES[found[2].upper()])
    if size < 1:
        raise ValueError
    return size


def _is_word(given: Any, word: str) -> bool:
    return isinstance(given, str) and given.strip().lower() == word


def _show_duration(micros: int | None) -> str:
    if micros is None:
        return "never"
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s")):
        if micros and micros % (size * SECOND) == 0:
            return f"{micros // (size * SECOND)} {unit}"
    return f"{micros} µs"


def _show_bytes(size: int | None) -> str:
    if size is None:
        return "none"
    for power, unit in ((40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")):
        if size % (1 << power) == 0:
            return f"{size >> power} {unit}"
    return f"{size} B"


TEXT = Kind("text", _text)
COUNT = Kind("a whole number of at least 1", _count)
FLAG = Kind("true or false", _flag, lambda v: str(v).lower())
DURATION = Kind("a duration such as '2 h' or '30 minutes'", _duration, _show_duration, bare=False)
IDLE_AFTER = Kind(
    "a duration such as '10 s', or 'never'", _duration_or_never, _show_duration, bare=False
)
SECONDS = Kind("a duration above 0 such as '500 ms', or seconds", _seconds, lambda v: f"{v:g} s")
SIZE = Kind("a size such as '512 MiB', or 'none'", _bytes, _show_bytes)


def _setting(default: Any, kind: Kind, meaning: str, unset: str | None = None) -> Any:
    """`unset` says what None stands for, where it stands for something."""
    return field(default=default, metadata={"kind": kind, "meaning": meaning, "unset": unset})


# -- the settings ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Config:
    """The settings of an engine.

    Durations are held in microseconds where their name says nothing else, sizes in bytes; all may
    be given in words. `origins` says where a value came from.

    >>> Config.load(env={"THALWEG_RESULTS_RETAIN": "2h"}, state_limit="512 MiB").results_retain
    7200000000
    """

    path: str | None = _setting(
        None, TEXT, "where log, state and results live", "a temporary folder"
    )
    master: str | None = _setting(None, TEXT, "Spark master of a session of ours", "local[*,4]")
    parallelism: int | None = _setting(
        None, COUNT, "tasks per epoch", "the session's default parallelism"
    )
    durable: bool | None = _setting(
        None, FLAG, "force local files to disk before they count", "true for a given path"
    )
    results_retain: int = _setting(RESULTS_RETAIN, DURATION, "how long results are kept")
    state_limit: int | None = _setting(None, SIZE, "most bytes of state an engine may keep", "none")
    share_windows: bool = _setting(
        True, FLAG, "keep the rows of [ROWS n] and sessions once for all queries that have them"
    )
    user_function_deadline: float = _setting(
        USER_FUNCTION_DEADLINE, SECONDS, "how long a call of a Python function may take"
    )
    tick_seconds: float = _setting(
        TICK_SECONDS, SECONDS, "how often time passes where no data comes"
    )
    poll_seconds: float = _setting(
        POLL_SECONDS, SECONDS, "how long the loop waits for data before it looks at the time"
    )
    idle: int | None = _setting(
        IDLE, IDLE_AFTER, "silence after which a stream without IDLE holds nobody back", "never"
    )
    origins: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        for name, default in DEFAULTS.items():
            value = getattr(self, name)
            if value != default:
                place = self.origins.get(name, "argument")
                object.__setattr__(self, name, _read(name, value, place))

    @staticmethod
    def load(
        file: str | os.PathLike[str] | None = None,
        env: Mapping[str, str] = os.environ,
        **arguments: Any,
    ) -> Config:
        """Settings from everywhere; an argument that is None counts as not given."""
        found = {**_from_file(file, env), **_from_environment(env)}
        values = {name: value for name, (value, _) in found.items()}
        origins = {name: origin for name, (_, origin) in found.items()}
        return Config(**values, origins=origins).given(**arguments)

    def given(self, **arguments: Any) -> Config:
        """The same with arguments that win; one that is None counts as not given."""
        chosen = {name: value for name, value in arguments.items() if value is not None}
        for name in arguments:
            _refuse_unknown(name, "argument", name)
        values = {name: _read(name, value, "argument") for name, value in chosen.items()}
        return replace(
            self, **values, origins={**self.origins, **dict.fromkeys(chosen, "argument")}
        )

    def describe(self) -> tuple[Described, ...]:
        """Every setting with its value and where it came from."""
        return tuple(
            Described(name, value, _shown(name, value), self._origin(name), _meta(name, "meaning"))
            for name in DEFAULTS
            for value in (getattr(self, name),)
        )

    def _origin(self, name: str) -> str:
        changed = getattr(self, name) != DEFAULTS[name]
        return self.origins.get(name, "argument" if changed else "default")


_FIELDS = {f.name: f for f in fields(Config) if "kind" in f.metadata}
DEFAULTS: dict[str, Any] = {name: f.default for name, f in _FIELDS.items()}


def variable(name: str) -> str:
    """The environment variable of a setting."""
    return PREFIX + name.upper()


def _meta(name: str, what: str) -> Any:
    return _FIELDS[name].metadata[what]


def _shown(name: str, value: Any) -> str:
    kind: Kind = _meta(name, "kind")
    return str(_meta(name, "unset")) if value is None else kind.show(value)


# -- places ------------------------------------------------------------------------------------

Found = dict[str, tuple[Any, str]]


def _from_file(given: str | os.PathLike[str] | None, env: Mapping[str, str]) -> Found:
    named = given or env.get(FILE_VARIABLE)
    path = Path(named or FILE)
    if not named and not path.is_file():
        return {}
    found: Found = {}
    for key, raw in _toml(path).items():
        place = f"{path}: {key}"
        _refuse_unknown(key, str(path), key)
        is_number = isinstance(raw, (int, float)) and not isinstance(raw, bool)
        text_only = is_number and not _meta(key, "kind").bare
        found[key] = _read(key, str(raw) if text_only else raw, place), place
    return found


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise ConfigError(
            f"there is no configuration file {path}",
            remedy=f"check the path (and the variable {FILE_VARIABLE})",
        ) from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(
            f"{path} is not TOML: {error}", remedy="write lines such as results_retain = '2 h'"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"{path} cannot be read: {error}",
            remedy="check the path, and that the file is valid TOML",
        ) from None


def _from_environment(env: Mapping[str, str]) -> Found:
    found: Found = {}
    for key, raw in env.items():
        if not key.startswith(PREFIX) or key in NOT_SETTINGS or _OF_A_SERVICE.fullmatch(key):
            continue
        name = key.removeprefix(PREFIX).lower()
        _refuse_unknown(name, "environment", key)
        if raw:  # set to nothing is not set
            found[name] = _read(name, raw, key), key
    return found


def _refuse_unknown(name: str, place: str, written: str) -> None:
    if name in DEFAULTS:
        return
    close = nearest(name, DEFAULTS)
    remedy = did_you_mean(name, DEFAULTS)
    if close is not None and place == "environment":
        remedy = f"did you mean {variable(close)}?"
    raise ConfigError(f"{place}: there is no setting {written}", remedy=remedy)


def _read(name: str, raw: Any, place: str) -> Any:
    """The value of a setting, or a refusal that says where it stands."""
    kind: Kind = _meta(name, "kind")
    if raw is None and _meta(name, "unset") is not None:
        return None
    try:
        return kind.read(raw)
    except (ValueError, TypeError, ParseError):
        where = f"{place}: {name}" if place == "argument" else place
        raise ConfigError(f"{where} cannot be {raw!r}", remedy=f"give {kind.wanted}") from None
