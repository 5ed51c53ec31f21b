"""/add-dir, /worktree, /move: the directories that a session works in."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

from wolo.commands.arguments import words
from wolo.commands.command import Command, CommandContext, Outcome, ShowText, SwitchConversation
from wolo.conversation.resources.startup import ConversationChange
from wolo.errors import UsageError, WoloError
from wolo.messages.terminal_text import clean_line
from wolo.places import Notices, find_places


async def _add_dir(context: CommandContext, rest: str) -> Outcome:
    workspace = context.conversation.permissions.workspace
    if not rest:
        listed = "\n".join(f"  {clean_line(str(path))}" for path in (workspace.root, *workspace.extra))
        return ShowText(f"Workspace:\n{listed}\n\n/add-dir DIR adds a directory until you quit.")
    named = words(rest)
    if len(named) != 1:
        raise UsageError("/add-dir takes one directory; quote a name with blanks.", hint="/add-dir ../library")
    path = await asyncio.to_thread(_directory, context.conversation.info.cwd, named[0])
    opened = await context.conversation.reopen(ConversationChange(directories=(str(path),)))
    return SwitchConversation(opened, text=f"Added {clean_line(str(path))} to the workspace until you quit.")


def _directory(cwd: Path, name: str) -> Path:
    path = cwd / Path(name).expanduser()
    if not path.is_dir():
        raise UsageError(f"No such directory: {clean_line(str(path))}.")
    return path


WORKTREE_USAGE = "[NAME] [--from REF]"


async def _worktree(context: CommandContext, rest: str) -> Outcome:
    from wolo.workspace.session_worktrees import save_work, worktree_around  # noqa: PLC0415  # few sessions have one

    each = worktree_around(find_places().worktrees, context.conversation.info.cwd.resolve())
    if each is None:
        return await _enter(context, rest, moves_changes=False)
    if rest:
        raise UsageError(f"This session is in worktree {each.name} already.", hint="/worktree shows it.")
    work = await asyncio.to_thread(save_work, each)
    state = "merged" if work.is_merged else f"not merged: `wolo worktree merge {each.name}` in {each.origin}"
    return ShowText(f"Worktree {each.name}, on {each.branch}: {work.num_files} files changed, {state}.")


async def _move(context: CommandContext, rest: str) -> Outcome:
    return await _enter(context, rest, moves_changes=True)


async def _enter(context: CommandContext, rest: str, *, moves_changes: bool) -> Outcome:
    from wolo.workspace.session_worktrees import open_worktree, worktree_around  # noqa: PLC0415  # as above

    conversation, places, notices = context.conversation, find_places(), Notices()
    name, ref = _name_and_ref(words(rest))
    if moves_changes and ref:
        raise UsageError("/move begins at the last commit, with its changes.", hint="/worktree takes --from.")
    cwd = conversation.info.cwd.resolve()
    if inside := worktree_around(places.worktrees, cwd):
        raise UsageError(f"This session is in worktree {inside.name} already.", hint="/worktree shows it.")
    make = partial(open_worktree, places.worktrees, cwd, name, ref, notices, moves_changes=moves_changes)
    try:
        each = await asyncio.to_thread(make)
    except OSError as error:
        raise WoloError(f"The worktree cannot be made: {error.strerror}.") from error
    below = each.folder / cwd.relative_to(each.origin)
    opened = await conversation.reopen(ConversationChange(cwd=below if below.is_dir() else each.folder))
    changes = "; uncommitted changes came along" if moves_changes else ""
    lines = [*notices, f"Continuing in worktree {each.name}, on {each.branch}{changes}: {each.folder}"]
    return SwitchConversation(opened, text="\n".join(lines))


def _name_and_ref(parts: list[str]) -> tuple[str, str]:
    ref = ""
    if "--from" in parts:
        at = parts.index("--from")
        if len(parts) == at + 1:
            raise UsageError("--from needs a branch, tag or commit.", hint=f"/worktree {WORKTREE_USAGE}")
        ref = parts[at + 1]
        del parts[at : at + 2]
    if len(parts) > 1:
        raise UsageError("A worktree has one name.", hint=f"/worktree {WORKTREE_USAGE}")
    return "".join(parts), ref


COMMANDS = (
    Command(
        "add-dir",
        "add a directory to the workspace",
        _add_dir,
        doing="adding the directory",
        usage="[DIR]",
        more="Lasts until you quit; --add-dir does the same at start-up. Without DIR: list the directories of the workspace.",
        group="Permissions",
    ),
    Command(
        "worktree",
        "continue in a worktree of this repository",
        _worktree,
        doing="making the worktree",
        usage=WORKTREE_USAGE,
        more="On the branch wolo/NAME, from the last commit or REF; uncommitted changes stay here. In a worktree: its state. "
        "`wolo worktree` lists, merges and removes them.",
        group="Sessions",
    ),
    Command(
        "move",
        "continue in a worktree, with the uncommitted changes",
        _move,
        doing="moving to a worktree",
        usage="[NAME]",
        more="As /worktree; uncommitted changes are there too, and count once when the worktree is merged. They also stay here.",
        group="Sessions",
    ),
)
