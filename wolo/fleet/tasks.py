"""Tasks of a batch: their fields, and the key that identifies one with its settings."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Literal

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from wolo import __version__
from wolo.errors import UsageError

Phase = Literal["setup", "verify"]
"""Commands of a task, before and after its agent."""
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
    verify_files: dict[str, str] = field(default_factory=dict)
    """Files by path that judge the task; written into a fresh worktree with the patch, after the agent."""
    test_patch: str = ""
    """Changes that judge the task, applied in the same way."""
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
    workdir: str = ""
    """Folder of the image that is the repository; the worktree is a copy of it, at its place."""
    env: tuple[str, ...] = ()
    """Names of variables that commands get, in addition to the usual ones."""
    setup_env: tuple[str, ...] = ()
    """Names of variables that only setup and verify get, also of secrets; whoever runs the file allows them."""
    setup_network: bool | None = None
    """True or False is a demand: where it cannot be met, nothing runs. None: as `allows_network` says, where that can be."""
    verify_network: bool | None = None
    tries: int = 1
    tags: tuple[str, ...] = ()
    meta: dict[str, Any] = field(default_factory=dict)
    """Anything; copied to the exports."""
    task: str = ""
    """The id in the task file, where each try has its own."""
    try_number: int = 1

    @property
    def base_id(self) -> str:
        return self.task or self.id

    def network_demand(self, phase: Phase) -> bool | None:
        return self.setup_network if phase == "setup" else self.verify_network

    def allows_network(self, phase: Phase) -> bool:
        """Setup may use the network, and verify not, unless the task says otherwise."""
        demand = self.network_demand(phase)
        return phase == "setup" if demand is None else demand


def with_tries(tasks: Iterable[BatchTask], num_tries: int | None) -> list[BatchTask]:
    """One task for each try, `ID+1`, `ID+2` …; None: as each task says. Raises UsageError for an id that is too long for it."""
    split = []
    for task in tasks:
        count = num_tries or task.tries
        if count == 1:
            split.append(replace(task, tries=1))
            continue
        for number in range(1, count + 1):
            name = f"{task.id}+{number}"
            if not is_folder_name(name):
                raise UsageError(
                    f"Task {task.id}: its id is too long for {count} tries.", hint=f"At most {MAX_ID - 4} characters."
                )
            split.append(replace(task, id=name, task=task.id, try_number=number, tries=1))
    names = Counter(task.id.casefold() for task in split)
    if taken := next((task.id for task in split if names[task.id.casefold()] > 1), ""):
        raise UsageError(f"The id {taken} of a task is also that of a try.", hint="Choose another id.")
    return split


def key_of(task: BatchTask, model_settings: Mapping[str, Any]) -> str:
    """Hash of the task, the version of wolo and the settings that choose and steer the model."""
    whole = {"task": task, "wolo": __version__, "model": dict(model_settings)}
    return hashlib.sha256(msgspec.json.encode(whole, order="deterministic")).hexdigest()
