"""One Spark session for the whole run, created only if a test asks for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Where tests run in several processes, those with a JVM share one: two would fight for the
    cores."""
    for item in items:
        if item.get_closest_marker("spark"):
            item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    from thalweg.spark.settings import create_session

    session = create_session("local[2,4]")
    yield session
    session.stop()
