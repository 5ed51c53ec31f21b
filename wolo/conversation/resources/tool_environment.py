"""Judge, shell and sandbox for the tools of a conversation."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from wolo.config.schema import Config
from wolo.conversation.resources.persistence import SessionSink
from wolo.errors import ConfigError, ToolError, UsageError
from wolo.guard.command_judge import Confine
from wolo.guard.intents import RunIntent
from wolo.guard.judge import Judge
from wolo.guard.modes import Mode, effective, find_mode
from wolo.guard.sandbox.backend import SandboxFactory
from wolo.guard.sandbox.profile import SandboxProfile, profile_for
from wolo.guard.sandbox.selection import SandboxSelection, find
from wolo.guard.sandbox_contract import Sandbox
from wolo.guard.secrets.redactor import Secrets
from wolo.places import Places, Site
from wolo.tools.background.background_jobs import BackgroundJobs
from wolo.tools.tool import CommandSandbox, ShellState, ToolServices
from wolo.workspace.files.file_reading import read_file
from wolo.workspace.processes.command_environment import CommandVariables, present_variables, rule_against
from wolo.workspace.processes.process_runner import Processes
from wolo.workspace.root import Workspace

if TYPE_CHECKING:
    from wolo.tools.web.command_proxy import CommandNetwork
    from wolo.workspace.checkpoints.tracker import FileTracker
    from wolo.workspace.processes.login_shell import Definition, LoginShell


class ConversationFiles(Struct, frozen=True):
    """Files as the tools of a conversation know them."""

    services: ToolServices
    judge: Judge

    @property
    def tracker(self) -> FileTracker:
        assert self.services.tracker is not None  # a conversation always has one
        return self.services.tracker()

    @property
    def locks(self) -> Path:
        return self.services.ledger.locks

    def known_text(self, path: Path) -> str | None:
        """The redacted content; None if it is not what the session has read or written. May block."""
        try:
            file = read_file(path)
        except (OSError, ToolError):
            return None
        return self.services.secrets.hide(file.text) if file.hash == self.services.ledger.last_hash(path) else None

    def allow_attachment(self, path: Path) -> None:
        """Learns the secrets of a file before a prompt includes it. Raises UsageError if a rule denies reading it."""
        if rule := self.judge.rule_against_reading(path):
            raise UsageError(
                f"Cannot attach {path}: the rule {rule} ({rule.source}) denies reading it.",
                hint="Leave the file out of the prompt, or change the rule.",
            )
        self.services.secrets.scan_file(path)


def make_judge(config: Config, mode: Mode, workspace: Workspace, site: Site, outputs: Path, skills: Sequence[Path]) -> Judge:
    return Judge(
        mode,
        config.rules,
        workspace.root,
        extra_roots=workspace.extra,
        cwd=site.cwd,
        own_places=site.places.own,
        free_reads=(outputs, jobs_folder(site.places.state)),
        free_folders=skills,
    )


def new_shell(cwd: Path, state: Path, secrets: Secrets) -> ShellState:
    processes = Processes(state / "commands")
    return ShellState(cwd, processes, BackgroundJobs(processes, jobs_folder(state), secrets))


def command_variables(config: Config, secrets: Secrets, login: LoginShell | None = None) -> CommandVariables:
    """Variables that commands get, as the settings say. Raises ConfigError for a name that cannot be one."""
    settings = config.settings.shell
    for key, names in (("shell.env", settings.env), ("shell.hide", settings.hide)):
        source = config.sources.get(key, "the settings")
        for name in names:
            if not name.replace("*", "x").isidentifier():
                raise ConfigError(f"{source}: {key}: {name!r} is not a variable name.")
            if key == "shell.env" and "*" in name and (rule := rule_against(name)):
                raise ConfigError(f"{source}: {key}: {name} would pass variables that are hidden by rule ({rule}): name each.")
    environ = present_variables()
    if login is not None:
        environ = {**environ, "PATH": login.extend_path(environ.get("PATH", os.defpath))}
    return CommandVariables(settings.inherit, settings.env, settings.hide, secrets.hide, environ)


async def find_login_shell(config: Config, places: Places, workspace: Workspace, shell: ShellState | None) -> LoginShell | None:
    """The user's login shell, read once a session; None: commands get nothing of it, or `shell` of this session has it."""
    if not config.settings.shell.snapshot or (shell and shell.login_shell):
        return None
    from wolo.workspace.processes.login_shell import read_login_shell  # noqa: PLC0415  # few users want it

    return await read_login_shell(Processes(places.state / "commands"), workspace, os.environ)


def adopt_login_shell(shell: ShellState, login: LoginShell, judge: Judge, secrets: Secrets) -> None:
    """Leaves out what holds a secret, and names behind which a command would pass a rule or a question of the mode `auto`."""
    judge.confine, judge.mode = "always", find_mode("auto")
    has_rules = any(rule.tool == "shell" and rule.decision != "allow" for rule in judge.rules)

    def is_harmless(definition: Definition) -> bool:
        if secrets.hide(definition.text) != definition.text:
            return False
        if definition.is_alias:
            from shlex import split  # noqa: PLC0415  # only for aliases

            command = " ".join(split(definition.text.partition("=")[2]))
            return judge.judge("shell", [RunIntent(command, shell.cwd)]).decision == "allow"
        if not has_rules:  # a function is like a script, which is not analysed either
            return True
        verdict = judge.judge("shell", [RunIntent(definition.text, shell.cwd)])
        return verdict.decision != "deny" and not verdict.rule

    shell.login_shell = login.select(is_harmless)


