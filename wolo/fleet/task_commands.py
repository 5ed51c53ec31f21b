"""Runs the setup and verify commands of a task in its worktree, sandboxed as the agent's commands are.

A phase is a policy of the same sandboxed command: setup may connect through wolo's proxy, verify to nothing.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from wolo.config import layers
from wolo.config.cli_options import Flags
from wolo.conversation.resources import tool_environment
from wolo.conversation.resources.secrets import make_secrets
from wolo.errors import UsageError
from wolo.fleet.agent_run import AgentSettings
from wolo.fleet.bounded_programs import ProgramEnd, run_bounded
from wolo.fleet.containers import Container
from wolo.fleet.tasks import BatchTask, Phase
from wolo.guard.modes import find_mode
from wolo.guard.sandbox_contract import MOST_TRIES, Sandbox, SandboxedCommand
from wolo.messages.secret_values import ValueRedactor
from wolo.messages.terminal_text import clean
from wolo.places import Places, Site
from wolo.workspace.processes.command_environment import CommandVariables, find_program
from wolo.workspace.processes.output_capture import CapturedOutput
from wolo.workspace.processes.process_runner import Processes, ProgramStart
from wolo.workspace.root import Workspace, find_root

if TYPE_CHECKING:
    from wolo.tools.web.command_proxy import CommandProxy

TIMEOUT_S = 3600.0
"""Time limit of a command whose task has none."""
_KEPT_BYTES = 1 << 20
"""Length of each end of the output."""


class CommandEnd(Struct, frozen=True):
    phase: Phase
    end: ProgramEnd
    output: str
    """Without its middle if it is long."""
    sandbox: str
    """Its backend, `docker`, `podman`, or `none`."""
    place: str
    """The same in words, with the network."""

    @property
    def succeeded(self) -> bool:
        return self.end.how == "exited" and self.end.exit_code == 0

    @property
    def failure(self) -> str:
        """A sentence."""
        code = self.end.exit_code
        how = {
            "exited": f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with status {code}",
            "timed_out": "took too long",
            "crowded": "started too many processes",
            "memory": "used too much memory",
        }
        return f"The {self.phase} command {how[self.end.how]} ({self.place})."


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

    @property
    def _sandbox(self) -> str:
        if self.container is not None:
            return self.container.engine.name
        return self._walls.backend if self._walls else "none"

    async def run(self, command: str, phase: Phase, timeout_s: float | None = None) -> CommandEnd:
        """Does not raise for a failing command. A cancellation ends it with all it started.

        Raises OSError, ToolError, ContainerFailed, and UsageError where a demand of the task about the network cannot be met.
        """
        if not self._is_planned and self.container is None:
            self._walls = await asyncio.to_thread(self._make_walls)
            self._is_planned = True
        self._check_network(phase)
        if self.container is not None:
            await asyncio.to_thread(self.container.enter, network=self._task.allows_network(phase))
        variables = await asyncio.to_thread(self._find_variables)
        for _ in range(MOST_TRIES):
            printed = CapturedOutput(_KEPT_BYTES)
            proxy = self._open_proxy(phase)
            try:
                enclosed = await self._enclose(command, variables, proxy)
                end = await self._run_enclosed(enclosed, variables, printed, timeout_s or TIMEOUT_S)
            finally:
                if proxy is not None:
                    proxy.close()
            if end.how != "exited" or enclosed.has_begun():
                break
        if self.container is not None:
            if end.exit_code and await asyncio.to_thread(self.container.ran_out_of_memory):
                end = replace(end, how="memory")
            await asyncio.to_thread(self.container.leave)
        head, tail = printed.take()
        gap = f"\n… {printed.omitted_bytes:,} bytes left out …\n".encode() if printed.omitted_bytes else b""
        output = (head + gap + tail).decode("utf-8", "replace")
        why, denial = enclosed.why_ended(), proxy.denial() if proxy else ""
        output += (f"[the sandbox ended it: {why}]\n" if why else "") + (f"{denial}\n" if denial else "")
        # Values that only these commands get are in no log.
        values = (os.environ.get(name, "") for name in self._task.setup_env)
        return CommandEnd(phase, end, clean(ValueRedactor(values).text(output)), self._sandbox, self._place(phase))

    async def _enclose(self, command: str, variables: CommandVariables, proxy: CommandProxy | None) -> SandboxedCommand:
        if self.container is not None:
            return SandboxedCommand(self.container.command_argv(command))
        shell = find_program("bash", self._workspace) or "/bin/sh"
        options = ("--noprofile", "--norc") if shell.endswith("bash") else ()
        inside = () if self._walls is None else variables.set_inside()
        argv = (*inside, shell, *options, "-c", command)
        if self._walls is None:  # under a shell of its own, so that `kill $PPID` ends that one
            return SandboxedCommand((argv[0], "-c", '"$@"; exit $?', "sh", *argv))
        await asyncio.to_thread(self._walls.prepare)
        return self._walls.wrap(argv, self._workspace.root, proxy_fd=proxy.fd if proxy else -1)

    async def _run_enclosed(
        self, enclosed: SandboxedCommand, variables: CommandVariables, printed: CapturedOutput, timeout_s: float
    ) -> ProgramEnd:
        is_engine = self.container is not None  # the program that starts it inside gets everything
        start = ProgramStart(
            argv=enclosed.argv,
            cwd=self._workspace.root,
            env=dict(os.environ) if is_engine else variables.select(is_outside=self._walls is None),
            pass_fds=enclosed.pass_fds,
            cleanup=enclosed.cleanup,
            why_ended=enclosed.why_ended,
            is_alone=True,
        )
        resources = self._task.resources
        return await run_bounded(self._processes, start, printed.add, timeout_s=timeout_s, resources=resources, seat=self._seat)

    def _has_network(self, phase: Phase) -> bool:
        """None is taken away without a sandbox."""
        is_allowed = self._task.allows_network(phase)
        return is_allowed if self.container is not None else self._walls is None or (is_allowed and self._walls.has_proxy)

    def _check_network(self, phase: Phase) -> None:
        """Raises UsageError."""
        demand = self._task.network_demand(phase)
        if demand is not None and demand != self._has_network(phase):
            place, wish = self._place(phase), "needs the network" if demand else "must have no network"
            raise UsageError(
                f"{phase} {wish} ({phase}_network), and runs {place}.",
                hint="Remove the field to run it as it is." if demand else "Run it in the sandbox, or in an image.",
            )

    def _place(self, phase: Phase) -> str:
        network = "with network" if self._has_network(phase) else "without network"
        if self.container is not None:
            return f"in a container of {self._task.image}, {network}"
        return f"in the sandbox {self._walls.backend}, {network}" if self._walls else "without a sandbox, with network"

    def _open_proxy(self, phase: Phase) -> CommandProxy | None:
        if self._walls is None or not self._has_network(phase):
            return None
        from wolo.tools.web.command_proxy import CommandProxy  # noqa: PLC0415  # few commands connect to anything

        return CommandProxy(tool_environment.load_network(self._config, is_open=True))

    def _find_variables(self) -> CommandVariables:
        secrets = make_secrets(self._site.places, self._config.settings, (self._workspace.root,))
        return replace(tool_environment.command_variables(self._config, secrets), passed=(*self.variables, *self._task.setup_env))

    def _make_walls(self) -> Sandbox | None:
        """None where the user has chosen that commands have no sandbox. Raises UsageError when there is none."""
        plan = tool_environment.plan_sandbox(self._config, self._workspace, self._site.places)
        selection = plan.selection
        if selection.make is None:
            if plan.mode.name == "yolo" or self._config.settings.sandbox.backend == "off":
                return None
            selection = tool_environment.find_sandbox(
                self._config, self._workspace, self._site.places
            )  # nobody could approve a command of the file
        if selection.make is None:
            raise UsageError(
                "setup and verify run in the sandbox only, and this machine has none.",
                hint="--mode yolo or --set sandbox.backend=off runs them without one.",
            )
        outputs = self._site.places.data / "blobs"
        site = replace(self._site, cwd=self._workspace.root)
        judge = tool_environment.make_judge(self._config, plan.mode, self._workspace, site, outputs, ())
        return selection.make(tool_environment.sandbox_profile(judge, self._workspace, self._site.places))

    def close(self) -> None:
        if self._walls is not None:
            self._walls.close()


Note = Callable[[str], None]
"""Writes a line to the attempt's log."""
