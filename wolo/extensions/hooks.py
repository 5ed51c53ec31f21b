"""Runs the hooks of an event: all that are meant, side by side, each as a program of the person's own, to one answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from wolo.extensions.hook_answers import NOTHING, Answer, read_answer, tightening, together
from wolo.extensions.hook_names import concerns, in_our_names, with_other_names
from wolo.extensions.hook_settings import ABOUT_TOOLS, Hook
from wolo.workspace.processes import Processes
from wolo.workspace.told import run_told

SLOW_S = 1.0
"""What takes longer is told."""
_KEPT_BYTES = 256 * 1024
"""Of each end of what a hook prints."""
_SUBJECTS = {
    "SessionStart": "source",
    "SessionEnd": "reason",
    "PreCompact": "trigger",
    "PostCompact": "trigger",
    "Notification": "notification_type",
    "SubagentStart": "agent_type",
    "SubagentStop": "agent_type",
}
"""What a matcher is held against where the event is about no tool; at the others every hook is meant."""

Slow = Callable[[Sequence[str]], Awaitable[None]]
"""Hears which commands are still awaited."""


class Placed(Struct, frozen=True, kw_only=True):
    """A hook, and who wants it to run."""

    event: str
    hook: Hook
    source: str
    """The file or setting it stands in, for people."""
    projects: Path | None = None
    """It came with this folder of a checkout, where it runs: it may only make wolo stricter."""
    is_still_allowed: Callable[[], bool] = lambda: True
    """Whether what it runs is what the person said yes to."""


class Ground(Struct, frozen=True, kw_only=True):
    """Where and how hooks run."""

    processes: Processes
    shell: str
    cwd: Path
    environ: Callable[[Path | None], Mapping[str, str]]
    """Gets the folder of the project that a hook came with."""


class Hooks:
    def __init__(self, placed: Sequence[Placed], ground: Ground) -> None:
        self.placed = tuple(placed)
        self._ground = ground

    async def run(self, event: str, payload: Mapping[str, Any], slow: Slow, most_s: float | None = None) -> Answer:
        """What the hooks of this event say together; never raises but when it is cancelled: then all of them are ended.

        `payload` joins what is on their stdin. None may take longer than `most_s`.
        """
        meant = self.meant(event, payload)
        if not meant:
            return NOTHING
        told = self._told(event, payload)
        try:
            async with asyncio.TaskGroup() as group:
                running = {group.create_task(self._run_one(each, told, most_s)): each for each in meant}
                _, late = await asyncio.wait(running, timeout=SLOW_S)
                if late:
                    await slow([running[each].hook.command for each in running if each in late])
        except BaseExceptionGroup as failed:  # only `slow` can fail
            raise failed.exceptions[0] from None
        answer = together([each.result() for each in running])
        if answer.updated_input is not None and event in ABOUT_TOOLS:
            arguments = in_our_names(str(payload["tool_name"]), told["tool_input"], answer.updated_input)
            answer = replace(answer, updated_input=arguments)
        return answer

    def meant(self, event: str, payload: Mapping[str, Any]) -> list[Placed]:
        """Each command once, in the order in which they are written."""
        subject = str(payload.get("tool_name" if event in ABOUT_TOOLS else _SUBJECTS.get(event, ""), ""))
        is_about = event in ABOUT_TOOLS or event in _SUBJECTS
        found: dict[tuple[str, Path | None], Placed] = {}
        for each in self.placed:
            if each.event == event and (not is_about or concerns(each.hook.matcher, subject)):
                found.setdefault((each.hook.command, each.projects), each)
        return list(found.values())

    def _told(self, event: str, payload: Mapping[str, Any]) -> dict[str, Any]:
        told = {"hook_event_name": event, **payload}
        if event in ABOUT_TOOLS:
            told["tool_input"] = with_other_names(payload["tool_name"], payload["tool_input"])
        return told

    async def _run_one(self, placed: Placed, told: Mapping[str, Any], most_s: float | None) -> Answer:
        event, hook = placed.event, placed.hook
        if not placed.is_still_allowed():
            return _failed(placed, "has changed since you allowed it and is not run")
        timeout_s = hook.timeout_s if most_s is None else min(hook.timeout_s, most_s)
        try:
            heard = await run_told(
                self._ground.processes,
                [self._ground.shell, "-c", hook.command],
                json.dumps(told, ensure_ascii=False).encode("utf-8", "replace"),
                cwd=placed.projects or self._ground.cwd,
                env=self._ground.environ(placed.projects),
                timeout_s=timeout_s,
                kept_bytes=_KEPT_BYTES,
            )
        except (OSError, ValueError) as error:
            return _failed(placed, f"could not be started: {error}")
        if heard.cause != "exited":
            why = f"took longer than {timeout_s:g} s" if heard.cause == "timed_out" else "started far too many processes"
            return _failed(placed, f"{why} and was ended")
        answer = read_answer(event, heard.exit_code, heard.stdout, heard.stderr)
        if isinstance(answer, str):
            return _failed(placed, answer)
        return tightening(answer) if placed.projects else answer


def _failed(placed: Placed, why: str) -> Answer:
    notice = f"{_named(placed)} {why.rstrip('.')}."
    if not placed.hook.strict:
        return Answer(notices=(notice,))
    return Answer(decision="deny", reason=f"{notice} It is strict, so this counts as a no.", notices=(notice,))


def _named(placed: Placed) -> str:
    return f"The {placed.event} hook `{placed.hook.command}`"
