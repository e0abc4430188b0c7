from __future__ import annotations

import importlib.util
from pathlib import Path

DOCS = Path(__file__).resolve().parent.parent / "docs"


def test_coverage_page_is_up_to_date() -> None:
    spec = importlib.util.spec_from_file_location("make_coverage", DOCS / "make_coverage.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    expected = module.page()
    assert (DOCS / "coverage.md").read_text() == expected, "run: python docs/make_coverage.py"
    assert "planned" not in expected, "an item of this version is shown by no test"
