"""`wolo race`: one task by several models, or several tries, and the best patch applied."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Sequence
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wolo.cli.fleet.run_progress import work_on_run
from wolo.cli.listing import AsJson, cut, money, pad, print_json
from wolo.errors import UsageError
from wolo.frontends.streams import confirm, on_terminal, print_line, print_message
from wolo.frontends.wrapping import cells
from wolo.messages.terminal_text import quantity

if TYPE_CHECKING:
    from wolo.fleet.ledger.run_rows import Row
    from wolo.fleet.tasks import BatchTask

_MOST = 100
_AT_ONCE = 8


def race(
    task: Annotated[str, typer.Argument(metavar="TASK", help="The prompt; - for stdin.", show_default=False)],
    models: Annotated[str, typer.Option("--models", help="One try of each, or -n, with commas between.", metavar="MODELS")] = "",
    tries: Annotated[int | None, typer.Option("-n", "--tries", help="Tries.", metavar="N", show_default=False)] = None,
    verify: Annotated[str, typer.Option("--verify", help="Command that decides: status 0 passes.", metavar="COMMAND")] = "",
    setup: Annotated[str, typer.Option("--setup", help="Command that prepares each worktree.", metavar="COMMAND")] = "",
    model: Annotated[str, typer.Option("-m", "--model", help="For -n.", metavar="MODEL")] = "",
    account: Annotated[str, typer.Option("--account", help="Use the keys saved under this name.", metavar="NAME")] = "",
    mode: Annotated[str, typer.Option("--mode", help="Of all tries.", metavar="MODE")] = "",
    jobs: Annotated[int | None, typer.Option("-j", "--jobs", help="Tries at a time.", metavar="N", show_default=False)] = None,
    max_cost: Annotated[float | None, typer.Option("--max-cost", help="For all.", metavar="USD", show_default=False)] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Apply the winner's patch without asking.")] = False,
    as_json: AsJson = False,
) -> None:
    """Give one task to several models, compare what they made, and apply the best.

    Each try works on the last commit, in a worktree of its own; where there is no repository, on a copy of the folder.
    Exit status: 0 there is a winner; 1 none; 2 no try could be run.
    """
    from wolo.fleet.agent_run import AgentSettings
    from wolo.fleet.coordinator import BatchLimits, BatchOptions, create_run
    from wolo.fleet.evaluation.scores import choose_winner
    from wolo.fleet.preflight import ModelCheck
    from wolo.guard.modes import MODES

    racers = _racers(models, tries, model)
    if (jobs is not None and jobs < 1) or (max_cost is not None and not max_cost > 0):
        raise UsageError("-j takes 1 or more, --max-cost more than 0.")
    if mode and mode not in MODES:
        raise UsageError(f"{mode!r} is not a mode.", hint=f"Modes are {', '.join(MODES)}.")
    settings = AgentSettings(model=model, mode=mode, account=account)
    check = ModelCheck(settings)
    if not all(racers):
        check.default(priced=max_cost is not None)
    for name in filter(None, racers):
        if said := check(name, max_cost is not None):
            raise UsageError(f"{name}: {said}.")
    run = _name_folder()
    tasks = _tasks(_prompt(task), racers, run, verify=verify, setup=setup)
    count = jobs or min(len(tasks), _AT_ONCE)
    batch, identity = check.batch, check.identity(settings, tasks)
    requests, tokens, lease_s = batch.requests_per_minute, batch.tokens_per_minute, batch.lease_s
    options = BatchOptions(agent=settings, jobs=count, requests_per_minute=requests, tokens_per_minute=tokens)
    limits = BatchLimits(max_cost)
    with closing(create_run(run, tasks, options, limits, identity, lease_s=lease_s, provider_of=check.provider_of)) as ledger:
        signalled = work_on_run(ledger, run, count)
        rows, states = ledger.rows(), ledger.counts()
    winner, why = choose_winner(rows)
    if not as_json:
        _print_table(rows, winner, on_terminal())
        print_line(f"Winner: {winner.task.id}; {why}." if winner else f"No winner: {why}.")
        print_line(f"All patches, sessions and logs: {run}")
    is_applied = False
    if winner is not None and not signalled.exit_code:
        is_applied = _apply(run, winner, yes=yes and not signalled.is_drained, quiet=as_json)
    if as_json:
        print_json(_summary(run, rows, winner, why, is_applied=is_applied))
    if signalled.exit_code or winner is None:
        is_broken = {state for state, count in states.items() if count} <= {"errored", "lost"}
        raise typer.Exit(signalled.exit_code or (2 if is_broken else 1))


def _name_folder() -> Path:
    """Outside of the folders that agents may not change."""
    from wolo.places import find_places

    places = find_places()
    races = (places.users_data or places.data).with_name("wolo-races")
    return races / f"{datetime.now():%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"


def _racers(models: str, tries: int | None, model: str) -> list[str]:
    """The model of each try; empty: the user's default."""
    if not models and tries is None:
        raise UsageError("Name the models, or the number of tries.", hint="wolo race 'TASK' --models a,b   or   -n 3")
    if not models and tries is not None:
        if not 2 <= tries <= _MOST:
            raise UsageError(f"-n takes 2 to {_MOST}.")
        return [model] * tries
    named = [name.strip() for name in models.split(",")]
    if tries is not None and not (tries >= 1 and len(named) * tries <= _MOST):
        raise UsageError(f"-n takes 1 or more, and at most {_MOST} tries of all models together.")
    named *= tries or 1
    if not all(named) or not 2 <= len(named) <= _MOST:
        raise UsageError("--models takes two names or more, with commas between.", hint="-n 3 lets one model try three times.")
    if model:
        raise UsageError("-m is for -n; --models names the models.")
    return named


