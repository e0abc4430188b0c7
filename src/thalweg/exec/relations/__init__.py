"""How each kind of relation runs; importing the modules fills `RUNS`."""

from thalweg.exec.relations import block, counted, over, union
from thalweg.exec.relations.protocol import RUNS

__all__ = ["RUNS", "block", "counted", "over", "union"]
