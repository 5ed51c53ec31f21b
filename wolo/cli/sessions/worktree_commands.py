"""`wolo worktree`: lists the worktrees of sessions, merges or prints what they changed, and removes them."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wolo.cli.listing import AsJson, pad, print_json
from wolo.errors import WoloError
from wolo.frontends.streams import confirm, print_line, print_message, print_messages, stdout_bytes
from wolo.frontends.wrapping import cells
from wolo.messages.terminal_text import quantity
from wolo.places import Notices, find_places
from wolo.workspace.session_worktrees import (
    find_worktree_named,
    merge_work,
    open_worktree,
    patch_of,
    remove_worktree,
    save_work,
    worktree_around,
    worktrees_of,
)

if TYPE_CHECKING:
    from wolo.workspace.session_worktrees import SessionWorktree

Name = Annotated[str, typer.Argument(metavar="NAME", show_default=False)]
app = typer.Typer(rich_markup_mode=None)


def work_in_worktree(name: str, ref: str, run: Callable[[], int], *, asks: bool) -> int:
    """Runs in a worktree, which is made when it is new; then says what became of its work, or asks. Raises WoloError."""
    cwd, notices = Path.cwd().resolve(), Notices()
    try:
        each = open_worktree(find_places().worktrees, cwd, name, ref, notices)
    except OSError as error:
        raise WoloError(f"The worktree cannot be made: {error.strerror}.") from error
    print_messages(notices)
    below = each.folder / cwd.relative_to(each.origin) if cwd.is_relative_to(each.origin) else each.folder
    os.chdir(below if below.is_dir() else each.folder)
    print_message(f"Working in worktree {each.name}, on {each.branch}: {Path.cwd()}")
    try:
        return run()
    finally:
        with suppress(OSError):
            os.chdir(cwd)
        _settle(each, cwd, asks=asks)


def settle_moved(end: Path) -> None:
    """Asks about the worktree that a session was moved to and ended in, if any."""
    if (each := worktree_around(find_places().worktrees, end)) and not Path.cwd().is_relative_to(each.folder):
        _settle(each, Path.cwd(), asks=True)


def _settle(each: SessionWorktree, cwd: Path, *, asks: bool) -> None:
    try:
        _save_and_ask(each, cwd, asks=asks)
    except (WoloError, OSError) as error:
        print_message(f"Worktree {each.name} stays: {error}")


def _save_and_ask(each: SessionWorktree, cwd: Path, *, asks: bool) -> None:
    """Saves the work on its branch. Raises WoloError, OSError."""
    work = save_work(each)
    if work.is_merged:
        print_message(f"Worktree {each.name}: nothing that is not merged. `wolo worktree remove {each.name}` removes it.")
        return
    print_message(f"Worktree {each.name}: {quantity(work.num_files, 'file')} changed, saved on {each.branch}.")
    if not asks:
        print_message(f"`wolo worktree merge {each.name}` merges it; `patch` prints it; `remove` removes it.")
        return
    try:
        answer = input("keep, merge, patch or remove? [k/m/p/r] ").strip().lower()[:1]
    except (EOFError, KeyboardInterrupt):
        answer = ""
    if answer == "m":
        print_message(merge_work(each))
        print_message(remove_worktree(each, force=False))
    elif answer == "p":
        file = cwd / f"{each.name}.patch"
        with file.open("xb") as opened:  # never over another file
            opened.write(patch_of(each).encode("utf-8", "surrogateescape"))
        print_message(f"Wrote {file}; the worktree stays.")
    elif answer == "r":
        print_message(remove_worktree(each, force=confirm("Its work is merged nowhere. Remove it all the same?")))


@app.command("list")
def list_worktrees(as_json: AsJson = False) -> None:
    """List the worktrees of this repository, and whether their work is merged."""
    rows: list[dict[str, Any]] = []
    for each in worktrees_of(find_places().worktrees, Path.cwd()):
        row = {"name": each.name, "branch": each.branch, "folder": str(each.folder), "origin": str(each.origin)}
        try:
            work = save_work(each)
        except WoloError as error:
            rows.append({**row, "files_changed": None, "state": "broken", "error": error.message})
            continue
        state = "merged" if work.is_merged and work.num_files else "unmerged" if work.num_files else "unchanged"
        if not each.folder.is_dir():
            state += ", files gone"
        rows.append({**row, "base": each.base, "commit": work.commit, "files_changed": work.num_files, "state": state})
    if as_json:
        print_json(rows)
        return
    if not rows:
        print_message("There is no worktree of this repository.", hint="`wolo --worktree NAME` makes one.")
    widths = [max((cells(str(row[key])) for row in rows), default=0) for key in ("name", "state")]
    for row in rows:
        print_line(f"{pad(str(row['name']), widths[0])}  {pad(str(row['state']), widths[1])}  {row['folder']}")


@app.command("merge")
def merge_worktree(name: Name) -> None:
    """Merge what a worktree changed into the branch that is checked out here; uncommitted changes of both sides are kept.

    When both changed the same lines, nothing is changed, and the exit status is 1.
    """
    print_line(merge_work(_find(name)))


@app.command("patch")
def print_patch(name: Name) -> None:
    """Print everything that a worktree changed, for `git apply`."""
    with stdout_bytes() as write:
        write(patch_of(_find(name)).encode("utf-8", "surrogateescape"))


@app.command("remove")
def remove(
    name: Name, force: Annotated[bool, typer.Option("--force", help="Also when its work is in no other branch.")] = False
) -> None:
    """Remove a worktree and its branch; refused while it has work that is merged nowhere, or a session is open in it."""
    from wolo.sessions.store import Store

    each, data = _find(name), find_places().data
    if (data / "wolo.db").exists():
        with Store.open_to_read(data) as store:
            users = [info.id for info in store.list(each.folder) if store.is_live(info.id)]
        if users:
            raise WoloError(f"Session {users[0]} is open in worktree {name}, so it stays.", hint="Quit it first.")
    print_line(remove_worktree(each, force=force))


def _find(name: str) -> SessionWorktree:
    return find_worktree_named(find_places().worktrees, Path.cwd(), name)