def _prompt(task: str) -> str:
    text = sys.stdin.buffer.read().decode("utf-8", "replace") if task == "-" else task
    if not text.strip():
        raise UsageError("The task is empty.")
    return text


def _tasks(prompt: str, racers: Sequence[str], run: Path, *, verify: str, setup: str) -> list[BatchTask]:
    from wolo.fleet.tasks import BatchTask
    from wolo.fleet.templates import Ids

    here = Path.cwd()
    top, ref = _last_commit(here)
    if not top and (run.is_relative_to(here.resolve()) or run.is_relative_to(here)):
        raise UsageError(f"{here} is no repository and too much to copy: it holds wolo's own data.", hint="Go to a project.")
    ids = Ids()
    names = [ids.of(name.rpartition("/")[2] or "try") for name in racers]
    return [
        BatchTask(id=id, prompt=prompt, repo=top or str(here), ref=ref, verify=verify, setup=setup, model=name)
        for id, name in zip(names, racers, strict=True)
    ]


def _last_commit(here: Path) -> tuple[str, str]:
    """The repository around the folder, and its last commit; empty: there is none. Raises UsageError, GitFailed."""
    from wolo.workspace.git_repository import find_repository, open_repository

    repo = find_repository(here)
    if repo is None:
        return "", ""
    with open_repository(repo) as repository:
        ref = repository.run("rev-parse", "--verify", "--quiet", "HEAD^{commit}").stdout.strip()
        if not ref:
            raise UsageError(f"{repo.top} has no commit yet, so there is nothing to start from.", hint="Commit first.")
        if repo.is_bare:
            return str(repo.top), ref
        if repo.top != here.resolve():
            print_message(f"The race is in the whole repository, {repo.top}.")
        if repository.run("status", "--porcelain", "--untracked-files=all", "--ignore-submodules=all").stdout:
            print_message("Uncommitted changes are not in the race: it starts from the last commit.")
    return str(repo.top), ref


def _print_table(rows: Sequence[Row], winner: Row | None, is_terminal: bool) -> None:
    from shutil import get_terminal_size

    heads = ("", "try", "state", "verify", "patch", "cost", "time")
    table = [heads, *(("*" if row is winner else "", *_cells(row)) for row in rows)]
    widths = [max(cells(line[at]) for line in table) for at in range(len(heads))]
    if is_terminal:
        spare = get_terminal_size().columns - sum(widths) - 2 * (len(widths) - 1)
        widths[1] = max(widths[1] + min(spare, 0), 8)
    for line in table:
        print_line("  ".join(pad(cut(cell, width), width) for cell, width in zip(line, widths, strict=True)).rstrip())


def _cells(row: Row) -> tuple[str, ...]:
    from wolo.fleet.exports.tables import seconds_of

    ended = row.outcome
    if ended is None:
        return row.task.id, row.state, "", "", "", ""
    verify, patch = ended.verify, ended.patch
    verified = "" if verify is None else "too slow" if verify.exit_code is None else f"status {verify.exit_code}"
    changed = f"{quantity(patch.files, 'file')}, {patch.size_bytes:,} bytes" if patch else "none"
    return row.task.id, row.state, verified, changed, money(ended.usage.cost_usd), f"{seconds_of(ended):.1f} s"


def _apply(run: Path, winner: Row, *, yes: bool, quiet: bool) -> bool:
    """Shows the patch and applies it on a yes. Raises WoloError."""
    from wolo.fleet.applying import apply_patch, prepare_patch

    if winner.outcome is None or winner.outcome.patch is None:
        print_message("The winner changed no file.")
        return False
    if not quiet:
        print_line()
        print_line(winner.outcome.patch.file_in(run).read_text("utf-8", "replace").rstrip("\n"))
    may_ask = not quiet and sys.stdin.isatty() and on_terminal()
    if not yes and not may_ask:
        print_message("Nothing was applied.", hint=f"wolo batch apply {run} {winner.task.id} --yes")
        return False
    ready = prepare_patch(run, winner, None, is_own=True)
    if ready.is_applied:
        print_message(f"{ready.target} already has these changes.")
        return True
    if not yes and not confirm(f"{'Merge this into' if ready.needs_merge else 'Apply this to'} {ready.target}?"):
        print_message("Nothing was applied.", hint=f"wolo batch apply {run} {winner.task.id}")
        return False
    apply_patch(ready)
    print_message(f"Applied to {ready.target}.")
    return True


def _summary(run: Path, rows: Sequence[Row], winner: Row | None, why: str, *, is_applied: bool) -> dict[str, Any]:
    import msgspec

    from wolo.fleet.exports.tables import as_line

    return {
        "run": str(run),
        "winner": winner.task.id if winner else None,
        "why": why,
        "applied": is_applied,
        "tries": [{"model": row.task.model, **msgspec.to_builtins(as_line(row))} for row in rows],
    }
