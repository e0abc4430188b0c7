"""Runs a module of the benchmarks in a process of its own: `python child.py MODULE ARGUMENT ...`.

Python puts a script's folder on the path, and this one lies beside the folders of the benchmarks,
so that modules find each other whatever the working directory is. PYTHONPATH would reach Spark's
workers too, which must not know these modules. The module runs as `__main__`, so that its functions
are sent to workers by value.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path


def command(module: str, *arguments: str, python: str = sys.executable) -> list[str]:
    """How to start a module, for example `joins.thalweg_join`."""
    return [python, str(Path(__file__).absolute()), module, *arguments]


if __name__ == "__main__":
    runpy.run_module(sys.argv.pop(1), run_name="__main__", alter_sys=True)
