"""Names as they are written: in back-ticks where the language would read something else."""

from __future__ import annotations

import re

from thalweg.errors import ConfigError
from thalweg.lang.parsing.expression_parser import Dialect
from thalweg.lang.syntax import exp

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PARTS = re.compile(r"(`(?:[^`]|``)+`|[^.`]+)(\.|$)")
_OURS = """
ADVANCE ALERT BUCKETS BY CLEAR CONSOLE CROSS DEGREE DOMAIN DSTREAM ERROR EVERY EXTRACT FIT GAP GROUP
GROUPING IF ISTREAM LANDMARK MODEL NOW NULLS ORDER QOS QUERY RATE RETAIN RSTREAM SAMPLE SETS SIZE
SLIDE STREAM TO TRY_CAST CAST UNBOUNDED WITHIN
"""
_WORDS = frozenset(_OURS.split()) | {w for w in Dialect.Tokenizer.KEYWORDS if w.isidentifier()}


def identifier(name: str) -> exp.Identifier:
    """A name as the parser would give it, quoted if it has to be."""
    if not name:
        raise ConfigError("a name is empty", remedy="write the name of a column or source")
    plain = _PLAIN.fullmatch(name) and name.upper() not in _WORDS
    return exp.Identifier(this=name, quoted=not plain)


def written(name: str) -> str:
    """The text of a name."""
    found = identifier(name)
    return "`" + name.replace("`", "``") + "`" if found.quoted else name


def dotted(name: str) -> str:
    """The text of a name such as `trades.rejects`."""
    return ".".join(written(part) for part in name.split("."))


def column(name: str) -> exp.Expr:
    """`price`, `t.price`, `t.*` or `*`; back-ticks hold what contains a dot."""
    parts = _parts(name)
    if parts is None or len(parts) > 2:
        raise ConfigError(
            f"{name!r} is not the name of a column",
            remedy="write col('price') or col('t.price'), with `...` around a name that has a dot",
        )
    *table, last = parts
    this = exp.Star() if last == "*" else identifier(_bare(last))
    if not table:
        return this if isinstance(this, exp.Star) else exp.Column(this=this)
    return exp.Column(this=this, table=identifier(_bare(table[0])))


def _bare(part: str) -> str:
    return part[1:-1].replace("``", "`") if part.startswith("`") else part


def _parts(name: str) -> list[str] | None:
    found, at = [], 0
    while at < len(name):
        match = _PARTS.match(name, at)
        if match is None:
            return None
        found.append(match[1])
        at = match.end()
    return found if found and not name.endswith(".") else None
