"""Going on with an earlier run: what the path knows is registered again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from thalweg.errors import ConfigError, ThalwegError
from thalweg.runtime.lifecycle.query_catalog import Callback, Registered
from thalweg.runtime.session.core import EngineCore
from thalweg.runtime.session.services import EngineServices
from thalweg.runtime.state.query_state import AUTO, QUERY


def restore_objects(core: EngineCore, services: EngineServices) -> None:
    """Know the objects of an earlier run, each through its kind."""
    for kind in core.language.objects:
        if kind.resume_from is not None:
            for name, text in core.definitions.of(kind.word).items():
                kind.resume_from(services, name, text)


def resume_queries(core: EngineCore, callbacks: Mapping[str, Callback] | None = None) -> None:
    """Resume queries that were not registered again, once their streams are there."""
    _resume_shared(core)
    known = core.queries.queries
    for name, member in core.cohorts.by_name.items():
        if name not in known:
            core.queries.add(Registered(name, member.text), [member.about])
    for name, dormant in core.state.dormant.items():
        if name not in known:
            said = dormant.definition
            refuse_without(core, name, said.reads)
            core.queries.add(Registered(name, said.text), said.reads)
            if said.materialize == AUTO:
                core.modes.watch(name, core.queries.bound(name))
    for name, query in core.state.of_kind(QUERY):
        if name not in known:
            _resume(core, name, query.definition.text, (callbacks or {}).get(name))


def _resume_shared(core: EngineCore) -> None:
    """What runs for several queries: views, cohorts and conditions."""
    try:
        core.retained_views.resume()
        core.cohorts.resume()
        core.condition_cohorts.resume()
    except ThalwegError as error:
        raise ConfigError(
            f"queries of an earlier run cannot go on: {error.message}",
            remedy="register their streams again before starting",
        ) from error


def _resume(core: EngineCore, name: str, text: str, callback: Callback | None) -> None:
    try:
        planned = core.registration.replanned(name, text)
        core.registration.admit(planned, callback)
    except ThalwegError as error:
        raise ConfigError(
            f"query {name} of an earlier run cannot go on: {error.message}",
            remedy="register its streams, tables and functions again before starting",
        ) from error


def refuse_without(core: EngineCore, name: str, reads: Iterable[str]) -> None:
    """Refuse to resume a query whose streams or tables are not there."""
    queries = core.state.queries
    missing = [r for r in reads if core.catalog.relation(r) is None and r not in queries]
    if missing:
        raise ConfigError(
            f"query {name} of an earlier run cannot go on: there is no {missing[0]}",
            remedy="register its streams, tables and functions again before starting",
        )
