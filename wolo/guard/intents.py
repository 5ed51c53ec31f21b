"""What a tool call is about to do, as values the guard can judge."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct


class ReadIntent(Struct, frozen=True, tag="read"):
    path: Path
    """Absolute and resolved (links followed)."""
    given: str = ""
    """As the model wrote it."""
    inside: bool = True
    """Within the workspace's directories."""


class WriteIntent(Struct, frozen=True, tag="write"):
    path: Path
    given: str = ""
    inside: bool = True
    links: int = 1
    """How many names the file has: what is written under one of them is not what the others show then."""
    in_place: bool = False
    """Its folder is closed: it would be overwritten where it lies, which a crash can cut short."""


class RunIntent(Struct, frozen=True, tag="run"):
    command: str
    cwd: Path


class FetchIntent(Struct, frozen=True, tag="fetch"):
    url: str


class CallIntent(Struct, frozen=True, tag="call"):
    """A call that leaves wolo: an MCP server's tool, or a task for another agent."""

    target: str
    """`mcp:SERVER/TOOL` or `task:AGENT`."""
    only_reads: bool = False
    """That agent is given no tool that changes anything."""


Intent = ReadIntent | WriteIntent | RunIntent | FetchIntent | CallIntent
