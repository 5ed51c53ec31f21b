"""Codex's settings, sandboxes, approval policies and reasoning efforts as options, modes and levels of wolo."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

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


Values = dict[str, "str | bool | list[str]"]
"""Options of the command line by wolo's names."""


class CodexSettings(Struct, kw_only=True):
    values: Values = field(default_factory=dict)
    sandbox: str = ""
    """Empty: the mode of the user's own settings."""
    policy: str = "on-request"

    def apply(self, settings: Mapping[str, Any]) -> None:
        """Raises UsageError for a setting that wolo does not have."""
        values = self.values
        for name, value in settings.items():
            match name, value:
                case "model", str():
                    values.setdefault("model", value)
                case "openai_base_url", str():
                    values |= {"base_url": value, "api": "openai-responses"}
                case "model_reasoning_effort", str():
                    values["thinking"] = to_thinking(value)
                case "approval_policy", str():
                    self.policy = value
                case "sandbox_mode", str():
                    self.sandbox = check_sandbox(value)
                case "sandbox_workspace_write", dict():
                    check_network(value)
                case "web_search", "disabled":
                    values["disallow_tools"] = "web_search,fetch"
                case "web_search", "cached" | "live":
                    pass  # it is offered where a search service is set up
                case "mcp_servers", dict():
                    values["mcp_config"] = [json.dumps({"mcpServers": value})]
                case _:
                    raise UsageError(f"wolo does not have the setting {name} = {value!r} of Codex.")

    def choose_mode(self, *, asks: bool) -> None:
        """`asks`: the program can be asked about calls. Raises UsageError."""
        if self.sandbox or self.policy == "untrusted":
            self.values["mode"] = mode_of(self.sandbox or "read-only", self.policy)
        if self.sandbox == "read-only" and not asks:
            self.values["agent"] = READ_ONLY.name


def set_key(settings: dict[str, Any], key: str, value: Any) -> None:
    *tables, last = key.split(".")
    table = settings
    for name in tables:
        inner = table.setdefault(name, {})
        if not isinstance(inner, dict):
            raise UsageError(f"--config {key}: {name} is no table.")
        table = inner
    table[last] = value


def check_network(table: Mapping[str, Any]) -> None:
    """Commands in the sandbox have the network that the user's settings give them."""
    for name, value in table.items():
        if name != "network_access":
            raise UsageError(f"wolo does not have the setting sandbox_workspace_write.{name} of Codex.")
        if value is True:
            raise UsageError(
                "sandbox_workspace_write.network_access = true is not supported: only hosts that the settings name are reached.",
                hint='sandbox.allowed_domains names hosts; sandboxMode "danger-full-access" has no sandbox.',
            )
