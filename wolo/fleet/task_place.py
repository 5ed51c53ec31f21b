"""The place of a task: its worktree, its container if it has one, and its commands, prepared by its setup command."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Struct

from wolo.errors import UsageError, WoloError
from wolo.fleet.agent_run import AgentSettings
from wolo.fleet.containers import Container, ContainerEngine
from wolo.fleet.mirrors import Mirrors
from wolo.fleet.task_commands import CommandEnd, Note, TaskCommands
from wolo.fleet.tasks import BatchTask
from wolo.fleet.worktree_pool import WorktreePool
from wolo.fleet.worktrees import Worktree, adopt_folder, make_worktree, rebase
from wolo.places import Places, make_private
from wolo.workspace.git import Git
from wolo.workspace.processes.process_runner import Processes


class SetupFailed(WoloError):
    """The setup command failed, so nothing was tried."""

    kind = "setup"

    def __init__(self, ended: CommandEnd) -> None:
        super().__init__(ended.failure)
        self.is_for_memory = ended.end.how == "memory"


class PlaceTools(Struct, frozen=True):
    """What a process makes places with."""

    settings: AgentSettings
    mirrors: Mirrors
    mirrors_folder: Path
    pool: WorktreePool
    git: Git
    places: Places
    processes: Processes
    find_engine: Callable[[], ContainerEngine]
    """Raises ContainerFailed. May block."""


class TaskPlace:
    """Begin with `prepare`; `close` also after a failure of it."""

    sandbox: str | None = None
    """Of its setup command; None: there is none."""
    folder: Path | None = None
    """Of the worktree; None: there is none yet."""
    worktree: Worktree

    def __init__(
        self,
        task: BatchTask,
        work: Path,
        tools: PlaceTools,
        note: Note,
        *,
        seat: int = 0,
        begin_phase: Callable[[str], None] = lambda name: None,
    ) -> None:
        """`work` is a new folder. `seat` as for `run_bounded`."""
        self.container: Container | None = None
        self._task, self._work, self._tools, self._note, self._seat = task, work, tools, note, seat
        self._begin_phase = begin_phase
        self._commands: TaskCommands | None = None

    @property
    def commands(self) -> TaskCommands:
        assert self._commands is not None
        return self._commands

    async def prepare(self, *, writable: Sequence[Path] = (), readable: Sequence[Path] = ()) -> None:
        """A container gets `writable` and `readable` besides the worktree. Raises SetupFailed, WoloError, OSError."""
        task, tools = self._task, self._tools
        if missing := [name for name in task.setup_env if name not in os.environ]:
            names = ", ".join(missing)
            raise UsageError(f"Task {task.id} needs {names} (setup_env), which is not set here.", hint="Set it, and try again.")
        self._begin_phase("worktree")
        if task.image:
            self.container = Container(await asyncio.to_thread(tools.find_engine), task)
        if self.container is not None and task.workdir:
            self._work.mkdir(parents=True)
            folder = self._work / "workdir"
            await asyncio.to_thread(self.container.copy_workdir, folder)
            self.worktree = await adopt_folder(folder, self._work, tools.git)
            borrowed = self.worktree.git_dir
        else:
            self.worktree = await make_worktree(task, self._work, tools.mirrors, tools.git, self._note, tools.pool)
            borrowed = tools.mirrors_folder
        if self.container is not None:
            make_private(borrowed)
            # Nothing else of the attempt: what makes its patch is out of reach.
            self.container.mount(self.worktree.folder, writable=writable, readable=(borrowed, *readable))
        self.folder = folder = self.worktree.folder
        self._commands = TaskCommands(task, tools.settings, folder, tools.places, tools.processes, self._seat)
        self._commands.container = self.container
        if task.setup:
            self._begin_phase("setup")
            self._note(f"$ {task.setup}")
            ended = await self.commands.run(task.setup, "setup")
            self._note(ended.output)
            self.sandbox = ended.sandbox
            if not ended.succeeded:
                raise SetupFailed(ended)
            self.worktree = await rebase(self.worktree, tools.git)

    async def give_back(self, *, is_ended: bool) -> None:
        """Call after `close`. `is_ended`: it came to its end, and was not cancelled."""
        if self.folder is not None:
            is_enclosed = self._commands is not None and self._commands.is_enclosed
            is_clean = is_ended and is_enclosed and not self._tools.processes.has_orphans()
            await self._tools.pool.give_back(self.folder, is_clean=is_clean)

    def close(self) -> None:
        """May block."""
        if self._commands is not None:
            self._commands.close()
        if self.container is not None:
            self.container.remove()
