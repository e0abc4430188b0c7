"""Thalweg: continuous SQL on Spark that re-plans itself while it runs.

>>> import thalweg as tw
>>> tw.__version__  # doctest: +ELLIPSIS
'...'
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from thalweg import errors
from thalweg.config import Config
from thalweg.errors import ThalwegError

if TYPE_CHECKING:
    from thalweg.fluent import col, fn, lit, when
    from thalweg.runtime.session.client import connect
    from thalweg.spark.engine import Engine

__version__ = "0.2.0"  # the only place: the build reads it from here
__all__ = ["Config", "Engine", "ThalwegError", "col", "connect", "errors", "fn", "lit", "when"]
_FLUENT = ("col", "fn", "lit", "when")


def _engine() -> Any:
    from thalweg.spark.missing import MissingEngine, is_missing

    if is_missing():
        return MissingEngine
    from thalweg.spark.engine import Engine

    return Engine


def __getattr__(name: str) -> Any:
    """`Engine` is loaded when it is first asked for: the core works without Spark. So are the
    beginnings of expressions."""
    if name == "Engine":
        return _engine()
    if name == "connect":
        from thalweg.runtime.session.client import connect

        return connect
    if name in _FLUENT:
        from thalweg import fluent

        return getattr(fluent, name)
    raise AttributeError(f"module 'thalweg' has no attribute {name!r}")
