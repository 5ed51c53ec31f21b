"""What hooks said then, instead of running them: for a turn that is played again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from wolo.agent.hook_calls import HOOKS, Heard, RunHook, Said
from wolo.messages.message import NUDGE, SENT_BACK, Message


class _Recorded(Heard, frozen=True):
    notices: tuple[str, ...] = ()


def recorded_hooks(new: Iterable[Message]) -> RunHook | None:
    """None: nothing was heard. What they added to a prompt stands in it already."""
    messages = tuple(new)
    calls: dict[str, Any] = {part.id: part.metadata[HOOKS] for each in messages for part in each.calls if HOOKS in part.metadata}
    sent_back = [each.metadata[HOOKS] for each in messages if each.metadata.get(NUDGE) == SENT_BACK and HOOKS in each.metadata]
    if not calls and not sent_back:
        return None
    left = iter(sent_back)

    async def run(event: str, payload: Mapping[str, Any], slow: Callable[[Sequence[str]], Awaitable[None]]) -> Said:
        said = next(left, None) if event == "Stop" else calls.get(payload.get("tool_use_id", ""), {}).get(event)
        return msgspec.convert(said, _Recorded) if said is not None else _Recorded()

    return run
