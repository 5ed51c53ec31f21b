"""Shows a file while a tiny model is writing it, in the form of a call that is being streamed."""

from __future__ import annotations

import json

from wolo.messages.deltas import CallDelta
from wolo.models.protocol import Listener


class CallStream:
    """Passes code on as fragments of the arguments of a `write` call, without the beginning that was put in the model's mouth."""

    def __init__(self, listener: Listener, call_id: str, path: str, prefill: str) -> None:
        self._listener = listener
        self._call_id = call_id
        self._path = path
        self._prefill = prefill
        self._held = ""
        self._begun = False

    async def add(self, text: str) -> None:
        if self._begun:
            await self._tell(CallDelta(slot=0, arguments=_inside(text)))
            return
        self._held += text
        if len(self._held) < len(self._prefill) and self._prefill.startswith(self._held):
            return
        self._begun = True
        head = json.dumps({"path": self._path}, ensure_ascii=False)[:-1] + ', "content": "'
        code = self._held.removeprefix(self._prefill)
        await self._tell(CallDelta(slot=0, call_id=self._call_id, tool="write", arguments=head + _inside(code)))

    async def end(self) -> None:
        if self._begun:
            await self._tell(CallDelta(slot=0, arguments='"}'))

    async def _tell(self, delta: CallDelta) -> None:
        await self._listener.on_deltas((delta,))


def _inside(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]
