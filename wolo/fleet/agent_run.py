"""The agent of an attempt: a `wolo -p` of its own, its stream of events, and what its end means."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from wolo.errors import QuotaExhausted
from wolo.fleet.ledger.outcomes import ACCOUNT_FAULTS, Ended, Failure, Spent
from wolo.fleet.tasks import BatchTask
from wolo.formats.tolerant_json import read_fields
from wolo.messages.terminal_text import clean_line
from wolo.models.limit_wait import countdown
from wolo.models.retry import LIMITER_VARIABLE
from wolo.places import DATA_VARIABLE

_REFUSALS = (*ACCOUNT_FAULTS, "bad_request", "content_refused")
"""Kinds of errors by which a provider refuses: the task was not tried, so it has not failed."""
_LONGEST_LINE = 200
_LAST_BYTES = 4 << 20
"""The result is looked for in this much of the stream's end."""


class AgentSettings(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Options of a batch for the agents of all its tasks."""

    model: str = ""
    mode: str = ""
    thinking: str = ""
    account: str = ""
    sets: tuple[str, ...] = ()
    """`KEY=VALUE` as in `--set`."""


class Allowance(Struct, frozen=True):
    """What is left of the budget of the batch; None: no limit."""

    usd: float | None = None
    tokens: int | None = None


class AgentEnd(Struct, frozen=True):
    """What the end of the agent means for the attempt."""

    state: Ended
    """`done` also when the task has a verify, which decides then."""
    failure: Failure | None = None
    retryable: bool = False


def agent_argv(task: BatchTask, settings: AgentSettings, allowance: Allowance, passed: Sequence[str]) -> list[str]:
    """The prompt comes on stdin. `passed` names variables for commands."""
    usd = _least(task.budget.usd, allowance.usd)
    tokens = _least(task.budget.tokens, allowance.tokens)
    options = {
        "--model": task.model or settings.model,
        "--mode": task.mode or settings.mode,
        "--thinking": settings.thinking,
        "--account": settings.account,
        "--goal": task.goal,
        "--until": task.until,
        "--max-turns": task.budget.turns,
        "--max-cost": None if usd is None else f"{usd:.6f}",
        "--max-tokens": tokens,
    }
    words = [word for name, value in options.items() if value not in (None, "") for word in (name, str(value))]
    words += [word for value in settings.sets for word in ("--set", value)]
    if passed:
        words += ["--set", f"shell.env={msgspec.json.encode(list(passed)).decode()}"]
    # -P: a folder `wolo` or a module of its name in the worktree is not the program
    return [sys.executable, "-P", "-m", "wolo", "-p", "--output-format", "stream-json", *words, "-"]


def agent_environment(data: Path, limiter: str) -> dict[str, str]:
    """The user's own, with a folder of its own for the session, and the socket of the shared limits."""
    return {**os.environ, DATA_VARIABLE: str(data), LIMITER_VARIABLE: limiter}


def _least(one: float | None, other: float | None) -> float | int | None:
    given = [limit for limit in (one, other) if limit is not None]
    return min(given) if given else None


class AgentStream:
    """Follows the JSON lines that the agent writes to a file."""

    def __init__(self, file: Path) -> None:
        self.session_id = self.model = self.thinking = self.prefix_hash = ""
        self.answered_by = ""
        """The model that the provider named in the latest answer, where it is not the one that was asked."""
        self.line = ""
        """The latest text or call, for a table of running attempts."""
        self.spent = Spent(cost_usd=None)
        self.slept_s = 0.0
        """Time that the agent waits, or has waited, for limits of its key to end."""
        self._file = file
        self._at = 0
        self._rest = b""

    @property
    def model_resolved(self) -> str:
        return f"{self.model.partition('/')[0]}/{self.answered_by}" if self.answered_by else self.model

    def follow(self) -> None:
        """Reads what is new."""
        try:
            with self._file.open("rb") as file:
                file.seek(self._at)
                new = file.read()
        except OSError:
            return
        self._at += len(new)
        *lines, self._rest = (self._rest + new).split(b"\n")
        for line in lines:
            self._take(read_fields(line))

    def read_slept_s(self) -> float:
        """`slept_s` as of now."""
        self.follow()
        return self.slept_s

    def result(self) -> dict[str, Any] | None:
        """The last line, if the agent came to its end."""
        try:
            with self._file.open("rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - _LAST_BYTES))
                lines = file.read().splitlines()
        except OSError:
            return None
        found = read_fields(lines[-1]) if lines else {}
        return found if found.get("type") == "result" else None

    def _take(self, line: dict[str, Any]) -> None:
        self.session_id = str(line.get("session_id") or self.session_id)
        if line.get("subtype") == "init":
            self.model, self.thinking = str(line.get("model") or ""), str(line.get("thinking") or "")
            self.prefix_hash = str(line.get("prefix_hash") or "")
        if line.get("subtype") == "retry" and (line.get("error") or {}).get("kind") == QuotaExhausted.kind:
            self.slept_s += float(line.get("delay_s") or 0.0)
            self.line = f"the key sleeps for {countdown(self.slept_s)}"
        if line.get("type") != "assistant":
            return
        message = line.get("message") or {}
        self.spent = _sum(self.spent, message.get("usage") or {})
        self.answered_by = str(message.get("model") or "")
        for part in message.get("content") or ():
            text = part.get("text") or part.get("name") or ""
            if part.get("type") == "tool_use":
                given = next((value for value in (part.get("input") or {}).values() if isinstance(value, str)), "")
                text = f"{text} {given}"
            if text.strip():
                self.line = clean_line(text.strip())[:_LONGEST_LINE]


def totals_of(result: Mapping[str, Any]) -> Spent:
    """Usage and cost of a result object."""
    return msgspec.structs.replace(_sum(Spent(), result.get("usage") or {}), cost_usd=result.get("total_cost_usd"))


def end_of(result: Mapping[str, Any] | None, exit_code: int) -> AgentEnd:
    """`exit_code` is minus the signal's number after a signal."""
    if exit_code < 0 or exit_code in (129, 130, 143):
        number = -exit_code if exit_code < 0 else exit_code - 128
        return AgentEnd("lost", Failure("killed", f"The agent was ended by signal {number}."), True)
    if result is None:
        return AgentEnd("lost", Failure("no_result", f"The agent ended with status {exit_code} and no result."), True)
    error = result.get("error") or {}
    failure = Failure(str(error.get("kind") or result.get("subtype")), str(error.get("message") or result.get("subtype")))
    if exit_code in (1, 75) and failure.kind in _REFUSALS:
        return AgentEnd("errored", failure)
    match exit_code:
        case 0:
            return AgentEnd("done")
        case 4:
            return AgentEnd("done", Failure("denied", "Some actions were denied because no one could approve them."))
        case 5:
            return AgentEnd("timeout" if result.get("subtype") == "error_max_seconds" else "budget", failure)
        case 75:
            return AgentEnd("errored", failure, retryable=True)
        case 1:
            return AgentEnd("failed", failure)
    return AgentEnd("errored", failure)


def _sum(spent: Spent, usage: Mapping[str, Any]) -> Spent:
    names = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "reasoning_tokens")
    more = {name: getattr(spent, name) + int(usage.get(name) or 0) for name in names}
    return msgspec.structs.replace(spent, **more)
