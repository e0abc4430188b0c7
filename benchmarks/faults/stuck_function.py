"""A user function that never returns: after `user_function_deadline` it is given up in words."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

from faults import spark_driver
from faults import workload as work
from faults.fault_process import wait_until
from faults.ledger import Ledger

FAULT = "user function hangs"
DEADLINE = 3.0
PATIENCE = 30.0


def run(root: Path, spark: Any, ledger: Ledger, quick: bool) -> None:
    import thalweg as tw
    from thalweg.config import Config

    def never(value: int) -> bool:
        while value == 3:
            time.sleep(1)
        return True

    work.write_input(root)
    config = Config.load(user_function_deadline=DEADLINE)
    engine = tw.Engine(spark, root / "path", parallelism=2, config=config)
    others = spark_driver.add_work(engine, root)
    engine.function("never", never, "BOOLEAN", arguments=["BIGINT"])
    query = engine.query("SELECT v FROM a WHERE never(v)", "hanging")
    raised: list[BaseException] = []
    thread = threading.Thread(target=_guarded, args=(engine, raised), daemon=True)
    thread.start()
    ended = wait_until(lambda: not thread.is_alive(), PATIENCE)
    ledger.check(
        f"the deadline of {DEADLINE:g} s holds, the run ends", ended,
        f"no end after {PATIENCE:g} s, epoch {engine.core.state.epoch}",
    )  # fmt: skip
    if not ended:
        ledger.tell("(nothing: the engine waits for ever)", "hanging|never")
        return
    ledger.tell(_what_is_said(query, raised), "hanging|never")
    ledger.check("only the query with the function is harmed", not raised, raised)
    spark_driver.save_results(engine, root, others)
    ledger.none("the other queries give what they should",
                work.problems(root, work.expected(work.queries(root))))  # fmt: skip


def _guarded(engine: Any, raised: list[BaseException]) -> None:
    try:
        engine.run()
    except BaseException as error:
        raised.append(error)


def _what_is_said(query: Any, raised: list[BaseException]) -> str:
    if raised:
        return str(raised[0])
    rejects = query.rejects()
    if rejects.num_rows:  # given up row by row
        row = rejects.to_pylist()[0]
        return f"{row['expression']}: {row['reason']} → see Query.rejects()"
    try:
        query.results()
    except Exception as error:
        return str(error)
    return "(nothing)"
