"""Runs the blocks of a page as they are printed, top to bottom, in the current folder.

    python tests/run_page.py docs/guide.md

* `sh`: each line through a shell with `thalweg` on the PATH. `thalweg run` without `--once` follows
  its streams: it gets a terminal, and Ctrl-C once it has shown results.
* `python`: in one namespace.
* `sql`: by `engine.sql`, one statement after the other.
* `toml`, and blocks that begin with a comment that names a file: written to it.
* `output`: what the block before it has printed; `output like`: the same but for numbers, and
  `...` stands for lines left out.

What is not run is listed in `LEFT_OUT`, with the reason.
"""

from __future__ import annotations

import contextlib
import io
import os
import pty
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

LEFT_OUT = {
    "make demo": "needs a checkout, and is run by tests/demo",
    "FROM SPARK 'kafka'": "needs a broker and a package of Spark's; parsed",
}
_BLOCK = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.M | re.S)
_FILE = re.compile(r"(?:--|#) ([\w.]+\.(?:sql|py|toml))\b")
_NUMBER = re.compile(r"-?\d[\d.,]*(e-?\d+)?( [nµm]?s\b)?")
_COLOURS = re.compile(r"\x1b\[[\d;?]*[A-Za-z]")
_RESULTS = re.compile(r"running\W+[1-9]")
"""A line of the table of a live run that has results."""
_LIVE_SECONDS = 120


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: the words after the fence, the text, the line it begins in."""

    info: str
    text: str
    line: int

    @property
    def kind(self) -> str:
        return self.info.split(" ")[0]

    @property
    def file(self) -> str | None:
        """The file that its first line names."""
        found = _FILE.match(self.text)
        return found[1] if found else None


def blocks_of(page: str) -> Iterator[Block]:
    for found in _BLOCK.finditer(page):
        yield Block(found[1], found[2], page.count("\n", 0, found.start()) + 1)


def left_out(text: str) -> str | None:
    """Why a command or statement is not run."""
    return next((why for what, why in LEFT_OUT.items() if what in text), None)


@dataclass
class PageRun:
    """The run of one page. Each statement of SQL is first given to `prepare`."""

    names: dict[str, Any] = field(default_factory=dict)
    prepare: Callable[[str], str] = str
    printed: str = ""
    count: int = 0

    def run(self, page: str) -> None:
        for block in blocks_of(page):
            try:
                self.block(block)
            except BaseException as error:
                error.add_note(f"in the block of line {block.line}:\n{block.text}")
                raise

    def block(self, block: Block) -> None:
        self.count += 1
        if block.kind == "output":
            compare(block.text, self.printed, like="like" in block.info)
        elif block.file is not None:
            Path(block.file).write_text(block.text, "utf-8")
        elif block.kind == "python":
            self.printed = self._python(block)
        elif block.kind == "sql":
            self._sql(block.text)
        elif block.kind == "sh":
            self.printed = "".join(map(shell, block.text.splitlines()))
        else:
            assert not block.kind, f"nobody knows how to run {block.kind}"

    def _python(self, block: Block) -> str:
        out = io.StringIO()
        code = compile("\n" * block.line + block.text, "page", "exec")
        with contextlib.redirect_stdout(out):
            exec(code, self.names)
        return out.getvalue()

    def _sql(self, text: str) -> None:
        from thalweg.statements import parse

        assert parse(text)
        for statement in re.split(r"(?<=;)\s*\n", text.strip()):
            if not left_out(statement):
                self.names["engine"].sql(self.prepare(statement))


def compare(expected: str, printed: str, like: bool) -> None:
    """Assert that a block of output is what was printed."""
    if not like:
        found, wanted = (
            list(map(str.rstrip, s.rstrip().splitlines())) for s in (printed, expected)
        )
        assert found == wanted, f"printed was\n{printed}"
        return
    shapes = [_shape(line) for line in printed.splitlines()]
    for line in filter(None, map(_shape, expected.splitlines())):
        assert line == "..." or line in shapes, f"{line!r} is not like any line of\n{printed}"


def _shape(line: str) -> str:
    """A line without its numbers."""
    return _NUMBER.sub("#", line).strip()


# -- shell -------------------------------------------------------------------------------------


def shell(line: str) -> str:
    """What a line of shell prints; it must succeed."""
    if not line.strip() or left_out(line):
        return ""
    if "thalweg run" in line and "--once" not in line:
        return _followed(line)
    done = subprocess.run(line, shell=True, capture_output=True, text=True)
    assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
    return done.stdout


def _followed(line: str) -> str:
    """A command that goes on until Ctrl-C, which it gets when its table shows results."""
    ours, theirs = pty.openpty()
    running = subprocess.Popen(
        f"exec {line}",
        shell=True,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    shown, deadline = "", time.monotonic() + _LIVE_SECONDS
    stopping = False
    try:
        while running.poll() is None and time.monotonic() < deadline:
            if select.select([ours], [], [], 0.2)[0]:
                with contextlib.suppress(OSError):
                    shown += os.read(ours, 1 << 16).decode("utf-8", "replace")
            if not stopping and _RESULTS.search(_COLOURS.sub("", shown)):
                stopping = True
                os.killpg(running.pid, signal.SIGINT)
        assert running.poll() == 130, f"{line}\nended with {running.poll()}\n{shown[-1000:]}"
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(running.pid, signal.SIGKILL)
        os.close(ours)
    return shown


def provide_commands() -> None:
    """Put a `thalweg` and a `python` first on the PATH that are this one."""
    command = Path(tempfile.mkdtemp()) / "thalweg"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m thalweg "$@"\n')
    command.chmod(0o755)
    path = (str(command.parent), str(Path(sys.executable).parent), os.environ["PATH"])
    os.environ["PATH"] = os.pathsep.join(path)


def main(page: str) -> int:
    sys.path.insert(0, "")  # as in an interactive session
    provide_commands()
    made = PageRun({"__name__": "__main__"})
    try:
        made.run(Path(page).read_text("utf-8"))
    except BaseException:
        traceback.print_exc()
        return 1
    print(f"{made.count} blocks of {page} ran")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
