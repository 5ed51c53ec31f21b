"""Runs functions of the embedding program as hooks, before the user's own."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from inspect import isawaitable
from typing import Any

from wolo.agent.hook_calls import ReportSlow, RunHook
from wolo.extensions.hooks.response import NOTHING, combine, read_answer
from wolo.tools.tool_values import HookReply

HookFunction = Callable[[dict[str, Any]], Any]


class HookFunctions:
    """By event. An exception denies. A function takes its fields and returns None, a text, or the JSON of a hook as a dict."""

    def __init__(
        self, functions: Mapping[str, HookFunction], facts: Callable[[], Mapping[str, Any]], run: RunHook | None
    ) -> None:
        """`run` runs the user's hooks; None: there are none."""
        self._functions, self._facts, self._run = functions, facts, run
        self._has_begun = False

    async def run(self, event: str, payload: Mapping[str, Any], slow: ReportSlow) -> HookReply:
        answer = await self._call(event, payload)
        if self._run is None or answer.decision == "deny":
            return answer
        configured = await self._run(event, payload, slow)
        return combine([answer, configured])

    async def _call(self, event: str, payload: Mapping[str, Any]) -> HookReply:
        function = self._functions.get(event)
        if function is None or (event == "SessionStart" and self._has_begun):
            return NOTHING
        self._has_begun = self._has_begun or event == "SessionStart"
        try:
            said = function({**self._facts(), "hook_event_name": event, **payload})
            said = await said if isawaitable(said) else said
            if said is not None and not isinstance(said, str | Mapping):
                raise TypeError(f"it returned {said!r:.80}, not None, a text or a dict")
            printed = said if isinstance(said, str) else json.dumps(dict(said or {}))
            answer = read_answer(event, 0, printed.encode(errors="replace"), b"")
        except Exception as error:
            answer = f"failed: {type(error).__name__}: {error}"
        if isinstance(answer, HookReply):
            return answer
        return HookReply(decision="deny", reason=f"The {event} function {answer}")
