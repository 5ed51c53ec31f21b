"""Runs edits and adds the errors they make, as language servers see them, to their results."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from wolo.agent.events import Noticed
from wolo.agent.tool_execution import Emit
from wolo.config.schema import Config
from wolo.conversation.resources.tool_environment import SandboxSetup
from wolo.errors import ToolError
from wolo.guard.intents import WriteIntent
from wolo.guard.sandbox_contract import SandboxedCommand
from wolo.lsp.language_servers import LanguageServers
from wolo.lsp.lsp_client import LONGEST_HEADER_BYTES, ServerFailed
from wolo.lsp.server_table import ServerSpec, known_servers
from wolo.places import Notices, Places
from wolo.tools.tool import DIAGNOSTICS, CallContext, ShellState
from wolo.tools.tool_values import CallResult
from wolo.workspace.processes.command_environment import CommandVariables, find_program
from wolo.workspace.processes.piped_program import OutputTail, PipedProgram, start_piped
from wolo.workspace.processes.process_runner import Processes, ProgramStart
from wolo.workspace.root import Workspace

_OF_PROJECT = (".venv/bin", "node_modules/.bin")
"""Where a trusted project keeps servers of its own."""

_MOST_SHOWN_ROWS = 6
"""Of the errors that the model gets, for the user."""


class LanguageServerChecks(Struct, frozen=True):
    """The servers belong to the shell, so that they go on in the next conversation of a session."""

    config: Config
    setup: SandboxSetup
    shell: ShellState
    variables: CommandVariables
    emit: Emit
    hide: Callable[[str], str]
    """Redacts secrets."""
    problems: list[str] = []
    """With the settings; told once."""

    async def look_up(self, path: Path, method: str, params: dict[str, Any]) -> Any:
        try:
            return await self._servers().ask(path, method, params)
        except ServerFailed as error:
            raise ToolError(f"The language server cannot be asked: {error}. Use grep.") from error

    def _servers(self) -> LanguageServers:
        if not isinstance(self.shell.language_servers, LanguageServers):
            self.shell.language_servers = self._make()
        return self.shell.language_servers

    async def run(self, context: CallContext, call: Callable[[], Awaitable[CallResult]], *, is_edit: bool) -> CallResult:
        servers = self._servers()
        if not is_edit:
            return await self._with_errors(await call(), servers.late_errors(), servers)
        paths = [intent.path for intent in context.judged or () if isinstance(intent, WriteIntent)]
        before = await asyncio.to_thread(servers.read_known, paths)
        servers.warm_up(before)
        result = await call()
        if result.is_error or not result.files_changed:
            return result
        changed = set(result.files_changed)
        with suppress(asyncio.CancelledError):  # the files are changed, whatever becomes of the check
            told = await servers.check({path: text for path, text in before.items() if str(path) in changed})
            return await self._with_errors(result, told, servers)
        return result

    async def _with_errors(self, result: CallResult, report: str, servers: LanguageServers) -> CallResult:
        for failure in (*self.problems, *servers.failures()):
            await self.emit(Noticed(text=self.hide(failure), level="warning"))
        self.problems.clear()
        if not report:
            return result
        rows = report.split("\n")
        more = f"\n… {len(rows) - _MOST_SHOWN_ROWS} more lines" if len(rows) > _MOST_SHOWN_ROWS else ""
        shown = "\n".join(rows[:_MOST_SHOWN_ROWS]) + more
        await self.emit(Noticed(text=self.hide(shown), level="warning"))
        return replace(result, text=f"{result.text}\n\n{report}", metadata={**result.metadata, DIAGNOSTICS: report})

    def _make(self) -> LanguageServers:
        workspace, processes = self.setup.workspace, Processes(self.setup.places.state / "commands")
        running: list[PipedProgram] = []

        async def start(spec: ServerSpec) -> PipedProgram:
            command = await asyncio.to_thread(self._sandbox_command, spec)
            env = {**self.variables.select(is_outside=False), **spec.env}
            cleanup, fds = command.cleanup, command.pass_fds
            start = ProgramStart(argv=command.argv, cwd=workspace.root, env=env, pass_fds=fds, cleanup=cleanup)
            running.append(await start_piped(processes, start, LONGEST_HEADER_BYTES, OutputTail()))
            return running[-1]

        notices = Notices()
        installed = find_installed(self.config, workspace, self.setup.places, notices)
        self.problems.extend(notices)
        servers = LanguageServers(installed, workspace.root, start, lambda path: workspace.relative(path))

        def close() -> None:
            servers.close()
            for each in running:
                each.close_input()
            processes.close_all()

        self.shell.closing.append(close)
        return servers

    def _sandbox_command(self, spec: ServerSpec) -> SandboxedCommand:
        """Reads only and has no network. Raises ToolError where an untrusted project would run without a sandbox."""
        if (walls := self.setup.walls_for_servers()) is None:
            if not self.config.trusts_project:
                raise ToolError("there is no sandbox here, and this folder is not trusted")
            return SandboxedCommand(spec.command)
        return walls.wrap(
            (*self.variables.set_inside(), *spec.command), self.setup.workspace.root, only_reads=True, in_background=True
        )


def find_installed(config: Config, workspace: Workspace, places: Places, notices: Notices) -> tuple[ServerSpec, ...]:
    """Servers that are installed, with the path of the program; those of the project only once its folder is trusted.

    Notices name servers of the settings and of plugins that cannot run.
    """
    own = {
        name: ServerSpec(name, tuple(given.command), tuple(given.extensions), given.enabled)
        for name, given in config.settings.lsp.servers.items()
    }
    of_plugins = _of_plugins(places, notices)
    specs = known_servers(tuple(own.values()), of_plugins)
    usable = {each.name for each in specs if each.extensions}
    for name in (each.name for each in own.values() if each.enabled and each.name not in usable):
        notices.add(f"lsp.servers.{name} has no effect: a server that wolo does not know needs `command` and `extensions`.")
    installed = []
    for spec in specs:
        program = _find(spec.command[0], config, workspace)
        if program and (not spec.from_version or _package_version(Path(program)) >= spec.from_version):
            installed.append(replace(spec, command=(program, *spec.command[1:])))
        elif not program and (spec in of_plugins or (spec.name in own and own[spec.name].command and spec.name in usable)):
            subject = f"lsp.servers.{spec.name}" if spec.name in own else f"The language server {spec.name} of a plugin"
            notices.add(f"{subject} is not used: there is no program {spec.command[0]}.")
    return tuple(installed)


def _of_plugins(places: Places, notices: Notices) -> list[ServerSpec]:
    """Of plugins that the user allowed as they are; notices name the others."""
    if not places.plugin_index.exists():
        return []
    from wolo.config.plugins.installed import allowed_language_servers  # noqa: PLC0415  # most users have no plugins

    return allowed_language_servers(places, notices)


def _package_version(program: Path) -> int:
    """Major version of the npm package that the program belongs to; 0: unknown."""
    for folder in program.resolve().parents[:3]:
        with suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
            return int(str(json.loads((folder / "package.json").read_bytes())["version"]).partition(".")[0])
    return 0


def _find(name: str, config: Config, workspace: Workspace) -> str | None:
    if "/" in name:
        path = Path(name).expanduser()
        is_own = path.is_absolute() and (config.trusts_project or not path.resolve().is_relative_to(workspace.root))
        return str(path) if is_own and os.access(path, os.X_OK) else None
    for folder in _OF_PROJECT if config.trusts_project else ():
        path = workspace.root / folder / name
        if os.access(path, os.X_OK) and path.is_file():
            return str(path)
    return find_program(name, workspace)
