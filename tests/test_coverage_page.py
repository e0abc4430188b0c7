from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

DOCS = Path(__file__).resolve().parent.parent / "docs"
ITEMS = {
    "streamon": 49,
    "pulse": 38,
    "bounds": 32,
    "densities": 20,
    "priorart-1": 47,
    "priorart-2": 55,
}


@pytest.fixture(scope="module")
def made() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_coverage", DOCS / "make_coverage.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def test_coverage_page_is_up_to_date(made: ModuleType) -> None:
    expected = made.page(made.acceptance(), made.citations())
    assert (DOCS / "coverage.md").read_text() == expected, "run: python docs/make_coverage.py"


def test_shown_items_have_tests_and_open_ones_have_none(made: ModuleType) -> None:
    assert made.mistakes(made.acceptance(), made.citations()) == []


def test_every_item_of_every_note_is_listed(made: ModuleType) -> None:
    notes = made.acceptance()
    assert {note: len(items) for note, items in notes.items()} == ITEMS
    assert len({item.name for items in notes.values() for item in items}) == sum(ITEMS.values())


def test_disagreements_are_found(made: ModuleType) -> None:
    shown, planned = (
        made.Item("pulse #1", "shown", open=False),
        made.Item("pulse #2", "open", open=True),
    )
    notes = {"pulse": [shown, planned]}
    assert made.mistakes(notes, {"pulse #1": ["a test"]}) == []
    assert made.mistakes(notes, {}) == ["pulse #1 is shown by no test"]
    assert made.mistakes(notes, {"pulse #1": ["a"], "pulse #2": ["b"], "pulse #3": ["c"]}) == [
        "pulse #3 is cited but not listed",
        "pulse #2 is open but cited",
    ]
