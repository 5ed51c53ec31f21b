"""The modes plan, ask, edit, auto and yolo, the default decisions for each kind of intent, and the ceilings below them."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from wolo.errors import UsageError
from wolo.guard.rules import Decision, Rule, RuleTool, Verdict, strictest


class Mode(Struct, frozen=True, kw_only=True):
    """A `deny` in a mode is final: neither rules nor the user can lift it while the mode is active."""

    name: str
    about: str
    read_outside: Decision = "ask"
    write: Decision = "ask"
    """Inside the workspace."""
    write_outside: Decision = "ask"
    shell: Decision = "ask"
    fetch: Decision = "ask"
    mcp: Decision = "ask"
    task: Decision = "allow"
    """Calls of the other agent are judged in the same mode. A read-only agent is always allowed."""
    trusts_commands: bool = False
    """Commands that name a secret or protected file need no extra approval."""


PLAN = "plan"
PLANNING = f"mode {PLAN}"
"""Source of the verdicts on calls that plan mode refuses, also that of an agent."""
MODES: dict[str, Mode] = {
    mode.name: mode
    for mode in (
        Mode(name=PLAN, about="reads only", write="deny", write_outside="deny", shell="deny", mcp="deny", task="deny"),
        Mode(name="ask", about="every write and every command asks"),
        Mode(name="edit", about="edits inside the workspace run, commands ask", write="allow"),
        Mode(name="auto", about="edits run, commands run inside the sandbox", write="allow", shell="allow"),
        Mode(
            name="yolo",
            about="nothing asks",
            read_outside="allow",
            write="allow",
            write_outside="allow",
            shell="allow",
            fetch="allow",
            mcp="allow",
            trusts_commands=True,
        ),
    )
}

SPELLINGS = {"default": "ask", "acceptEdits": "edit", "accept-edits": "edit", "bypassPermissions": "yolo"}
"""Names that other agents use for these modes."""

NO_SANDBOX = "No sandbox is available here, so mode auto works like edit: commands ask first."


def find_mode(name: str) -> Mode:
    """Raises UsageError for a name that is no mode."""
    if (mode := MODES.get(SPELLINGS.get(name, name))) is None:
        raise UsageError(f'There is no mode "{name}".', hint=f"The modes are {', '.join(MODES)}.")
    return mode


def is_looser(name: str, than: str) -> bool:
    """Raises UsageError for a name that is no mode."""
    order = list(MODES)
    return order.index(find_mode(name).name) > order.index(find_mode(than).name)


def effective(name: str, sandbox_available: bool = False) -> tuple[Mode, str]:
    """Returns the mode in effect, and a line to show once if it differs from the requested one."""
    mode = find_mode(name)
    if mode.name == "auto" and not sandbox_available:
        return MODES["edit"], NO_SANDBOX
    return mode, ""


class Ceiling(Struct, frozen=True, kw_only=True):
    """The rights of an agent file: an agent may do less than its conversation, never more."""

    source: str
    """Shown with the verdict: `the agent NAME`."""
    mode: str = ""
    """Name of the least strict mode; empty: any."""
    asks_nobody: bool = False
    """Calls that would ask are denied."""
    rules: tuple[Rule, ...] = ()
    defaults: tuple[tuple[RuleTool, Decision], ...] = ()
    """Decisions without a rule."""

    @property
    def is_limited(self) -> bool:
        return bool(self.mode or self.asks_nobody or self.rules or self.defaults)

    @property
    def judge_mode(self) -> Mode:
        """The mode of the judge that applies the limits. `auto` runs commands in the sandbox only, see `lower`."""
        return MODES["edit" if self.mode == "auto" else self.mode or "yolo"]

    @property
    def limits(self) -> Mapping[RuleTool, Verdict]:
        """Verdicts on calls that no rule of the file is about."""
        reasons = {
            "deny": f"This is not among the things that {self.source} may do.",
            "ask": f"This needs an approval for {self.source}.",
        }
        return {
            tool: Verdict(decision, reasons[decision], source=self.source)
            for tool, decision in self.defaults
            if decision != "allow"
        }

    def lower(self, verdict: Verdict, own: Verdict) -> Verdict:
        """The stricter of the conversation's verdict and its own, of a judge in `judge_mode` with `rules` and `limits`."""
        if own.decision == "ask" and self.mode == "auto" and verdict.confined and not own.rule and own.source != self.source:
            own = verdict
        if (stricter := strictest((verdict, own))) is own and own is not verdict:
            source = PLANNING if own.source == PLANNING else self.source
            stricter = replace(own, source=source, confined=verdict.confined)
        return stricter.without_person() if self.asks_nobody else stricter
