"""Benchmarks import each other by name; `thalweg bench` puts their folder on the path, as here."""

from __future__ import annotations

import sys

from thalweg.cli import bench

sys.path.insert(0, str(bench.folder()))
