"""What is said of text that cannot be read: our words for sqlglot's, and remedies by word.

Nothing that sqlglot says is shown as it is: it speaks of its own classes and of other dialects.
"""

from __future__ import annotations

import re

_EXPECTED = re.compile(r"Expect(?:ed|ing) (?:token )?(.+?)(?: but got .*)?")
_IN_OUR_WORDS = {
    "TYPE after CAST": "a TYPE after AS",
    "type after '::'": "a type behind ::",
    "type": "a type",
    "FROM or comma after EXTRACT": "FROM",
    "at least one argument": "an argument",
}


def in_plain_words(message: str, found: str) -> tuple[str, str]:
    """What is wrong with the text, by what sqlglot says of it and the word found there; and what to
    do."""
    there = f"found {found!r}" if found else "the text ends"
    expected = _EXPECTED.fullmatch(message)
    if expected is not None:
        wanted = _IN_OUR_WORDS.get(expected[1], expected[1])
        return f"expected {wanted}, {there}", remedy_for(found)
    if message.startswith("Required keyword"):
        return f"the expression is not complete: {there}", remedy_for(found)
    if message.startswith("The number of provided arguments"):
        return f"the call has too many arguments: {there}", remedy_for(found)
    return f"this cannot be read: {there}", remedy_for(found)


def remedy_for(found: str) -> str:
    """What to write instead of a word that the language does not have there."""
    word = "".join(re.findall(r"[A-Za-z_]+|^.", found)[:1]).upper()
    if not found:
        return "complete the statement; docs/language.md has the grammar"
    return _INSTEAD.get(word, "check what stands before it; docs/language.md has the grammar")


_SUBQUERY = "put the SELECT into FROM (...) and write the condition in a WHERE around it"
_INSTEAD = {
    "OFFSET": "LIMIT n keeps the first n rows of the order; there is no OFFSET",
    "FETCH": "write LIMIT n",
    "TOP": "write ORDER BY ... LIMIT n at the end",
    "QUALIFY": _SUBQUERY,
    "WINDOW": "write the window in brackets behind its stream, such as [RANGE 1 HOUR]",
    "TABLESAMPLE": "filter by a column with WHERE",
    "PIVOT": "write one aggregate with FILTER (WHERE ...) for each column",
    "UNPIVOT": "combine one SELECT for each column with UNION ALL",
    "LATERAL": "join the relation with ON",
    "USING": "write ON a.x = b.x",
    "NATURAL": "write ON a.x = b.x",
    "EXCEPT": "name the columns that are wanted; between two SELECTs EXCEPT takes their difference",
    "EXCLUDE": "name the columns that are wanted",
    "REPLACE": "name the columns, with the expression in the place of the one it replaces",
    "RENAME": "name the columns, each with AS",
    "AT": "times are UTC; add or subtract an INTERVAL",
    "COLLATE": "compare lower(x) or upper(x) to disregard case",
    "ESCAPE": "escape with a backslash, as in LIKE '50\\\\%'",
    "ILIKE": "write lower(x) LIKE 'a%'",
    "SYMMETRIC": "write BETWEEN least(a, b) AND greatest(a, b)",
    "FORMAT": "only ISO texts are read and written: leave FORMAT out",
    "DEFAULT": "write coalesce(TRY_CAST(...), value)",
    "IGNORE": "leave out the rows without a value with FILTER (WHERE x IS NOT NULL)",
    "RESPECT": "leave it out: NULL counts as a row",
    "VALUES": "make a table of the rows with engine.table(name, rows)",
    "INSERT": "hand rows over with engine.feed(stream, rows)",
    "NULLS": "write NULLS FIRST or NULLS LAST behind a key of ORDER BY",
    "ORDER": "ORDER BY stands behind HAVING, once, in a SELECT RSTREAM",
    "WITH": "WITH (option = value) stands at the end, once",
    ";": "remove what stands behind it, or run the statements one after another",
    ")": "remove it, or open a bracket before it",
    ",": "remove it, or complete what stands before it",
}
