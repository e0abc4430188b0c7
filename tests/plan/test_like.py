"""LIKE with a pattern that is written down cannot fail, unless the pattern itself is wrong."""

from __future__ import annotations

import pytest

from thalweg.plan.expr import Call, Column, Literal
from thalweg.plan.functions import can_raise
from thalweg.plan.types import BOOLEAN, STRING


@pytest.mark.parametrize(
    ("pattern", "fails"),
    [
        ("a%", False),
        ("", False),
        (r"100\%", False),
        (r"a\\", False),
        (r"\_\\\%", False),
        ("a\\", True),
        (r"\a", True),
        (r"\\\a", True),
    ],
)
def test_only_a_wrong_escape_fails(pattern: str, fails: bool) -> None:
    text = Column(STRING, True, "s.x")
    assert can_raise(Call(BOOLEAN, True, "like", (text, Literal(STRING, False, pattern)))) is fails


def test_a_pattern_from_the_data_may_fail() -> None:
    text, pattern = Column(STRING, True, "s.x"), Column(STRING, True, "s.p")
    assert can_raise(Call(BOOLEAN, True, "like", (text, pattern)))
