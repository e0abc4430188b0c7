"""The execution of each kind of relation; importing the modules fills `RUNS`."""

from thalweg.exec.relations import block, over, set_operations, union
from thalweg.exec.relations.protocol import RUNS

__all__ = ["RUNS", "block", "over", "set_operations", "union"]
