"""Grades a patch where its author cannot reach: a fresh worktree, the patch, then the files that judge it."""

from __future__ import annotations

import asyncio
import hashlib
import os
from pathlib import Path

import msgspec

from wolo.errors import WoloError
from wolo.fleet.agent_run import AgentEnd
from wolo.fleet.ledger.outcomes import Failure
from wolo.fleet.task_commands import CommandEnd, Note
from wolo.fleet.task_place import PlaceTools, TaskPlace
from wolo.fleet.tasks import BatchTask
from wolo.fleet.worktrees import Worktree
from wolo.workspace.git import Git, GitFailed


class PatchUnfit(WoloError):
    """The patch, or its links, leave no place for what judges it."""

    kind = "patch"


def is_hidden(task: BatchTask) -> bool:
    """What judges the task comes after the agent."""
    return bool(task.verify_files or task.test_patch)


def verify_hash(task: BatchTask) -> str | None:
    """Hash of everything that judges the task; None: nothing does."""
    if not task.verify:
        return None
    judges = {"verify": task.verify, "files": task.verify_files, "patch": task.test_patch, "setup": task.setup}
    return hashlib.sha256(msgspec.json.encode(judges, order="deterministic")).hexdigest()


async def grade(task: BatchTask, work: Path, patch: Path | None, tools: PlaceTools, note: Note, *, seat: int = 0) -> CommandEnd:
    """Runs the verify command below the new folder `work`. Raises SetupFailed, PatchUnfit, GitFailed, WoloError, OSError."""
    place, ended = TaskPlace(task, work, tools, note, seat=seat), None
    try:
        await place.prepare()
        worktree = place.worktree
        if patch is not None:
            await _apply(worktree, patch, tools.git, "The patch")
        if task.test_patch:
            # The files that it changes are as they were in the beginning first, whatever the agent made of them.
            file = work / "tests.diff"
            git = tools.git
            text = task.test_patch if task.test_patch.endswith("\n") else f"{task.test_patch}\n"
            await asyncio.to_thread(file.write_text, text, "utf-8", "surrogateescape", "")
            for name in await _names_in(file, worktree, git):
                await asyncio.to_thread(_clear_place, worktree.folder, name)
                known = await git.run("ls-tree", "-z", worktree.base, "--", name, cwd=worktree.folder, env=worktree.environment)
                if known:
                    await git.run("checkout", "-q", worktree.base, "--", name, cwd=worktree.folder, env=worktree.environment)
            try:
                await _apply(worktree, file, git, "The test patch")
            except PatchUnfit as error:
                raise GitFailed(error.message) from error  # of the task, since all that it changes is as it was
        for name, content in task.verify_files.items():
            await asyncio.to_thread(_write, worktree.folder, name, content)
        ended = await place.commands.run(task.verify, "verify")
        return ended
    finally:
        await asyncio.shield(asyncio.to_thread(place.close))
        await asyncio.shield(place.give_back(is_ended=ended is not None))


def judgement(ended: CommandEnd) -> AgentEnd:
    """What the end of the verify command means for the task."""
    if ended.succeeded:
        return AgentEnd("passed")
    failure = Failure("verify", ended.failure)
    match ended.end.how:
        case "timed_out":
            return AgentEnd("timeout", failure)
        case "memory":
            return AgentEnd("errored", Failure("memory", ended.failure), retryable=True)
    return AgentEnd("failed", failure)


async def _names_in(patch: Path, worktree: Worktree, git: Git) -> set[str]:
    """Files that it changes, with the former names of those that it moves: these are what it has read backwards."""
    names = set()
    for direction in ((), ("-R",)):
        listed = await git.run(
            *("apply", *direction, "--numstat", "-z", str(patch)), cwd=worktree.folder, env=worktree.environment
        )
        names |= {entry.split("\t", 2)[2] for entry in listed.split("\0") if entry.count("\t") >= 2}
    return names


async def _apply(worktree: Worktree, file: Path, git: Git, what: str) -> None:
    words = ("apply", "--whitespace=nowarn", str(file))
    try:
        await git.run(*words, cwd=worktree.folder, env=worktree.environment)
    except GitFailed as error:
        raise PatchUnfit(f"{what} does not apply: {error.message}") from error


def _write(folder: Path, name: str, content: str) -> None:
    place = _clear_place(folder, name)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(content, "utf-8", newline="")


def _clear_place(folder: Path, name: str) -> Path:
    """Removes the file of the patch there. Raises PatchUnfit where a link or a file of the patch is in the way."""
    place = folder / name
    inside = os.path.realpath(folder)
    for parent in place.relative_to(folder).parents[-2::-1]:
        if (folder / parent).is_symlink() or (os.path.lexists(folder / parent) and not (folder / parent).is_dir()):
            raise PatchUnfit(f"The patch puts something else where {name} belongs.")
    if not os.path.realpath(place.parent).startswith(inside) or place.is_dir():
        raise PatchUnfit(f"The patch puts something else where {name} belongs.")
    if os.path.lexists(place):
        place.unlink()
    return place
