"""Checks before a batch starts: its models, its options, and the queue's version."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from wolo import __version__
from wolo.config import keys, layers
from wolo.config.cli_options import Flags
from wolo.config.schema import BatchSettings, Config
from wolo.conversation.resources.model_selection import choose
from wolo.errors import UsageError
from wolo.fleet.agent_run import AgentSettings
from wolo.fleet.ledger.ledger_folder import SQLITE
from wolo.fleet.ledger.run_rows import Meta
from wolo.fleet.tasks import BatchTask
from wolo.models.provider import ModelChoice, is_known
from wolo.sessions.database_file import is_remote
from wolo.workspace.root import find_site


class ModelCheck:
    """Finds the models of tasks as their agents will, without asking them."""

    def __init__(self, settings: AgentSettings) -> None:
        """Raises WoloError for settings that cannot be used."""
        flags: Flags = {name: value for name in ("model", "mode", "thinking", "account") if (value := getattr(settings, name))}
        site = find_site()
        self._config: Config = layers.load(site, flags, settings.sets)
        self._providers: dict[str, str] = {}
        self._environ = keys.with_stored_keys(site, self._config)

    @property
    def batch(self) -> BatchSettings:
        return self._config.settings.batch

    @property
    def mode(self) -> str:
        """Of tasks that name none; others may be stricter."""
        return self._config.settings.mode

    def __call__(self, model: str, priced: bool) -> str:
        """As `CheckModel` of task files."""
        try:
            choice = choose(self._config, self._environ, named=model)
        except UsageError as error:
            return error.message
        if priced and not is_known(choice.model.price):
            return f"the price of {choice.label} is unknown, so a limit in USD cannot be enforced"
        return ""

    def default(self, *, priced: bool) -> ModelChoice:
        """The model of tasks that name none. Raises ConfigError, UsageError."""
        choice = choose(self._config, self._environ)
        if priced and not is_known(choice.model.price):
            raise UsageError(
                f"--max-cost cannot be enforced: the price of {choice.label} is unknown.",
                hint="Set it in providers.NAME.models of the settings, or limit the tokens with --max-tokens.",
            )
        return choice

    def provider_of(self, task: BatchTask) -> str:
        """The provider that a task's model is asked at."""
        if task.model not in self._providers:
            self._providers[task.model] = choose(self._config, self._environ, named=task.model).label.partition("/")[0]
        return self._providers[task.model]

    def require_prices(self, tasks: Iterable[BatchTask]) -> None:
        """Raises UsageError when a limit in USD cannot be enforced for one of the tasks."""
        for name in sorted({task.model for task in tasks}):
            if not name:
                self.default(priced=True)
            elif said := self(name, True):
                raise UsageError(f"--max-cost: {said}.")

    def identity(self, settings: AgentSettings, tasks: Iterable[BatchTask]) -> dict[str, Any]:
        """Values that belong to the key of every task."""
        own = self._config.settings
        label = "" if all(task.model for task in tasks) else self.default(priced=False).label
        return {**msgspec.to_builtins(settings), "model": label, "mode": own.mode, "thinking": own.thinking}


def slow_ledger(folder: Path, store: str) -> str:
    """Notice for a ledger file on a network file system; empty: it is not on one."""
    if store != SQLITE or not is_remote(folder):
        return ""
    said = f"{folder} is on a network file system: its ledger is slower, and as reliable as the locks there."
    return f"{said} --store postgresql://… is made for that."


def check_version(meta: Meta, *, any_version: bool) -> None:
    """Raises UsageError for a queue that another version of wolo has made."""
    if meta.version != __version__ and not any_version:
        raise UsageError(
            f"The queue was made by wolo {meta.version}, and this is wolo {__version__}.",
            hint="Install the same version, or pass --any-version.",
        )
