"""A server's tool as one of ours: it takes the server's own arguments, and every call of it is judged as `mcp:SERVER/TOOL`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import Any

from wolo.formats.format import ToolSpec
from wolo.guard.intents import CallIntent, Intent
from wolo.mcp.client import Client
from wolo.mcp.names import offered_name, rule_name
from wolo.mcp.schemas import Fitted
from wolo.mcp.tool_listing import Listed
from wolo.mcp.tool_result import Answer
from wolo.tools.background.clipping import clean, clip_and_keep
from wolo.tools.tool import Answered, Interrupted, Result, ToolContext

INTERRUPTED = "[interrupted: the server was told to stop; the call may have had effects]\n"


class RemoteTool:
    aliases: Mapping[str, str] = {}
    reads_only = False
    """What a server says of its tools is not relied on."""

    def __init__(self, client: Client, listed: Listed) -> None:
        self._client = client
        self._listed = listed
        self._fitted = Fitted(listed.parameters)
        self.name = offered_name(client.name, listed.name)
        self.spec = ToolSpec(self.name, listed.description, self._fitted.parameters)

    @property
    def server(self) -> str:
        return self._client.name

    def intents(self, args: Mapping[str, Any], context: ToolContext) -> Sequence[Intent]:
        return (CallIntent(f"mcp:{rule_name(self.server, self._listed.name)}"),)

    async def run(self, args: Mapping[str, Any], context: ToolContext) -> Result:
        if recorded := context.recorded(context.call_id):
            return recorded
        began = time.monotonic()
        try:
            answer = await self._client.call(self._listed.name, self._fitted.given_back(args), context.progress)
        except asyncio.CancelledError as error:
            raise Interrupted(Result(INTERRUPTED, outcome="interrupted")) from error
        return _result(self.name, answer, context, time.monotonic() - began)


def _result(name: str, answer: Answer, context: ToolContext, seconds: float) -> Result:
    text = b"".join(clean(context.secrets.hide(answer.text).encode(errors="replace")))
    shown = clip_and_keep(text, name=f"{name}-{context.call_id or 'output'}.txt", keep=context.keep)
    view = None if answer.is_error else Answered(shown, seconds)
    return Result(shown, view, is_error=answer.is_error, media=answer.media)
