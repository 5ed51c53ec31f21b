"""A person's hooks around an agent that has a task: they hear which agent it is, and of its begin and end by other names."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from wolo.agent.hook_calls import Heard, RunHook, Said

_OTHER_NAMES = {"UserPromptSubmit": "SubagentStart", "Stop": "SubagentStop"}
_NOT_ITS_OWN = frozenset(("SessionStart",))
"""The person's session has begun long since."""


class _Silence(Heard, frozen=True):
    notices: tuple[str, ...] = ()


def for_agent(run: RunHook | None, agent: str, session_id: str) -> RunHook | None:
    """What hooks hold calls to holds for the calls of this agent, too."""
    if run is None:
        return None
    tell = run

    async def run_hook(event: str, payload: Mapping[str, Any], slow: Callable[[Sequence[str]], Awaitable[None]]) -> Said:
        if event in _NOT_ITS_OWN:
            return _Silence()
        return await tell(_OTHER_NAMES.get(event, event), {**payload, "agent_type": agent, "agent_id": session_id}, slow)

    return run_hook
