"""Names of queries as names of files: nothing is written elsewhere, hidden or mixed up."""

from __future__ import annotations

import pytest

from thalweg.store.file_names import file_name_of

NAMES = ["q", "_x", ".", "..", ".hidden", "a/b", "a b", "%5Fx", "ä", "_", "__y", "x_", "x."]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_one_visible_component(name: str) -> None:
    found = file_name_of(name)
    assert "/" not in found
    assert found[0] not in "._"


def test_different_names_stay_different() -> None:
    assert len({file_name_of(n) for n in NAMES}) == len(NAMES)
