"""`thalweg vacuum`: remove from a path what nothing needs, and say what went."""

from __future__ import annotations

from rich.console import Console

from thalweg.cli.sizes import format_bytes, plural
from thalweg.errors import PathError
from thalweg.lang.durations import parse_duration
from thalweg.runtime.state.clock import wall_clock
from thalweg.runtime.state.open_path import claim, hold, refuse_foreign, release
from thalweg.runtime.upkeep.inspection import Files
from thalweg.runtime.upkeep.vacuum import VacuumPlan, carry_out, plan_vacuum
from thalweg.store.storage import LocalStorage, open_storage


def vacuum(
    path: str,
    dry_run: bool = False,
    results_older_than: str | None = None,
    console: Console | None = None,
) -> None:
    """Claim the path, clean it, tell; a dry run only tells."""
    console = console or Console(highlight=False)
    clock = wall_clock()
    limit = None if results_older_than is None else clock - parse_duration(results_older_than)
    storage = open_storage(path)
    refuse_foreign(storage)
    if not dry_run and not isinstance(storage, LocalStorage):
        raise PathError(
            f"{path} is remote, where a running engine cannot be told from a stopped one",
            remedy="use --dry-run to look; an engine that opens the path removes what is left over",
        )
    lock = hold(storage) if dry_run else claim(storage)
    try:
        plan = plan_vacuum(storage, limit, clock)
        if not dry_run:
            carry_out(storage, plan)
    finally:
        release(lock)
    for line in _told(plan, dry_run):
        console.print(line, soft_wrap=True)


def _told(plan: VacuumPlan, dry_run: bool) -> list[str]:
    removed = "would remove" if dry_run else "removed"
    lines = [
        f"{removed} {_files(found, what)}"
        for found, what in (
            (plan.orphans, "that nothing referred to"),
            (plan.results, f"of results ({plural(plan.result_epochs, 'epoch')})"),
            (plan.manifests, "of superseded manifests"),
        )
        if found.files
    ]
    if plan.folders:
        lines.append(f"{removed} {plural(len(plan.folders), 'empty folder')}")
    if plan.undelivered:
        kept = plural(plan.undelivered, "epoch")
        lines.append(f"results of {kept} are kept: callbacks or followers may not have seen them")
    if plan.is_idle:
        return [*lines, "nothing to do"]
    freed = "would free" if dry_run else "freed"
    return [*lines, f"{freed} {format_bytes(plan.freed)}"]


def _files(found: Files, what: str) -> str:
    return f"{plural(found.files, 'file')} {what}, {format_bytes(found.bytes)}"
