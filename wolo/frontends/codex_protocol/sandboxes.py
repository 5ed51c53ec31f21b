"""Codex's sandboxes, approval policies and reasoning efforts, as wolo's modes and levels."""

from __future__ import annotations

from wolo.errors import UsageError
from wolo.extensions.agent_files import AgentProfile
from wolo.guard.modes import Ceiling

MODES = {"read-only": "ask", "workspace-write": "auto", "danger-full-access": "yolo"}
POLICIES = ("never", "on-request", "on-failure", "untrusted")
_EFFORTS = {"none": "off", **{level: level for level in ("minimal", "low", "medium", "high", "xhigh", "max")}}
READ_ONLY = AgentProfile(
    name="read-only",
    description="works in Codex's sandbox read-only",
    ceiling=Ceiling(
        source="the sandbox read-only",
        mode="ask",
        defaults=(("write", "deny"), ("shell", "ask"), ("mcp", "ask")),
        asks_nobody=True,
    ),
)
"""Reads, and runs commands that only read, whatever the user's rules allow beyond it."""


def check_sandbox(name: str) -> str:
    """Raises UsageError for an unknown one."""
    if name not in MODES:
        raise UsageError(f"There is no sandbox {name!r}.", hint=f"There are: {', '.join(MODES)}.")
    return name


def mode_of(sandbox: str, policy: str) -> str:
    """The mode of a sandbox and an approval policy; `untrusted` asks before every command and edit. Raises UsageError."""
    if policy not in POLICIES:
        raise UsageError(f"There is no approval policy {policy!r}.", hint=f"There are: {', '.join(POLICIES)}.")
    return "ask" if policy == "untrusted" else MODES[check_sandbox(sandbox)]


def to_thinking(effort: str) -> str:
    """Raises UsageError."""
    if effort not in _EFFORTS:
        raise UsageError(f"wolo does not have the reasoning effort {effort!r}.", hint=f"It has: {', '.join(_EFFORTS)}.")
    return _EFFORTS[effort]
