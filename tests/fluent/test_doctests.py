"""The examples in the docstrings run."""

from __future__ import annotations

import doctest
import importlib

import pytest


@pytest.mark.parametrize("module", ["", ".calls", ".expressions", ".functions", ".streams"])
def test_examples_run(module: str) -> None:
    failed, tried = doctest.testmod(importlib.import_module(f"thalweg.fluent{module}"))
    assert tried
    assert not failed