def save_redacted(sink: SessionSink, secrets: Secrets, name: str, data: bytes) -> Path:
    return sink.save_output(name, secrets.hide_data(data))


def jobs_folder(state: Path) -> Path:
    """Holds the output of background jobs."""
    return state / "jobs"


class SandboxPlan(Struct, frozen=True):
    mode: Mode
    notice: str
    """Set if the mode differs from the requested one; shown once."""
    selection: SandboxSelection
    confine: Confine

    @property
    def backend(self) -> str:
        """Empty: no sandbox."""
        return self.selection.backend if self.selection.make else ""


def plan_sandbox(config: Config, workspace: Workspace, places: Places) -> SandboxPlan:
    """Raises UsageError if a sandbox is required and none is available, or it cannot do what the settings say; ConfigError."""
    setting = config.settings.sandbox.backend
    is_reviewed = config.settings.approvals.reviewer == "model"  # what the model approves stays in the sandbox
    in_auto = find_mode(config.settings.mode).name == "auto"
    needs_sandbox = setting == "required" or (setting == "auto" and (in_auto or is_reviewed))
    selection = find_sandbox(config, workspace, places) if needs_sandbox else SandboxSelection()
    if setting == "required" and selection.make is None:
        raise UsageError(
            "--sandbox required: no sandbox is available on this machine.", hint="; ".join(selection.tried).capitalize()
        )
    if config.settings.sandbox.allowed_domains or config.settings.sandbox.denied_domains:
        load_network(config)
    if config.settings.sandbox.allowed_domains and selection.make is not None and selection.backend in ("landlock", "seatbelt"):
        raise UsageError(
            f"sandbox.allowed_domains cannot be used: in the sandbox of this machine ({selection.backend}) commands can reach no "
            "proxy, and wolo does not open the whole network instead.",
            hint="Install bubblewrap, or remove the setting: commands then have no network.",
        )
    mode, notice = effective(config.settings.mode, sandbox_available=selection.make is not None)
    confine: Confine = "never" if selection.make is None else "always" if setting == "required" else "unless_allowed"
    return SandboxPlan(mode, notice, selection, confine)


def load_network(config: Config, *, is_open: bool = False) -> CommandNetwork:
    """What commands in the sandbox may reach, as the settings say. Raises ConfigError.

    `is_open`: any public host, where the settings allow none by name.
    """
    from wolo.tools.web.address import Domains  # noqa: PLC0415  # as above
    from wolo.tools.web.command_proxy import CommandNetwork  # noqa: PLC0415  # few commands connect to anything

    settings = config.settings.sandbox
    key = "sandbox.allowed_domains" if settings.allowed_domains else "sandbox.denied_domains"
    allowed = settings.allowed_domains or (("*",) if is_open else ())
    domains = Domains(allowed, settings.denied_domains, source=config.sources.get(key, "the settings"))
    return CommandNetwork(domains, os.environ)


def find_sandbox(config: Config, workspace: Workspace, places: Places) -> SandboxSelection:
    """The best sandbox of this machine."""
    if config.settings.sandbox.backend == "off":
        return SandboxSelection(tried=("Disabled in the settings (sandbox.backend).",))
    return find((workspace.root, *workspace.extra), places.state, places.cache)


class SandboxSetup(Struct, frozen=True):
    """Sandboxes the commands of a conversation, at the start or when the mode changes."""

    config: Config
    judge: Judge
    workspace: Workspace
    shell: ShellState
    sandbox: CommandSandbox
    places: Places
    shown: Sequence[Path]
    """Paths inside wolo's own folders that the model may read."""

    def apply(self, plan: SandboxPlan, *, runs_commands: bool = True) -> None:
        """Without commands no sandbox is made; one that came nevertheless would not run."""
        self.judge.confine = plan.confine
        if plan.selection.make is not None and runs_commands:
            self.sandbox.make = partial(self._make, plan.selection.make)

    def walls_for_servers(self) -> Sandbox | None:
        """The sandbox of commands, or one for language servers alone where commands have none. May block."""
        if self.sandbox.walls is not None:
            return self.sandbox.walls
        found = find_sandbox(self.config, self.workspace, self.places)
        return None if found.make is None else self._make(found.make)

    def enter(self, mode: str) -> SandboxPlan:
        """Changes the mode and its sandbox from the next call on. Raises UsageError for one that is unknown or not allowed."""
        self.config.settings.managed.check_mode(mode)
        settings = replace(self.config.settings, mode=find_mode(mode).name)
        plan = plan_sandbox(replace(self.config, settings=settings), self.workspace, self.places)
        if self.sandbox.make is None:
            self.apply(plan)
        self.judge.confine, self.judge.mode = plan.confine, plan.mode
        return plan

    def _make(self, make: SandboxFactory) -> Sandbox:
        profile = sandbox_profile(self.judge, self.workspace, self.places, self.shown, is_trusted=self.config.trusts_project)
        walls = make(profile)
        self.shell.closing.append(walls.close)
        return walls


def sandbox_profile(
    judge: Judge, workspace: Workspace, places: Places, shown: Sequence[Path] = (), *, is_trusted: bool = False
) -> SandboxProfile:
    """`shown` as in `SandboxSetup`."""
    roots = (workspace.root, *workspace.extra)
    profile = profile_for(roots, places.own, places.state, shown=shown, is_trusted=is_trusted)
    hidden = dict.fromkeys((*profile.hidden, *judge.denied_places("read")))
    readable = judge.readable_places()
    profile = replace(profile, hidden=tuple(hidden), kept=judge.denied_places("write"), needed=(*profile.needed, *readable))
    return replace(profile, closed=()) if "/" in readable else profile
