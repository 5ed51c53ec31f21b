"""Asks a model about an event, for hooks of type `prompt`."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable

import msgspec
from msgspec import Struct

from wolo.errors import WoloError
from wolo.extensions.hooks.definitions import Hook
from wolo.extensions.hooks.response import NO_REASON, NOTHING, HookReply
from wolo.messages.terminal_text import clean

MOST_CHARS = 60_000
"""Of the event; the middle of a longer one is left out."""
_PLACEHOLDER = "$ARGUMENTS"


class _Verdict(Struct, frozen=True):
    ok: bool
    reason: str = ""


async def ask(
    hook: Hook, data: bytes, ask_model: Callable[[str, str], Awaitable[str]] | None, timeout_s: float
) -> HookReply | str:
    """The model's answer, or a text that describes what went wrong."""
    if ask_model is None:
        return "asks a model, and there is none"
    event = data.decode()
    if len(event) > MOST_CHARS:
        event = f"{event[: MOST_CHARS // 2]}\n[… cut …]\n{event[-MOST_CHARS // 2 :]}"
    prompt = hook.prompt.replace(_PLACEHOLDER, event) if _PLACEHOLDER in hook.prompt else f"{hook.prompt}\n\n{event}"
    try:
        async with asyncio.timeout(timeout_s):
            answer = await ask_model(prompt, hook.model)
    except TimeoutError:
        return f"took longer than {timeout_s:g} s and was ended"
    except WoloError as error:
        return f"got no answer: {error.message}"
    return _read(answer)


def _read(text: str) -> HookReply | str:
    found = re.search(r"\{.*\}", text, re.DOTALL)
    try:
        verdict = msgspec.json.decode(found[0] if found else text, type=_Verdict)
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return f'got an answer that is not {{"ok": true}} or {{"ok": false, "reason": …}}: {clean(text)[:200]}'
    return NOTHING if verdict.ok else HookReply(decision="deny", reason=clean(verdict.reason).strip() or NO_REASON)
