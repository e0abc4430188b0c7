"""Names of state: `relation.kind[leaf]`, such as `0.groups` or `2.rows1`.

What a kind of state is decides how it is kept: a step replaces the content of row windows (`leaf`),
of RSTREAM (`bag`) and the last rows of partitions (`last`); it adds to everything else, and upkeep
folds what has been added.
"""

from __future__ import annotations

GROUPS, COUNTS, ROWS, STREAM = "groups", "counts", "rows", "stream"
LEAF, BAG, LAST = "leaf", "bag", "last"
_REPLACED = (LEAF, BAG, LAST)


def slot(relation: int, kind: str, leaf: int | None = None) -> str:
    return f"{relation}.{kind}{'' if leaf is None else leaf}"


def kind_of(name: str) -> str:
    return name.split(".", 1)[1].rstrip("0123456789")


def place_of(name: str) -> tuple[int, int | None]:
    """The relation and the leaf that a slot belongs to."""
    relation, rest = name.split(".", 1)
    leaf = rest[len(kind_of(name)) :]
    return int(relation), int(leaf) if leaf else None


def is_replaced(name: str) -> bool:
    return kind_of(name) in _REPLACED
