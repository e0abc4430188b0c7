"""Parameters of a sweep: names behind colons in a text, and the values in their place."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from thalweg.errors import ConfigError, did_you_mean
from thalweg.store.packs import TIME

Row = Mapping[str, Any]
_PARTS = re.compile(
    r"""'(?:[^']|'')*' | "(?:[^"]|"")*" | `[^`]*` | --[^\n]* | /\*.*?\*/ | ::
    | :(?P<name>[A-Za-z_]\w*)""",
    re.VERBOSE | re.DOTALL,
)


def placeholders(sql: str) -> tuple[str, ...]:
    """The names that stand in a text behind colons, outside of quotes and comments."""
    return tuple(dict.fromkeys(m["name"] for m in _PARTS.finditer(sql) if m["name"]))


def with_parameters(sql: str, row: Row, columns: Mapping[str, str] | None = None) -> str:
    """The text with values in place of names, or with columns in place of some."""

    def written(part: re.Match[str]) -> str:
        name = part["name"]
        if not name:
            return part[0]
        return columns[name] if columns and name in columns else _written(row[name])

    return _PARTS.sub(written, sql)


def occurrences(sql: str, name: str) -> int:
    return sum(m["name"] == name for m in _PARTS.finditer(sql))


def check_parameters(sql: str, rows: Iterable[Row]) -> None:
    wanted = placeholders(sql)
    for row in rows:
        missing = [n for n in wanted if n not in row]
        if missing:
            raise ConfigError(
                f"the parameter :{missing[0]} has no value",
                remedy=f"give one for each of {', '.join(f':{n}' for n in wanted)}",
            )
        extra = [n for n in row if n not in wanted]
        if extra:
            raise ConfigError(
                f"the query has no parameter :{extra[0]}",
                remedy=did_you_mean(extra[0], wanted),
            )
        taken = [n for n in row if n in (TIME, "__sign")]
        if taken:
            raise ConfigError(f"{taken[0]} is a reserved name", remedy="choose another one")


def _written(value: Any) -> str:
    """A value as it is written in SQL; a text such as '10 SECONDS' is a duration where one is
    wanted."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, (int, float, Decimal)):
        return f"({value!r})" if value < 0 else str(value)
    if isinstance(value, timedelta):
        return f"'{value // timedelta(microseconds=1)} microseconds'"
    if isinstance(value, datetime):
        return f"TIMESTAMP '{value.isoformat()}'"
    if isinstance(value, date):
        return f"DATE '{value.isoformat()}'"
    return "'" + str(value).replace("'", "''") + "'"
