"""Tasks of a batch: their fields, and the key that identifies one with its settings."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct, field

from wolo import __version__

MAX_ID = 100
_ID = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9._+-]*[A-Za-z0-9_+-])?")


def is_folder_name(id: str) -> bool:
    """Ids are names of folders, also those in a ledger that comes from others."""
    return len(id) <= MAX_ID and _ID.fullmatch(id) is not None


class TaskBudget(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Limits of one attempt; None: no limit."""

    usd: float | None = None
    turns: int | None = None
    seconds: float | None = None
    """Wall time of the whole attempt: setup, agent and verify."""
    tokens: int | None = None


class Resources(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an attempt may use; None: no limit."""

    cpus: float | None = None
    memory_mb: int | None = None


class BatchTask(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line of a task file, checked and complete: paths are absolute, a prompt file is read."""

    id: str
    """Safe as the name of a folder, and unique in its batch, whatever the case."""
    prompt: str
    repo: str = ""
    """Absolute path or URL; empty: the attempt starts in an empty folder."""
    ref: str = ""
    """Branch, tag or commit; empty: HEAD."""
    setup: str = ""
    """Command that prepares the worktree before the agent starts."""
    verify: str = ""
    """Command that decides: exit code 0 means passed. Empty: a finished attempt is done."""
    goal: str = ""
    """The agent works until this holds."""
    until: str = ""
    """Command that decides whether the goal holds; empty: a model decides."""
    model: str = ""
    """Empty: the model of the batch."""
    mode: str = ""
    """Empty: the mode of the batch."""
    budget: TaskBudget = TaskBudget()
    resources: Resources = Resources()
    image: str = ""
    """Container image in which the attempt runs."""
    env: tuple[str, ...] = ()
    """Names of variables that commands get, in addition to the usual ones."""
    tags: tuple[str, ...] = ()
    meta: dict[str, Any] = field(default_factory=dict)
    """Anything; copied to the exports."""


def key_of(task: BatchTask, model_settings: Mapping[str, Any]) -> str:
    """Hash of the task, the version of wolo and the settings that choose and steer the model."""
    whole = {"task": task, "wolo": __version__, "model": dict(model_settings)}
    return hashlib.sha256(msgspec.json.encode(whole, order="deterministic")).hexdigest()
