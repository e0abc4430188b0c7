"""Names of internal queries: those of views with RETAIN and cohorts.

They are made here and nowhere taken apart: what a query is, its state says. Only output may be
left of members whose cohort is gone, so of its owner the name tells the kind.
"""

from __future__ import annotations

from thalweg.runtime.state.query_state import CONDITIONS, FILTERS, QUERY

RESERVED = "__"
_PREFIXES = {FILTERS: "__filters:", CONDITIONS: "__where:"}


def view_query(view: str) -> str:
    """The query of a view with RETAIN."""
    return f"__view:{view}"


def members_output(kind: str, about: str) -> str:
    """The owner of the output that all members of cohorts about one thing share."""
    return f"{_PREFIXES[kind]}{about}"


def cohort_query(kind: str, about: str, number: int) -> str:
    return f"{members_output(kind, about)}:{number}"


def kind_of_output(owner: str) -> str:
    """Whose output it is: that of a query, of members, or of conditions."""
    if not owner.startswith(RESERVED):
        return QUERY
    return next((k for k, p in _PREFIXES.items() if owner.startswith(p)), QUERY)
