"""How the code is built: owners, not mixins, and ways through it that only go forward."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import thalweg

ROOT = Path(thalweg.__file__).parent
MOST_METHODS = 24
NO_MIXINS = {"Protocol", "Exception", "ABC", "Generic"}
DECLARES_FIELDS = {"Protocol", "NamedTuple", "TypedDict", "Enum"}
"""Classes whose annotations are fields or signatures."""


def classes() -> Iterator[tuple[str, ast.ClassDef]]:
    for path in sorted(ROOT.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef):
                yield f"{path.relative_to(ROOT)}:{node.name}", node


CLASSES = dict(classes())


def bases(node: ast.ClassDef) -> list[str]:
    plain = [b.value if isinstance(b, ast.Subscript) else b for b in node.bases]
    return [b.attr if isinstance(b, ast.Attribute) else ast.unparse(b) for b in plain]


def is_dataclass(node: ast.ClassDef) -> bool:
    return any("dataclass" in ast.unparse(d) for d in node.decorator_list)


def test_there_are_classes_to_look_at() -> None:
    assert len(CLASSES) > 300
    assert "runtime/session/session.py:Session" in CLASSES


def test_every_class_is_below_25_methods() -> None:
    counts = {
        name: sum(isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef)) for n in node.body)
        for name, node in CLASSES.items()
    }
    assert {n: c for n, c in counts.items() if c > MOST_METHODS} == {}


def test_no_class_has_several_bases() -> None:
    found = {n: [b for b in bases(node) if b not in NO_MIXINS] for n, node in CLASSES.items()}
    assert {n: b for n, b in found.items() if len(b) > 1} == {}


def test_no_class_declares_attributes_of_another() -> None:
    """A bare annotation outside a dataclass or protocol is an attribute that somebody else sets."""
    found = {
        name: [
            ast.unparse(n) for n in node.body if isinstance(n, ast.AnnAssign) and n.value is None
        ]
        for name, node in CLASSES.items()
        if not is_dataclass(node) and not DECLARES_FIELDS.intersection(bases(node))
    }
    assert {n: d for n, d in found.items() if d} == {}


def test_only_the_parts_of_the_engine_see_its_state() -> None:
    """Modules ask the coordinator for epochs and commits; the state is given to its owners."""
    node = CLASSES["runtime/epoch/coordinator.py:Coordinator"]
    public = {n.name for n in node.body if isinstance(n, ast.FunctionDef)}
    assert {n for n in public if not n.startswith("_")} == {"epoch", "save"}
    for path in ROOT.rglob("*.py"):
        for found in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(found, ast.Attribute) and found.attr in ("state", "_state"):
                assert not ast.unparse(found.value).endswith("coordinator"), path


@pytest.mark.parametrize("room", ["runtime", "statements"])
def test_no_import_hides_from_the_contracts(room: str) -> None:
    """There are no cycles, so nothing is imported for type checking only."""
    files = sorted((ROOT / room).rglob("*.py"))
    assert files
    assert [f.name for f in files if "TYPE_CHECKING" in f.read_text("utf-8")] == []
