"""The values that a run hands to the functions of its program."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Generic, TypeVar
from weakref import ref

from msgspec import Struct

from wolo.messages.message import Usage

D = TypeVar("D")


class ToolContext(Struct, frozen=True):
    """The running call, for a function with a parameter of this type."""

    call_id: str
    cwd: Path
    """The working directory of commands."""
    root: Path
    """The workspace."""
    progress: Callable[[str], None]
    """Shows live output."""


class RunContext(ToolContext, Generic[D], frozen=True):
    """A `ToolContext` with `deps` of the run: what the program wants its functions to have."""

    deps: D


class ActiveRun(Struct):
    """A run, for the functions that it calls."""

    agent: ref[Any]
    """Contexts of readers and timers keep this value, and must not keep the agent."""
    deps: Any = None
    usages: list[Usage] = []
    """Of runs of other agents inside of this one."""
    outer: ActiveRun | None = None
    """The run whose function started this one."""

    def includes(self, agent: object) -> bool:
        return self.agent() is agent or (self.outer is not None and self.outer.includes(agent))


active_run: ContextVar[ActiveRun | None] = ContextVar("active_run", default=None)
