"""Tells the runs that this user has made from those of others: options in a file are nobody's command line."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Sequence
from typing import Any

import msgspec

from wolo.config.files import locked, read_own, replace_file
from wolo.errors import ConfigError, UsageError
from wolo.fleet.agent_run import AgentSettings
from wolo.fleet.tasks import Task
from wolo.guard.modes import is_looser
from wolo.places import find_places

_KEY = "runs.key"
_NAMED = 5


def seal_of(options: Any) -> str:
    """Proves later, to the same user, that the options of a run came from a command line. Raises ConfigError."""
    state = find_places().state
    with locked(state):
        key = read_own(state / _KEY, [], is_secret=True)
        if not key:
            key = secrets.token_hex(32).encode()
            replace_file(state / _KEY, key.decode())
    return hmac.digest(key, msgspec.json.encode(options, order="deterministic"), hashlib.sha256).hex()


def is_sealed(options: Any, seal: str) -> bool:
    try:
        return hmac.compare_digest(seal_of(options).encode(), seal.encode())
    except ConfigError:
        return False


def refuse_foreign(settings: AgentSettings, cluster: str, own_mode: str) -> None:
    """For options that nobody here has chosen. Raises UsageError if they allow more than `own_mode`, or name anything else."""
    found = [f"--mode {settings.mode}"] if settings.mode and is_looser(settings.mode, own_mode) else []
    found += [f"--set {text}" for text in settings.sets]
    found += [f"--ray-address {cluster}"] if cluster else []
    if found:
        raise UsageError(
            f"This run was not made here, and its maker has chosen {', '.join(found)}.",
            hint="--as-saved uses that; or run its tasks.jsonl anew with options of your own.",
        )


def refuse_looser(tasks: Sequence[Task], mode: str) -> None:
    """Raises UsageError for tasks that were put into the queue in a looser mode than that of the run."""
    looser = [f"{task.id} ({task.mode})" for task in tasks if task.mode and is_looser(task.mode, mode)]
    if looser:
        more = f" and {len(looser) - _NAMED} more" if len(looser) > _NAMED else ""
        raise UsageError(
            f"Tasks of the run have a mode looser than {mode}, which was chosen for it: {', '.join(looser[:_NAMED])}{more}.",
            hint="`wolo batch cancel RUN TASK` removes them; `wolo batch run … --mode` chooses for all.",
        )
