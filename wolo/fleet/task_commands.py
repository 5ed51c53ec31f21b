"""Runs the setup and verify commands of a task in its worktree, sandboxed as the agent's commands are."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from wolo.config import layers
from wolo.config.cli_options import Flags
from wolo.conversation.resources.secrets import make_secrets
from wolo.conversation.resources.tool_environment import (
    command_variables,
    find_sandbox,
    make_judge,
    plan_sandbox,
    sandbox_profile,
)
from wolo.errors import UsageError
from wolo.fleet.agent_run import AgentSettings
from wolo.fleet.bounded_programs import ProgramEnd, run_bounded
from wolo.fleet.containers import Container
from wolo.fleet.tasks import BatchTask
from wolo.guard.modes import find_mode
from wolo.guard.sandbox_contract import MOST_TRIES, Sandbox, SandboxedCommand
from wolo.messages.secret_values import ValueRedactor
from wolo.messages.terminal_text import clean
from wolo.places import Places, Site
from wolo.workspace.processes.command_environment import CommandVariables, find_program
from wolo.workspace.processes.output_capture import CapturedOutput
from wolo.workspace.processes.process_runner import Processes, ProgramStart
from wolo.workspace.root import Workspace, find_root

TIMEOUT_S = 3600.0
"""Time limit of a command whose task has none."""
_KEPT_BYTES = 1 << 20
"""Length of each end of the output."""


class CommandEnd(Struct, frozen=True):
    end: ProgramEnd
    output: str
    """Without its middle if it is long."""

    @property
    def succeeded(self) -> bool:
        return self.end.how == "exited" and self.end.exit_code == 0

    @property
    def why(self) -> str:
        """Its end in words, for a sentence."""
        if self.end.how != "exited":
            return {"timed_out": "took too long", "crowded": "started too many processes", "memory": "used too much memory"}[
                self.end.how
            ]
        code = self.end.exit_code
        return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with status {code}"


class TaskCommands:
    """The commands of one attempt."""

    def __init__(
        self, task: BatchTask, settings: AgentSettings, folder: Path, places: Places, processes: Processes, seat: int
    ) -> None:
        """Raises WoloError for settings that cannot be used."""
        flags: Flags = {name: value for name in ("mode",) if (value := task.mode or settings.mode)}
        self._task = task
        self._site = Site(places, find_root(folder), folder, os.environ)
        self._processes = processes
        self._seat = seat
        self._workspace = Workspace(folder, (), folder)
        self._config = layers.load(self._site, flags, settings.sets)
        self._walls: Sandbox | None = None
        self._is_planned = False
        self.container: Container | None = None
        """Instead of the sandbox."""

    @property
    def variables(self) -> tuple[str, ...]:
        """Names that `shell.env` and the task list."""
        return tuple(dict.fromkeys((*self._config.settings.shell.env, *self._task.env)))

    @property
    def is_enclosed(self) -> bool:
        """Neither these commands nor the agent's can hand the worktree to a program that outlives them."""
        settings = self._config.settings
        return self.container is None and find_mode(settings.mode).name != "yolo" and settings.sandbox.backend != "off"

    async def run(self, command: str, timeout_s: float | None) -> CommandEnd:
        """Does not raise for a failing command. A cancellation ends it with all it started. Raises OSError, ToolError."""
        if not self._is_planned and self.container is None:
            self._walls = await asyncio.to_thread(self._make_walls)
            self._is_planned = True
        folder = self._workspace.root
        shell = find_program("bash", self._workspace) or "/bin/sh"
        options = ("--noprofile", "--norc") if shell.endswith("bash") else ()
        variables = await asyncio.to_thread(self._find_variables)
        env = variables.select(is_outside=self._walls is None)
        for _ in range(MOST_TRIES):
            printed = CapturedOutput(_KEPT_BYTES)
            inside = () if self._walls is None else variables.set_inside()
            argv = (*inside, shell, *options, "-c", command)
            if self._walls is None:  # under a shell of its own, so that `kill $PPID` ends that one
                enclosed = SandboxedCommand((argv[0], "-c", '"$@"; exit $?', "sh", *argv))
            else:
                await asyncio.to_thread(self._walls.prepare)
                enclosed = self._walls.wrap(argv, folder)
            if self.container is not None:
                enclosed = SandboxedCommand(self.container.command_argv(command, folder))
                env = dict(os.environ)  # of the program that starts the container
            start = ProgramStart(
                argv=enclosed.argv,
                cwd=folder,
                env=env,
                pass_fds=enclosed.pass_fds,
                cleanup=enclosed.cleanup,
                why_ended=enclosed.why_ended,
                is_alone=True,
            )
            end = await run_bounded(
                self._processes,
                start,
                printed.add,
                timeout_s=timeout_s or TIMEOUT_S,
                resources=self._task.resources,
                seat=self._seat,
            )
            if end.how != "exited" or enclosed.has_begun():
                break
        why = enclosed.why_ended()
        head, tail = printed.take()
        gap = f"\n… {printed.omitted_bytes:,} bytes left out …\n".encode() if printed.omitted_bytes else b""
        output = (head + gap + tail).decode("utf-8", "replace") + (f"[the sandbox ended it: {why}]\n" if why else "")
        # Values that only these commands get are in no log.
        values = (os.environ.get(name, "") for name in self._task.setup_env)
        return CommandEnd(end, clean(ValueRedactor(values).text(output)))

    def _find_variables(self) -> CommandVariables:
        secrets = make_secrets(self._site.places, self._config.settings, (self._workspace.root,))
        return replace(command_variables(self._config, secrets), passed=(*self.variables, *self._task.setup_env))

    def _make_walls(self) -> Sandbox | None:
        """None where the user has chosen that commands have no sandbox. Raises UsageError when there is none."""
        plan = plan_sandbox(self._config, self._workspace, self._site.places)
        selection = plan.selection
        if selection.make is None:
            if plan.mode.name == "yolo" or self._config.settings.sandbox.backend == "off":
                return None
            selection = find_sandbox(
                self._config, self._workspace, self._site.places
            )  # nobody could approve a command of the file
        if selection.make is None:
            raise UsageError(
                "setup and verify run in the sandbox only, and this machine has none.",
                hint="--mode yolo or --set sandbox.backend=off runs them without one.",
            )
        outputs = self._site.places.data / "blobs"
        site = replace(self._site, cwd=self._workspace.root)
        judge = make_judge(self._config, plan.mode, self._workspace, site, outputs, ())
        return selection.make(sandbox_profile(judge, self._workspace, self._site.places))

    def close(self) -> None:
        if self._walls is not None:
            self._walls.close()


Note = Callable[[str], None]
"""Writes a line to the attempt's log."""
