"""The effects that a tool call is about to have, as values the guard can judge."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from msgspec import Struct


class ReadIntent(Struct, frozen=True, tag="read"):
    path: Path
    """Absolute and resolved (links followed)."""
    given: str = ""
    """As the model wrote it."""
    inside: bool = True
    """Inside the workspace's directories."""


class WriteIntent(Struct, frozen=True, tag="write"):
    path: Path
    given: str = ""
    inside: bool = True
    links: int = 1
    """Number of hard links: a write through one name replaces only that name."""
    in_place: bool = False
    """The folder is not writable, so the file would be overwritten in place, which a crash can interrupt."""


class RunIntent(Struct, frozen=True, tag="run"):
    command: str
    cwd: Path
    concern: str = ""
    """Reason to ask in every mode but `yolo`, whatever rules allow: what will run is not known. Empty: it is."""


class FetchIntent(Struct, frozen=True, tag="fetch"):
    url: str


class CallIntent(Struct, frozen=True, tag="call"):
    """A call to an MCP server's tool or a custom tool, or a task for another agent."""

    target: str
    """`mcp:SERVER/TOOL`, `tool:NAME` or `task:AGENT`."""
    only_reads: bool = False
    """The other agent has no tool that changes anything; the custom tool declares no effects."""
    by_program: Literal["", "allow", "ask"] = ""
    """Decision of the embedding program about its own function, for modes that may change something; empty: no such function."""


Intent = ReadIntent | WriteIntent | RunIntent | FetchIntent | CallIntent
