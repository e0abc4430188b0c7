"""What is not shown: passwords, tokens and keys in OPTIONS, and credentials in addresses."""

from __future__ import annotations

import re

HIDDEN = "***"
_OPTIONS = re.compile(r"\bOPTIONS\s*\(", re.IGNORECASE)
_STRING = r"'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.|\"\")*\""
_BRACKET = re.compile(rf"{_STRING}|[()'\"]", re.DOTALL)
_ENTRY = re.compile(rf"({_STRING}|`[^`]*`|[\w.-]+)(\s*=\s*)({_STRING}|[^\s,()]+)", re.DOTALL)
_SECRET = re.compile(
    r"pass(word|wd|phrase)?\b|passw|pwd|secret|token|credential|jaas|signature|"
    r"(api|access|account|private|shared|encryption|master)[._-]?key|^key$",
    re.IGNORECASE,
)
_USER_AND_PASSWORD = re.compile(r"(://[^\s:/@'\"]*:)[^\s/@'\"]+@")
_INSIDE = re.compile(
    r"((?:password|passwd|pwd|secret|token|accountkey|accesskey|apikey|sig)\s*=\s*)"
    r"(?:\\?\"[^\"]*\"|[^\s;&,'\"]+)",
    re.IGNORECASE,
)


def masked(text: str) -> str:
    """A statement or a script as it may be shown; it has the lines that it had."""
    parts, done = [], 0
    for found in _OPTIONS.finditer(text):
        if found.start() >= done:
            end = _closing(text, found.end())
            parts += [text[done : found.end()], _masked_entries(text[found.end() : end])]
            done = end
    return without_passwords("".join([*parts, text[done:]]))


def without_passwords(text: str) -> str:
    """A text whose addresses have no passwords."""
    return _USER_AND_PASSWORD.sub(rf"\1{HIDDEN}@", text)


def without_credentials(text: str) -> str:
    """A message without passwords of addresses and of connection strings."""
    return _INSIDE.sub(rf"\1{HIDDEN}", without_passwords(text))


def _closing(text: str, begin: int) -> int:
    """Where the bracket that was opened before `begin` is closed; the end if it is not."""
    depth = 1
    for found in _BRACKET.finditer(text, begin):
        depth += {"(": 1, ")": -1}.get(found[0], 0)
        if depth == 0:
            return found.start()
    return len(text)


def _masked_entries(text: str) -> str:
    return _ENTRY.sub(_masked_entry, text)


def _masked_entry(found: re.Match[str]) -> str:
    name, equals, value = found.groups()
    if value.upper() == "SECRET":
        return found[0]
    if not _SECRET.search(name.strip("'\"`")):
        return f"{name}{equals}{without_credentials(value)}"
    return f"{name}{equals}'{HIDDEN}{chr(10) * value.count(chr(10))}'"
