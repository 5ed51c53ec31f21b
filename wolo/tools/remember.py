"""The `remember` tool: proposes a note for later conversations."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar, Literal

from msgspec import Meta, Struct

from wolo.errors import ToolError
from wolo.guard.intents import Intent
from wolo.messages.parts import ToolKind
from wolo.tools.tool import CallContext, ToolServices
from wolo.tools.tool_values import CallResult


class RememberArgs(Struct, frozen=True):
    note: Annotated[str, Meta(description="one sentence")]
    scope: Annotated[Literal["project", "user"], Meta(description="user: for all projects")] = "project"


class Remember:
    """Propose a note for later conversations: a correction or preference of the user, or a fact about the project that took
    effort to find and that no file states. The user approves it first. No secrets."""

    name: ClassVar[str] = "remember"
    Args: ClassVar[type[Struct]] = RememberArgs
    aliases: ClassVar[Mapping[str, str]] = dict.fromkeys(("text", "content", "memory", "fact"), "note")
    reads_only: ClassVar[bool] = False
    kind: ClassVar[ToolKind] = "think"

    def intents(self, args: RememberArgs, services: ToolServices) -> Sequence[Intent]:
        """The inbox is wolo's own file; only the user moves notes out of it."""
        return ()

    async def run(self, args: RememberArgs, call: CallContext) -> CallResult:
        if recorded := call.services.recorded_result(call.call_id):
            return recorded
        if (propose := call.services.propose_note) is None:
            raise ToolError("Notes are not available here.")
        return CallResult(await asyncio.to_thread(propose, call.services.secrets.hide(args.note), args.scope == "user"))
