"""Running statements, one after another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from thalweg.lang.parsing.places import placed
from thalweg.statements.protocol import Effect, Statement
from thalweg.statements.services import Reading, Services


def run_statements(statements: Sequence[Statement], on: Services, script: str) -> Any:
    """The result of the last one."""
    result: Any = None
    for statement in statements:
        with placed(script, statement.at):
            result = statement.run(on.reading if statement.effect is Effect.READ else on, script)
    return result


def run_reads(statements: Sequence[Statement], on: Reading, script: str) -> Any:
    """The same for statements that only read."""
    result: Any = None
    for statement in statements:
        with placed(script, statement.at):
            result = statement.run(on, script)
    return result


def changes_registrations(statement: Statement) -> bool:
    """Whether it changes what is registered, and nothing is read from a source for it."""
    return statement.effect in (Effect.CHANGE, Effect.COMMIT)


def commits(statement: Statement) -> bool:
    """Whether it is to be committed when it returns."""
    return statement.effect is Effect.COMMIT
