"""Draw docs/images/models_*.svg: the pictures that the page about models makes.

Run `python docs/make_models_pictures.py`; it runs the page as its test does.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS.parent / "tests"))

from run_page import PageRun  # noqa: E402


def main() -> None:
    page = (DOCS / "models.md").read_text("utf-8")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        PageRun({"__name__": "__main__"}).run(page)
        for made in sorted(Path(folder).glob("*.svg")):
            shutil.copyfile(made, DOCS / "images" / f"models_{made.name}")
        os.chdir(DOCS)


if __name__ == "__main__":
    main()
