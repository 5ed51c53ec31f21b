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
from wolo.guard.sandbox.profile import profile_for
from wolo.guard.sandbox.selection import Found, find
from wolo.places import Places
from wolo.tools.tool import ToolContext
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


def apply_sandbox(enclosure: SandboxPlan, judge: Judge, context: ToolContext, places: Places, shown: Sequence[Path]) -> None:
    """From now on the commands of this conversation are held. `shown` is what the model may read of wolo's own places."""
    judge.confine = enclosure.confine
    if enclosure.found.make is not None:
        workspace = context.workspace
        own = places.own
        profile = profile_for((workspace.root, *workspace.extra), own, places.state, shown=shown)
        hidden = dict.fromkeys((*profile.hidden, *judge.denied_places("read")))
        readable = judge.readable_places()
        profile = replace(profile, hidden=tuple(hidden), kept=judge.denied_places("write"), needed=(*profile.needed, *readable))
        if "/" in readable:
            profile = replace(profile, closed=())
        context.walls = enclosure.found.make(profile)
        context.shell.closing.append(context.walls.close)


@dataclass(frozen=True, slots=True)
class ModeSwitch:
    """What holds the commands of a conversation that lives, in whatever mode it is."""

    config: Config
    judge: Judge
    context: ToolContext
    places: Places
    shown: Sequence[Path]

    def enter(self, name: str) -> SandboxPlan:
        """Another mode holds from the next call on, and its walls with it. Raises UsageError for one that cannot be entered."""
        settings = replace(self.config.settings, mode=find_mode(name).name)
        enclosure = plan_sandbox(replace(self.config, settings=settings), self.context.workspace, self.places)
        if self.context.walls is None:
            apply_sandbox(enclosure, self.judge, self.context, self.places, self.shown)
        self.judge.confine, self.judge.mode = enclosure.confine, enclosure.mode
        return enclosure
