"""What a tiny model is asked to write, and how its answer becomes the arguments of a call."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from wolo.messages.deltas import CallDelta
from wolo.models.local import simple_texts as texts
from wolo.models.local.simple_context import SimpleStep
from wolo.models.protocol import Listener

TRIES: Final = 3
OTHER_MODEL: Final = "Ask for something smaller, or use a larger model with --model."


def state_of(step: SimpleStep) -> str:
    return "Its last text stays." if step.turn.written else "Nothing was written."


class FileRequest(Struct, frozen=True, kw_only=True):
    path: str
    request: str
    old: str | None = None
    """Current content; None: a new file."""
    error: str = ""
    """Output of a command that fails because of the file."""
    is_draft: bool = False
    """Written in this turn: where a repair fails, a new text is as good."""
    others: Mapping[str, str] = {}
    """Files that the request names or this turn wrote: what they define is imported, not begun here."""
    around: str = ""
    """Excerpts of files that a new one may read or use."""
    fault: str = ""
    """Reason why the last attempt was refused."""
    first_attempt: int = 1
    """Seed of the first attempt, so that a repair does not repeat the text."""

    @property
    def language(self) -> str:
        return texts.language_of(self.path)

    @property
    def is_prose(self) -> bool:
        return self.language in texts.PROSE

    @property
    def fence(self) -> str:
        return texts.fence_of(self.language)


def code_in(answer: str, prefill: str, fence: str) -> str:
    """Cut out the code of an answer: after the given start, inside its first block, or all of it."""
    text = answer.removeprefix(prefill)
    lines = text.split("\n")
    mark = fence[:3]
    begins = next((at for at, line in enumerate(lines) if line.startswith(mark)), None)
    if len(text) == len(answer) and begins is not None and begins < len(lines) - 1:
        ends = next((at for at in range(begins + 1, len(lines)) if lines[at].startswith(mark)), len(lines))
        if begins == 0 or ends < len(lines):
            return "\n".join(lines[begins + 1 : ends]).strip("\n")
    return text.removesuffix(fence).strip("\n")


class CallStream:
    """Streams code as arguments of a `write` call, without the given start."""

    def __init__(self, listener: Listener, call_id: str, path: str, prefill: str) -> None:
        self._listener = listener
        self._call_id = call_id
        self._path = path
        self._prefill = prefill
        self._waiting = ""
        self._begun = False

    async def add(self, text: str) -> None:
        if self._begun:
            await self._send(CallDelta(slot=0, arguments=_inside(text)))
            return
        self._waiting += text
        if len(self._waiting) < len(self._prefill) and self._prefill.startswith(self._waiting):
            return
        self._begun = True
        head = json.dumps({"path": self._path}, ensure_ascii=False)[:-1] + ', "content": "'
        code = self._waiting.removeprefix(self._prefill)
        await self._send(
            CallDelta(slot=0, call_id=self._call_id, tool="write", arguments=head + _inside(code), part_id=self._call_id)
        )

    async def end(self) -> None:
        if self._begun:
            await self._send(CallDelta(slot=0, arguments='"}'))

    async def _send(self, delta: CallDelta) -> None:
        await self._listener.on_deltas((delta,))


def _inside(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


def whole_paragraphs(text: str) -> str:
    """Truncate prose after the last complete sentence or line."""
    end = max(text.rfind(mark) + len(mark.rstrip()) for mark in (".\n", ". ", "!\n", "?\n", "\n\n"))
    return text[:end].rstrip() if end > len(text) // 2 else text.rpartition("\n")[0].rstrip() or text
