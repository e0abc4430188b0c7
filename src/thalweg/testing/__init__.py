"""Oracles and the engine without Spark: `Runner`, the reference evaluator, generators, the grid."""

from __future__ import annotations

from thalweg.testing.runner import Runner

__all__ = ["Runner"]
