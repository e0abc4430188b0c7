"""Before a commit the same linters run as in `make lint`."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_hooks_are_the_commands_of_make_lint() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    recipe = re.search(r"^lint:.*\n((?:\t.*\n)+)", makefile, re.M)
    assert recipe is not None
    commands = recipe[1].replace("$(BIN)", ".venv/bin").split("\n\t")
    hooks = (ROOT / ".pre-commit-config.yaml").read_text("utf-8")
    assert re.findall(r"entry: (.*)", hooks) == [command.strip() for command in commands]
