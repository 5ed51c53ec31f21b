"""The modes plan, ask, edit, auto and yolo: the default decision for each kind of intent."""

from __future__ import annotations

from msgspec import Struct

from wolo.errors import UsageError
from wolo.guard.rules import Decision


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


MODES: dict[str, Mode] = {
    mode.name: mode
    for mode in (
        Mode(name="plan", about="reads only", write="deny", write_outside="deny", shell="deny", mcp="deny", task="deny"),
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

SPELLINGS = {
    "default": "ask",
    "acceptEdits": "edit",
    "accept-edits": "edit",
    "bypassPermissions": "yolo",
}
"""Names that other agents use for these modes."""

NO_SANDBOX = "No sandbox is available here, so mode auto works like edit: commands ask first."


def find_mode(name: str) -> Mode:
    """Raises UsageError for a name that is no mode."""
    mode = MODES.get(SPELLINGS.get(name, name))
    if mode is None:
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
