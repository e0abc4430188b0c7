"""Which columns are joined, by how they are called.

Two conventions: `id` of `users` is what `user_id`, `userId` and `ownerUserId` refer to; and columns
of one name in two relations are joined by it (NATURAL). Names say nothing for certain: what queries
have joined by is better, and what the user says better still.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

_ID = "id"


def named_keys(relations: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Per relation the columns that are keys by their names, in the relation's order."""
    plain = {n: {c: _plain(c) for c in columns} for n, columns in relations.items()}
    owners = {_singular(_plain(n)): n for n, names in plain.items() if _ID in names.values()}
    shared = Counter(p for names in plain.values() for p in set(names.values()) if p != _ID)
    found: dict[str, list[str]] = {n: [] for n in relations}
    referred: set[str | None] = set()
    for relation, names in plain.items():
        for column, name in names.items():
            refers = _referred(name, owners)
            referred.add(refers)
            if refers is not None or shared[name] > 1:
                found[relation].append(column)
    for owner in owners.values():
        if owner in referred:
            found[owner] += [c for c, name in plain[owner].items() if name == _ID]
    return {n: [c for c in relations[n] if c in keys] for n, keys in found.items()}


def _referred(name: str, owners: Mapping[str, str]) -> str | None:
    """The relation whose `id` a column refers to: of several the one with the longest name."""
    if name == _ID or not name.endswith(_ID):
        return None
    stem = name.removesuffix(_ID)
    known = [o for o in owners if stem.endswith(o)]
    return owners[max(known, key=len)] if known else None


def _plain(name: str) -> str:
    return name.lower().replace("_", "")


def _singular(name: str) -> str:
    if name.endswith("ies"):
        return name.removesuffix("ies") + "y"
    return name.removesuffix("s")
