"""`python -m thalweg.testing.random_statements FIRST END`: judge the statements of these seeds."""

from __future__ import annotations

import sys
from collections import Counter

from thalweg.testing.random_statements import random_statement
from thalweg.testing.random_statements.judge import Outcome, judge


def main(first: int, end: int) -> int:
    """The number of faults; each is shown with its seed, and at the end how many there are of
    what."""
    counts: Counter[Outcome] = Counter()
    for seed in range(first, end):
        statement = random_statement(seed)
        verdict = judge(statement)
        counts[verdict.outcome] += 1
        if verdict.outcome is Outcome.FAULT:
            print(f"### {seed}\n{statement.text}\n{verdict.detail}", file=sys.stderr)
    for outcome in Outcome:
        print(f"{counts[outcome]:7d} {outcome.value}", file=sys.stderr)
    return counts[Outcome.FAULT]


if __name__ == "__main__":
    sys.exit(min(main(*map(int, sys.argv[1:3])), 1))
