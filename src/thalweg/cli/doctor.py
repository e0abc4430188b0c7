"""`thalweg doctor`: is everything here, and if not, what to do."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.text import Text

from thalweg import __version__
from thalweg.config import Config
from thalweg.errors import ConfigError, ThalwegError

NEEDED = {
    "pyspark": "pip install 'thalweg[spark]'",
    "pandas": "pip install 'thalweg[spark]' (Spark's Arrow exchange asks for it)",
    "pyarrow": "pip install pyarrow",
    "numpy": "pip install numpy",
    "numba": "pip install numba",
    "sqlglot": "pip install sqlglot",
}
LEAST_DISK = 1 << 30
LEAST_MEMORY = 4 << 30
GOOD, WEAK, FATAL = "ok", "note", "problem"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report; only a FATAL one fails it."""

    state: str
    what: str
    found: str
    remedy: str | None = None


def examine(path: Path | None = None, start: bool = False, console: Console | None = None) -> int:
    """Print what was found; 1 if something is fatal, else 0."""
    console = console or Console(highlight=False)
    worst = GOOD
    for finding in findings(path, start):
        _print(console, finding)
        worst = FATAL if FATAL in (worst, finding.state) else worst
    _print_config(console)
    _print_settings(console)
    if worst == FATAL:
        console.print("\nThalweg cannot run here yet: see the remedies above.", style="red")
        return 1
    console.print("\nThalweg can run here.", style="green")
    return 0


def findings(path: Path | None = None, start: bool = False) -> Iterator[Finding]:
    """Everything worth knowing, the cheap things first."""
    yield Finding(GOOD, "thalweg", __version__)
    yield _python()
    for package, remedy in NEEDED.items():
        yield _package(package, remedy)
    yield _java()
    yield _config()
    yield _kernels()
    yield _memory()
    yield from _place(path or Path(tempfile.gettempdir()))
    if start:
        yield _spark()


def _python() -> Finding:
    found = f"{platform.python_version()} ({sys.executable})"
    if sys.version_info < (3, 11):  # noqa: UP036 - a doctor doubts what pip promises
        return Finding(FATAL, "Python", found, "use Python 3.11 or newer")
    return Finding(GOOD, "Python", found)


def _package(name: str, remedy: str) -> Finding:
    try:
        return Finding(GOOD, name, importlib.metadata.version(name))
    except importlib.metadata.PackageNotFoundError:
        return Finding(FATAL, name, "not installed", remedy)


def _java() -> Finding:
    try:
        from thalweg.spark.settings import find_java
    except ModuleNotFoundError:
        return Finding(FATAL, "Java", "not looked for without pyspark", NEEDED["pyspark"])
    try:
        version, where = find_java()
    except ThalwegError as error:
        return Finding(FATAL, "Java", error.message, error.remedy)
    return Finding(GOOD, "Java", f"{version} ({where})")


def _config() -> Finding:
    try:
        changed = [s.name for s in Config.load().describe() if s.origin != "default"]
    except ConfigError as error:
        return Finding(FATAL, "settings", error.message, error.remedy)
    return Finding(GOOD, "settings", f"changed: {', '.join(changed)}" if changed else "defaults")


def _kernels() -> Finding:
    """Compiled kernels are kept on disk; where they cannot be, every worker compiles anew."""
    import thalweg.store

    chosen = os.environ.get("NUMBA_CACHE_DIR")
    folder = Path(chosen) if chosen else Path(str(thalweg.store.__file__)).parent / "__pycache__"
    problem = _try(lambda: _write_and_remove(folder))
    if problem is None:
        return Finding(GOOD, "kernel cache", f"{folder} is writable")
    return Finding(
        WEAK, "kernel cache", f"{folder}: {problem}",
        "set NUMBA_CACHE_DIR to a writable folder, or every start compiles for half a minute",
    )  # fmt: skip


def _write_and_remove(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder):
        pass


def _try(action: Callable[[], None]) -> str | None:
    """What went wrong, None if nothing did."""
    try:
        action()
    except OSError as error:
        return error.strerror or str(error)
    return None


