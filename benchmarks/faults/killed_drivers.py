"""Drivers killed again and again on one path, until one gets to the end and its output is judged.

Most are drivers without a JVM (`small_driver`), the rest are real ones (`spark_driver`). Some die
at points inside and around both commits and the sink, the others at random instants.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from child import command
from faults import kill_points, processes, small_driver, spark_driver
from faults import workload as work
from faults.ledger import Ledger
from thalweg.store import manifest
from thalweg.store.storage import LocalStorage

Life = Callable[[Path, str, float | None], int]
LONGEST_LIFE = 120.0


@dataclass(frozen=True, slots=True)
class Death:
    """Where a life is to end: at a point, or this long after it began."""

    point: str = ""
    after: float | None = None

    def __str__(self) -> str:
        return self.point or f"after {self.after:.2f} s"


@dataclass(slots=True)
class Kills:
    """What a series of kills came to."""

    at_points: int = 0
    at_instants: int = 0
    paths: int = 0
    between: int = 0
    wrong: list[str] = field(default_factory=list)

    @property
    def total(self) -> int:
        return self.at_points + self.at_instants


def small_deaths(seed: int, usual: float) -> Iterator[Death]:
    """Every second one at a point, all kinds of points in turn."""
    rng = random.Random(seed)
    kinds = [(k, w) for k in ("log", "manifests", "sink") for w in kill_points.WHENS]
    while True:
        for kind, when in kinds:
            yield Death(f"{kind} {rng.randrange(1, 8)} {when}")
            yield Death(after=rng.uniform(0, usual))


def spark_deaths(seed: int) -> Iterator[Death]:
    """Points first: each commit from both sides and inside, and between ours and Spark's."""
    rng = random.Random(seed)
    points = [
        *("spark 1 between", "log 1 inside", "manifests 2 inside", "sink 1 after"),
        *("spark 2 between", "log 2 after", "manifests 2 after", "sink 2 inside"),
        *("log 1 before", "manifests 1 before", "spark 3 between", "manifests 3 inside"),
    ]
    while True:
        for point in points:
            yield Death(point)
            yield Death(after=rng.uniform(0, 4))


def kill(root: Path, wanted: work.Bags, life: Life, deaths: Iterator[Death], count: int) -> Kills:
    """End `count` lives; whenever one gets through, judge its output and begin anew."""
    found = Kills()
    folder = _fresh(root, found)
    idle = 0  # lives in a row that nothing ended: a point that is never reached must not loop
    while found.total < count and idle < 20:
        death = next(deaths)
        status = life(folder, death.point, death.after)
        if status == -signal.SIGKILL:
            idle = 0
            found.at_points += bool(death.point)
            found.at_instants += not death.point
            found.between += _spark_lags(folder) if death.point.startswith("spark") else 0
            continue
        idle += 1
        found.wrong += _judged(folder, wanted, status, f"{death}")
        folder = _fresh(root, found)
    found.wrong += _judged(folder, wanted, life(folder, "", None), "the last life")
    return found


def _fresh(root: Path, found: Kills) -> Path:
    folder = root / f"{found.paths:03d}"
    found.paths += 1
    work.write_input(folder)
    return folder


def _judged(folder: Path, wanted: work.Bags, status: int, title: str) -> list[str]:
    if status != 0:
        errors = folder / "errors"
        said = errors.read_text()[-1500:] if errors.exists() else ""
        return [f"{title}: the driver ended with {status}: {said}"]
    wrong = [f"{title}: {p}" for p in work.problems(folder, wanted)]
    if not wrong:
        shutil.rmtree(folder)
    return wrong


def _spark_lags(folder: Path) -> int:
    """1 if our manifest has a batch that Spark's checkpoint has not committed."""
    _, state = manifest.load(LocalStorage(str(folder / "path")))
    ours = max(state.get("sources", {}).values(), default=-1)
    commits = folder / "path" / "checkpoints" / "group-1" / "commits"
    names = os.listdir(commits) if commits.exists() else []
    return int(ours > max((int(n) for n in names if n.isdigit()), default=-1))


# -- real drivers ------------------------------------------------------------------------------


def spark_life(root: Path, point: str, after: float | None) -> int:
    """One life of a driver with its JVM; `after` counts from when the session is there."""
    home = root.parent / "home"
    home.mkdir(exist_ok=True)
    options = f"-Djava.io.tmpdir={home} -XX:TieredStopAtLevel=1 -Xshare:auto"
    env = {
        **os.environ,
        "TMPDIR": str(home),
        "JAVA_TOOL_OPTIONS": options,
        kill_points.VARIABLE: point,
    }
    ready = root / "ready"
    ready.unlink(missing_ok=True)
    with (root / "errors").open("wb") as errors:
        child = subprocess.Popen(
            command(spark_driver.__name__, str(root)),
            env=env,
            stderr=errors,
            start_new_session=True,
        )
        try:
            if after is not None and _appears(ready, child):
                time.sleep(after)
                if child.poll() is None:
                    os.killpg(child.pid, signal.SIGKILL)
            return child.wait(timeout=LONGEST_LIFE)
        except subprocess.TimeoutExpired:
            return 124
        finally:
            processes.end_session(child.pid)
            child.wait()


def _appears(ready: Path, child: subprocess.Popen[bytes]) -> bool:
    end = time.monotonic() + LONGEST_LIFE
    while not ready.exists() and child.poll() is None and time.monotonic() < end:
        time.sleep(0.02)
    return ready.exists()


# -- both series -------------------------------------------------------------------------------


def run_small(root: Path, ledger: Ledger, count: int, seed: int = 7) -> None:
    usual = small_driver.usual_seconds(root)
    wanted = work.expected(work.queries(root))
    begun = time.perf_counter()
    found = kill(root, wanted, small_driver.small_life, small_deaths(seed, usual), count)
    _enter(ledger, "without a JVM", found, count, time.perf_counter() - begun)


def run_spark(root: Path, ledger: Ledger, count: int, seed: int = 11) -> None:
    wanted = work.expected(work.queries(root))
    begun = time.perf_counter()
    found = kill(root, wanted, spark_life, spark_deaths(seed), count)
    _enter(ledger, "with Spark", found, count, time.perf_counter() - begun)
    ledger.check("killed between our commit and Spark's own", found.between > 0, found)
    ledger.figures["with Spark: between both commits"] = found.between


def _enter(ledger: Ledger, kind: str, found: Kills, count: int, seconds: float) -> None:
    ledger.check(f"{kind}: {count} kills happened", found.total >= count, found.total)
    left = [w for w in found.wrong if "left behind" in w or "unreferenced" in w]
    ledger.none(f"{kind}: nothing is left behind after the sweep", left)
    ledger.none(
        f"{kind}: output of {found.paths} paths is that of an undisturbed run",
        [w for w in found.wrong if w not in left],
    )
    ledger.figures |= {
        f"{kind}: kills": found.total,
        f"{kind}: at points": found.at_points,
        f"{kind}: at random instants": found.at_instants,
        f"{kind}: paths judged": found.paths,
        f"{kind}: files left behind": len(left),
        f"{kind}: seconds": seconds,
    }
