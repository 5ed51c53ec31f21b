"""The walls of a conversation: whether its commands have some, which of them run inside, and which mode that makes possible."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from wolo.config.schema import Config
from wolo.errors import UsageError
from wolo.guard.command_judge import Confine
from wolo.guard.judge import Judge
from wolo.guard.modes import Mode, effective, find_mode
from wolo.guard.sandbox.profile import Profile, profile_for
from wolo.guard.sandbox.selection import Found, find
from wolo.places import Places
from wolo.tools.tool import CommandSandbox, ShellState
from wolo.workspace.root import Workspace


class SandboxPlan(Struct, frozen=True):
    """What was settled about the sandbox before the rooms are tied together."""

    mode: Mode
    notice: str
    """Said once, when the mode is not the one that was asked for."""
    found: Found
    confine: Confine


def plan_sandbox(config: Config, workspace: Workspace, places: Places) -> SandboxPlan:
    """Raises UsageError where a sandbox is required and there is none."""
    wanted = config.settings.sandbox.backend
    needs_walls = wanted == "required" or (wanted == "auto" and find_mode(config.settings.mode).name == "auto")
    found = find_sandbox(config, workspace, places) if needs_walls else Found()
    if wanted == "required" and found.make is None:
        raise UsageError(
            "--sandbox required: there is no sandbox on this machine that wolo can use.", hint="; ".join(found.tried).capitalize()
        )
    mode, notice = effective(config.settings.mode, sandbox_available=found.make is not None)
    confine: Confine = "never" if found.make is None else "always" if wanted == "required" else "unless_allowed"
    return SandboxPlan(mode, notice, found, confine)


def find_sandbox(config: Config, workspace: Workspace, places: Places) -> Found:
    """What would hold commands here."""
    if config.settings.sandbox.backend == "off":
        return Found(tried=("It is switched off in the settings (sandbox.backend).",))
    return find((workspace.root, *workspace.extra), places.state, places.cache)


@dataclass(frozen=True, slots=True)
class SandboxSetup:
    """Puts the commands of a conversation into a sandbox, now or when a mode is entered that needs one."""

    config: Config
    judge: Judge
    workspace: Workspace
    shell: ShellState
    sandbox: CommandSandbox
    places: Places
    shown: Sequence[Path]
    """Paths among wolo's own places that the model may read."""

    def apply(self, plan: SandboxPlan) -> None:
        self.judge.confine = plan.confine
        if plan.found.make is not None:
            self.sandbox.walls = plan.found.make(self._profile())
            self.shell.closing.append(self.sandbox.walls.close)

    def enter(self, mode: str) -> SandboxPlan:
        """Another mode holds from the next call on, with its sandbox. Raises UsageError for a mode that cannot be entered."""
        settings = replace(self.config.settings, mode=find_mode(mode).name)
        plan = plan_sandbox(replace(self.config, settings=settings), self.workspace, self.places)
        if self.sandbox.walls is None:
            self.apply(plan)
        self.judge.confine, self.judge.mode = plan.confine, plan.mode
        return plan

    def _profile(self) -> Profile:
        judge, workspace, places, shown = self.judge, self.workspace, self.places, self.shown
        own = places.own
        profile = profile_for((workspace.root, *workspace.extra), own, places.state, shown=shown)
        hidden = dict.fromkeys((*profile.hidden, *judge.denied_places("read")))
        readable = judge.readable_places()
        profile = replace(profile, hidden=tuple(hidden), kept=judge.denied_places("write"), needed=(*profile.needed, *readable))
        return replace(profile, closed=()) if "/" in readable else profile
