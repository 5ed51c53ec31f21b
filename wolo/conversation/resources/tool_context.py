"""What a conversation's tools work with: the judge of their calls, and what a call may use."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from wolo.config.schema import Config
from wolo.conversation.resources.persistence import SessionSink
from wolo.errors import ConfigError, ToolError
from wolo.guard.judge import Judge
from wolo.guard.modes import Mode
from wolo.guard.secrets.redactor import Secrets
from wolo.places import Places
from wolo.tools.background.jobs import Jobs
from wolo.tools.tool import ShellState, ToolServices
from wolo.workspace.files.file_reading import read_file
from wolo.workspace.processes.command_environment import never_passes
from wolo.workspace.processes.process_runner import Processes
from wolo.workspace.root import Workspace


def known_text(services: ToolServices, path: Path) -> str | None:
    """What a file holds, without secrets; None where the session has not seen it as it is now."""
    try:
        file = read_file(path)
    except (OSError, ToolError):
        return None
    return services.secrets.hide(file.text) if file.hash == services.ledger.seen(path) else None


def make_judge(config: Config, mode: Mode, workspace: Workspace, cwd: Path, places: Places, shown: Sequence[Path]) -> Judge:
    return Judge(
        mode,
        config.rules,
        workspace.root,
        extra_roots=workspace.extra,
        cwd=cwd,
        own_places=places.own,
        free_reads=(*shown, jobs_folder(places.state)),
    )


def new_shell(cwd: Path, state: Path, secrets: Secrets) -> ShellState:
    processes = Processes(state / "commands")
    return ShellState(cwd, processes, Jobs(processes, jobs_folder(state), secrets.hide_data, secrets.held))


def passed_variables(config: Config) -> tuple[str, ...]:
    """Raises ConfigError for a name that would never be: nobody should wait for it."""
    source = config.sources.get("shell.env", "the settings")
    for name in config.settings.shell.env:
        if not name.replace("*", "x").isidentifier():
            raise ConfigError(f"{source}: shell.env: {name!r} is no name of a variable.")
        if never_passes(name):
            raise ConfigError(f"{source}: shell.env: {name} looks like a secret or a hook, which no command is given.")
    return config.settings.shell.env


def save_redacted(sink: SessionSink, secrets: Secrets, name: str, data: bytes) -> Path:
    return sink.keep(name, secrets.hide_data(data))


def jobs_folder(state: Path) -> Path:
    """What jobs print lies there."""
    return state / "jobs"
