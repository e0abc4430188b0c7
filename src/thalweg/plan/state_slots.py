"""State of a query by slots, named `relation.kind[leaf]`, such as `0.groups` or `2.rows1`.

The name is on disk; its kind determines how a step and upkeep treat the packs in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class SlotRule(Enum):
    """The treatment of packs that were in a slot before a step."""

    REPLACED = "a step writes the whole content anew"
    NEWEST = "a step adds rows; of rows with one key the newest counts"
    SUMMED = "a step adds changes, whose weights add up"
    SINCE = "a step adds rows; those before what the window reaches are dropped"
    KEPT = "a step adds rows; they are dropped when results of their time are"
    DUE = "a step adds weighted changes of later instants; those of the past are dropped"


@dataclass(frozen=True, slots=True)
class SlotKind:
    """`words` describe its content in reports."""

    name: str
    rule: SlotRule
    words: str


GROUPS = SlotKind("groups", SlotRule.NEWEST, "aggregates by group")
COUNTS = SlotKind("counts", SlotRule.NEWEST, "how often rows are there")
ROWS = SlotKind("rows", SlotRule.SUMMED, "rows of a relation")
STREAM = SlotKind("stream", SlotRule.SINCE, "stream of a subquery")
LEAF = SlotKind("leaf", SlotRule.REPLACED, "content of a row window")
BAG = SlotKind("bag", SlotRule.REPLACED, "answer as it stands")
LAST = SlotKind("last", SlotRule.REPLACED, "last rows of partitions")
SLOT_KINDS: list[SlotKind] = [GROUPS, COUNTS, ROWS, STREAM, LEAF, BAG, LAST]


def slot(relation: int, kind: SlotKind, leaf: int | None = None) -> str:
    return f"{relation}.{kind.name}{'' if leaf is None else leaf}"


def kind_of(name: str) -> SlotKind:
    wanted = _kind_name(name)
    return next(k for k in SLOT_KINDS if k.name == wanted)


def place_of(name: str) -> tuple[int, int | None]:
    """The relation and the leaf that a slot belongs to."""
    relation, rest = name.split(".", 1)
    leaf = rest[len(_kind_name(name)) :]
    return int(relation), int(leaf) if leaf else None


def _kind_name(name: str) -> str:
    return name.split(".", 1)[1].rstrip("0123456789")
