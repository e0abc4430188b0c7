"""How the code is built: owners, not mixins, and ways through it that only go forward."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import thalweg
import thalweg.exec.relations
from thalweg.plan.relations.protocol import Relation
from thalweg.windows.protocol import WindowSpec

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


# -- kinds answer for themselves -------------------------------------------------------------------

WINDOW_CHECKS = {
    "plan/leaf.py": (2, "time_window and ordered_window narrow the type for those who asked first"),
    "plan/instant_plan.py": (1, "at one instant a time window is a condition, others are not"),
    "lang/binding/asof_join.py": (1, "ASOF joins need the age that only [RANGE] bounds"),
    "models/language/windows.py": (1, "functions of time have windows over time alone"),
    "runtime/lifecycle/coverage.py": (1, "only time windows say since when they are complete"),
    "runtime/sizes/living_rows.py": (1, "rows within a time window are a range, others are run"),
    "runtime/lifecycle/window_reach.py": (1, "only windows over time reach back a time"),
}
RELATION_CHECKS = {
    "plan/relations/block.py": (
        1,
        "blocks_of, by which optimisations find the relations they know",
    ),
    "plan/routing.py": (1, "what a block needs depends on how its leaves are joined"),
    "plan/joins/join_order.py": (1, "only blocks have pipelines"),
    "plan/in_as_filter.py": (1, "IN becomes a filter over rows that are there once"),
    "plan/instant_plan.py": (
        1,
        "an answer at one instant may be a look-up in one stream",
    ),
}
"""By file how often kinds are told apart, and why."""


def subclasses(kind: type) -> set[str]:
    return {kind.__name__}.union(*map(subclasses, kind.__subclasses__()))


def told_apart(kinds: set[str]) -> dict[str, int]:
    """How often `isinstance` or a class pattern names one of the kinds, by file."""
    found: Counter[str] = Counter()
    for path in sorted(ROOT.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names: list[ast.expr] = []
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance":
                given = node.args[1]
                names = given.elts if isinstance(given, ast.Tuple) else [given]
            elif isinstance(node, ast.MatchClass):
                names = [node.cls]
            if any(ast.unparse(n).rsplit(".", 1)[-1] in kinds for n in names):
                found[str(path.relative_to(ROOT))] += 1
    return dict(found)


@pytest.mark.parametrize(
    ("kind", "expected", "most"),
    [(WindowSpec, WINDOW_CHECKS, 10), (Relation, RELATION_CHECKS, 25)],
    ids=["windows", "relations"],
)
def test_kinds_are_told_apart_only_where_there_is_a_reason(
    kind: type, expected: dict[str, tuple[int, str]], most: int
) -> None:
    kinds = subclasses(kind)
    assert len(kinds) > 4
    assert told_apart(kinds) == {file: count for file, (count, _) in expected.items()}
    assert sum(count for count, _ in expected.values()) <= most


def test_no_folder_has_more_than_25_files() -> None:
    root = ROOT.parents[1]
    for top in ("src", "tests", "benchmarks"):
        for folder in (p for p in Path(root, top).rglob("*") if p.is_dir()):
            files = [f for f in folder.iterdir() if f.is_file()]
            assert len(files) <= 25 or folder.name == "__pycache__", folder


def test_every_package_says_what_it_holds() -> None:
    for path in ROOT.rglob("__init__.py"):
        assert ast.get_docstring(ast.parse(path.read_text("utf-8"))), path