def _memory() -> Finding:
    cores = os.cpu_count() or 1
    try:
        bytes_ = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return Finding(GOOD, "cores", f"{cores}")
    found = f"{cores} cores, {bytes_ / 2**30:.0f} GiB of memory"
    if bytes_ < LEAST_MEMORY:
        return Finding(WEAK, "machine", found, "Spark alone likes 4 GiB; lower spark.driver.memory")
    return Finding(GOOD, "machine", found)


def _place(folder: Path) -> Iterator[Finding]:
    """Commits are hard links that must fail if the name exists."""
    if "://" in str(folder):
        yield Finding(WEAK, "path", f"{folder} is remote", "its atomicity is not examined")
        return
    problem = _try(lambda: folder.mkdir(parents=True, exist_ok=True)) or _try(
        lambda: _commit_twice(folder)
    )
    if problem is not None:
        yield Finding(
            FATAL, "path", f"{folder}: {problem}",
            "use a path on a local disk: a commit is a hard link made exactly once",
        )  # fmt: skip
        return
    yield Finding(GOOD, "path", f"{folder}: commits are atomic")
    free = shutil.disk_usage(folder).free
    text = f"{free / 2**30:.1f} GiB free"
    if free < LEAST_DISK:
        yield Finding(WEAK, "disk", text, "make room: log and state live there")
    else:
        yield Finding(GOOD, "disk", text)


def _commit_twice(folder: Path) -> None:
    draft = folder / f".thalweg-doctor-{uuid.uuid4().hex}"
    name = draft.with_suffix(".commit")
    try:
        draft.write_bytes(b"x")
        os.link(draft, name)
        try:
            os.link(draft, name)
        except FileExistsError:
            return
        raise OSError("a name could be linked twice")
    finally:
        draft.unlink(missing_ok=True)
        name.unlink(missing_ok=True)


def _print_config(console: Console) -> None:
    """Every setting and where its value comes from; one that is refused was reported above."""
    try:
        settings = Config.load().describe()
    except ConfigError:
        return
    console.print("\nSettings of the engine, and where each comes from:")
    for one in settings:
        text = Text.assemble(f"  {one.name} = {one.shown}", (f"  ({one.origin})", "dim"))
        console.print(text, soft_wrap=True)


def _print_settings(console: Console) -> None:
    """Set by us where we create the session; for a session of your own they are advice."""
    try:
        from thalweg.spark.settings import SETTINGS
    except ModuleNotFoundError:
        return
    console.print("\nSet in every session Thalweg starts; set them in one of your own as well:")
    for setting in SETTINGS:
        text = Text.assemble(f"  {setting.key}={setting.value}", (f"\n    {setting.reason}", "dim"))
        console.print(text, soft_wrap=True)


def _spark() -> Finding:
    try:
        from thalweg.spark.settings import advise, create_session

        spark = create_session("local[1]")
        try:
            count = spark.range(1000).count()
            advice = advise(spark)
            version = spark.version
        finally:
            spark.stop()
    except Exception as error:
        first = (str(error).splitlines() or [type(error).__name__])[0]
        remedy = error.remedy if isinstance(error, ThalwegError) else None
        return Finding(FATAL, "Spark", f"did not start: {first}", remedy)
    found = f"{version} started and counted {count} rows"
    if advice:
        keys = ", ".join(a.key for a in advice)
        return Finding(WEAK, "Spark", found, f"not as wanted: {keys}")
    return Finding(GOOD, "Spark", found)


_STYLES = {GOOD: ("✓", "green"), WEAK: ("!", "yellow"), FATAL: ("✗", "bold red")}


def _print(console: Console, finding: Finding) -> None:
    sign, style = _STYLES[finding.state]
    text = Text.assemble((f"{sign} {finding.what:<13}", style), finding.found)
    if finding.remedy:
        text.append(f"\n  → {finding.remedy}", "dim" if finding.state == GOOD else style)
    console.print(text, soft_wrap=True)
