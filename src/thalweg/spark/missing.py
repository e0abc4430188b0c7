"""Without PySpark: what needs it is refused, with the remedy."""

from __future__ import annotations

import importlib.util
from typing import Any

from thalweg.errors import MissingSpark


def is_missing() -> bool:
    return importlib.util.find_spec("pyspark") is None


def missing_spark(what: str) -> MissingSpark:
    return MissingSpark(
        f"{what} needs PySpark, which is not installed here",
        remedy="pip install 'thalweg[spark]', or use the PySpark that your platform brings; "
        "explain, connect and thalweg.testing.Runner work without it",
    )


class MissingEngine:
    """Stands for `Engine` where there is no PySpark."""

    def __init__(self, *_: Any, **__: Any) -> None:
        raise missing_spark("an Engine")
