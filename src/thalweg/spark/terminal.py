"""Small things the command line and the demo share: interrupts, sparklines, a local engine."""

from __future__ import annotations

import logging
import signal
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console

from thalweg.config import Config
from thalweg.errors import SourceError
from thalweg.spark.missing import is_missing, missing_spark

if TYPE_CHECKING:
    from thalweg.spark.engine import Engine

_BARS = " ▁▂▃▄▅▆▇█"
JVM_PATIENCE_SECONDS = 10


def sparkline(values: Sequence[float], top: float | None = None) -> str:
    """One character a value, scaled to the largest (or to `top`).

    >>> sparkline([0, 1, 2, 4])
    ' ▂▄█'
    """
    highest = top or max(values, default=0)
    if highest <= 0:
        return " " * len(values)
    return "".join(_BARS[min(8, round(8 * max(v, 0) / highest))] for v in values)


def bar(value: float, top: float, width: int) -> str:
    """A horizontal bar with eighths of a character.

    >>> bar(3, 4, 4), bar(1, 16, 4)
    ('███', '▎')
    """
    eighths = round(8 * width * value / top) if top > 0 else 0
    return "█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()


@contextmanager
def local_engine(
    console: Console,
    master: str | None = None,
    path: str | None = None,
    config: Config | None = None,
) -> Iterator[Engine]:
    """An engine on a Spark of its own: started with a word of patience, stopped whatever happens.

    Ctrl-C then ends the program and not, as Spark would have it, the jobs under way.
    """
    if is_missing():
        raise missing_spark("this command")
    from pyspark import SparkContext

    from thalweg.spark.engine import Engine
    from thalweg.spark.settings import spark_log

    for noisy in ("py4j", "pyspark"):
        logging.getLogger(noisy).setLevel(logging.CRITICAL)
    before = SparkContext._gateway
    try:
        with console.status("Starting Spark ..."):
            engine = Engine(master, path, config=config)
        _own_interrupts()
        try:
            yield engine
        except BaseException as error:
            refusal = spark_refusal(error)  # asks the JVM, so before it ends
            _close_quietly(engine)
            if isinstance(error, KeyboardInterrupt):
                spark_log().unlink(missing_ok=True)
            if refusal is not None:
                raise refusal from error
            raise
        engine.close()
        spark_log().unlink(missing_ok=True)  # kept where something failed
    finally:
        if before is None:
            _end_jvm()


def spark_refusal(error: BaseException) -> SourceError | None:
    """An exception of Spark's as one of ours; None for all others."""
    if not type(error).__module__.startswith(("pyspark.", "py4j.")):
        return None
    try:
        lines = [line for line in str(error).splitlines() if line.strip()]
    except Exception:  # captured exceptions ask a JVM for their text, which may be gone
        lines = []
    first = lines[0] if lines else type(error).__name__
    return SourceError(
        f"Spark refused: {first}", remedy="set THALWEG_TRACEBACK=1 to see the whole story"
    )


class Terminated(KeyboardInterrupt):
    """The process is asked to end (SIGTERM), as service managers do."""


def _own_interrupts() -> None:
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, _terminate)


def _terminate(number: int, frame: object) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # a second one ends at once
    raise Terminated


def _close_quietly(engine: Engine) -> None:
    """On the way out of a failure a second one would only hide the first."""
    try:
        engine.close()
    except Exception as error:
        logging.getLogger("thalweg").debug("closing after a failure: %s", error)


def _end_jvm() -> None:
    """Wait for the JVM we started; without this it outlives us by a moment."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    process = getattr(gateway, "proc", None)
    if gateway is None or process is None:
        return
    SparkContext._gateway = SparkContext._jvm = None
    gateway.shutdown()
    process.stdin.close()
    try:
        process.wait(JVM_PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
