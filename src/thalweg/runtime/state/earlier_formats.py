"""States that earlier versions wrote, in the layout of today.

Layout 1 knew one former membership of a query. In layout 2 the kind of a query and the number of a
cohort were parts of its name, every field was written, and the mode that was asked for stood only
in the text. In layout 3 only the orders of a query were kept of what was learned, by position.
"""

from __future__ import annotations

import re
from typing import Any

from thalweg.runtime.state.query_state import AUTO, CONDITIONS, FILTERS, QUERY, VIEW
from thalweg.runtime.state.serialization import Json

LAYOUT = 4
_SAYS_AUTO = re.compile(r"materialize['\"`]?\s*=\s*['\"]?auto", re.IGNORECASE)
_PREFIXES = {"__view:": VIEW, "__filters:": FILTERS, "__where:": CONDITIONS}
_RENAMED = {
    "before": "rows_before",
    "begun": "had_rows",
    "stubs": "shared_slots",
    "filling": "pending",
    "kin": "dormant_group",
}
_ADDED_LATER: dict[str, Any] = {
    "versions": {}, "identity": "", "controlled": {}, "next_member": 0, "stores": {}, "asleep": {},
    "leaders": {}, "returned": {},
}  # fmt: skip


def in_layout_of_today(data: Json) -> Json:
    """The same state in a mapping of its own."""
    layout = data.get("layout", 0)
    if layout == LAYOUT:
        return dict(data)
    found = {**data, "layout": LAYOUT}
    if layout < 3:
        found = {**_ADDED_LATER, **found}
        found["queries"] = {n: _query(n, q) for n, q in found["queries"].items()}
        found["dormant"] = {n: _query(n, q) for n, q in found.pop("asleep").items()}
        found["window_stores"] = found.pop("stores")
    for place in ("queries", "dormant"):
        found[place] = {n: _with_learned(q) for n, q in found[place].items()}
    return found


def _with_learned(data: Json) -> Json:
    orders = data.get("orders")
    return {**data, "learned": {"orders": orders}} if orders else data


def _query(name: str, data: Json) -> Json:
    found = {_RENAMED.get(key, key): value for key, value in data.items()}
    found["was_member"] = _memberships(data.get("was_member") or [])
    found["kind"] = next((k for p, k in _PREFIXES.items() if name.startswith(p)), QUERY)
    if found["kind"] == VIEW:
        found["feeds"] = name.split(":", 1)[1]
    if found["kind"] in (FILTERS, CONDITIONS):
        about, number = name.split(":", 1)[1].rsplit(":", 1)
        found["cohort"] = [about, int(number)]
    if data.get("mode"):
        found["materialize"] = _materialize(data)
    return found


def _memberships(given: list[Any]) -> list[Any]:
    return [given] if given and isinstance(given[0], int) else given


def _materialize(data: Json) -> str:
    """The mode that was asked for, of which only the text and ALTER QUERY told."""
    wanted = data.get("altered", {}).get("materialize")
    if wanted is None and _SAYS_AUTO.search(data["text"]):
        return AUTO
    return str(wanted or data["mode"])
