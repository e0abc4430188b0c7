"""The Spark settings that matter, applied where we create the session, checked where we do not.

Each was measured: see docs/architecture.md.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from thalweg.errors import ConfigError

DEFAULT_MASTER = "local[*,4]"
_CHECKPOINT_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
_CHECKPOINTS = "org.apache.spark.sql.execution.streaming.checkpointing"


@dataclass(frozen=True, slots=True)
class Setting:
    """A Spark setting, why it matters, and whether leaving it out breaks or merely slows."""

    key: str
    value: str
    reason: str


SETTINGS = (
    Setting(
        "spark.sql.execution.arrow.maxBytesPerBatch",
        "2147483647",
        "skips a size estimate per row on the way to Python",
    ),
    Setting(
        _CHECKPOINT_MANAGER,
        f"{_CHECKPOINTS}.FileSystemBasedCheckpointFileManager",
        "the default forks a process per checkpoint file on local disks",
    ),
    Setting(
        "spark.python.unix.domain.socket.enabled",
        "true",
        "Python workers start and answer faster over unix sockets",
    ),
    Setting(
        "spark.python.daemon.module",
        "thalweg.spark.daemon",
        "workers start with compiled kernels and without a sweep after every task",
    ),
    Setting(
        "spark.sql.session.timeZone",
        "UTC",
        "time is UTC in Thalweg; another zone would shift TIMESTAMP text",
    ),
    Setting(
        "spark.sql.streaming.noDataMicroBatches.enabled",
        "false",
        "ingest keeps no state, so batches without data do nothing",
    ),
    Setting(
        "spark.sql.streaming.minBatchesToRetain",
        "16",
        "the log says what was read, so Spark's checkpoint need not reach back far",
    ),
    Setting(
        "spark.sql.streaming.fileSource.log.cleanupDelay",
        "60000",
        "else lists of files that were read stay for ten minutes each in the checkpoint",
    ),
)


def active_session(wanted: str | None = None) -> SparkSession | None:
    """The session that this process has already, to be used as it is; refused if another master is
    wanted, because Spark would give the same session with that master dropped."""
    found = SparkSession.getActiveSession()
    if found is None or wanted in (None, found.sparkContext.master):
        return found
    raise ConfigError(
        f"this process has a Spark session with master {found.sparkContext.master}, not {wanted}",
        remedy="hand it over by Engine(spark), or stop it first by spark.stop()",
    )


def is_submitted() -> bool:
    """Whether spark-submit has started this process: then it says master and hosts."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def create_session(master: str | None = None, extra: dict[str, str] | None = None) -> SparkSession:
    """A session for us alone, with the settings that matter and little noise. What spark-submit
    was told wins."""
    find_java()
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("thalweg")
    if master or not is_submitted():
        builder = builder.master(master or DEFAULT_MASTER)
    for key, value in _quiet().items() if not is_submitted() else ():
        builder = builder.config(key, value)
    for setting in SETTINGS:
        builder = builder.config(setting.key, setting.value)
    for key, value in (extra or {}).items():
        builder = builder.config(key, value)
    with _errors_to(spark_log()):
        spark = builder.getOrCreate()
    _settle_checkpoint_manager(spark)
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def _settle_checkpoint_manager(spark: SparkSession) -> None:
    """The class has moved between Spark versions; streaming queries read the setting when they
    start, so it can be put right once the JVM can be asked."""
    for package in (_CHECKPOINTS, _CHECKPOINTS.rpartition(".")[0]):
        name = f"{package}.FileSystemBasedCheckpointFileManager"
        try:
            spark._jvm.org.apache.spark.util.Utils.classForName(name, True, False)
        except Exception:  # py4j wraps ClassNotFoundException
            continue
        spark.conf.set(_CHECKPOINT_MANAGER, name)
        return
    spark.conf.unset(_CHECKPOINT_MANAGER)


def is_local(spark: SparkSession) -> bool:
    """Whether driver and workers share one machine and its cores."""
    master = spark.sparkContext.master
    return master.startswith("local") and not master.startswith("local-cluster")


def spark_log() -> Path:
    """Where the JVM of a session of ours writes its own messages."""
    return Path(tempfile.gettempdir(), f"thalweg-spark-{os.getpid()}.log")


@contextmanager
def _errors_to(path: Path) -> Iterator[None]:
    """A JVM started meanwhile keeps writing its messages there: its start-up chatter is long."""
    kept = os.dup(2)
    with path.open("ab") as log:
        os.dup2(log.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _quiet() -> dict[str, str]:
    return {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "4",
        "spark.driver.memory": "4g",
        "spark.driver.extraJavaOptions": "-XX:+UseParallelGC",
    }


@dataclass(frozen=True, slots=True)
class Advice:
    key: str
    wanted: str
    found: str | None
    reason: str


def advise(spark: Any) -> list[Advice]:
    """Settings of a session the user brought that cost time (or shift time zones)."""
    conf = spark.sparkContext.getConf()
    found = []
    for setting in SETTINGS:
        current = spark.conf.get(setting.key, None) or conf.get(setting.key, None)
        if current != setting.value:
            found.append(Advice(setting.key, setting.value, current, setting.reason))
    return found


# -- Java --------------------------------------------------------------------------------------

JAVA_REMEDY = (
    "install a JDK 17 or newer (apt install openjdk-17-jre-headless, brew install openjdk@17, "
    "or: pip install install-jdk && python -c \"import jdk; print(jdk.install('17'))\"), "
    "then set JAVA_HOME"
)


def java_version() -> tuple[int, str] | None:
    """Major version and path of the Java that Spark would use."""
    home = os.environ.get("JAVA_HOME")
    path = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if path is None or not Path(path).exists():
        return None
    try:
        shown = subprocess.run([path, "-version"], capture_output=True, text=True, timeout=30)
    except OSError:
        return None
    words = (shown.stderr or shown.stdout).split('"')
    if len(words) < 2:
        return None
    major = words[1].split(".")[0].split("-")[0]
    return (int(major), path) if major.isdigit() else None


def find_java() -> tuple[int, str]:
    """Java 17 or newer, looked for where `install-jdk` puts it too, or a refusal."""
    found = java_version()
    if found is not None and found[0] >= 17:
        return found
    for home in sorted(Path.home().glob(".jdk/*"), reverse=True):
        inner = home / "Contents" / "Home" if (home / "Contents").exists() else home
        if (inner / "bin" / "java").exists():
            os.environ["JAVA_HOME"] = str(inner)
            again = java_version()
            if again is not None and again[0] >= 17:
                return again
    if found is None:
        raise ConfigError("Spark needs Java, and none was found", remedy=JAVA_REMEDY)
    raise ConfigError(
        f"Spark 4 needs Java 17 or newer, {found[1]} is version {found[0]}", remedy=JAVA_REMEDY
    )
