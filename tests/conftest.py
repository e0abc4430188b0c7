"""One Spark session for the whole run, created only if a test asks for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    from thalweg.spark.settings import create_session

    session = create_session("local[2,4]")
    yield session
    session.stop()
