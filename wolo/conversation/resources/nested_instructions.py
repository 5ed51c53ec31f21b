"""Adds the instructions of subfolders to the result of the call that touches them first."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from wolo.agent.agent_services import MessageHistory
from wolo.agent.compaction.compactor import Compactor
from wolo.agent.events import Noticed
from wolo.agent.hook_calls import AgentHooks
from wolo.agent.tool_execution import Emit
from wolo.guard.intents import Intent, ReadIntent, WriteIntent
from wolo.messages.message import INSTRUCTIONS
from wolo.messages.parts import ToolPart

NestedInstructions = Callable[[str, Sequence[Path]], tuple[Mapping[str, str], Sequence[str]]]
"""Takes the id of a call and the files it touched; returns texts by file name, and notices. May block."""
_LEAD = "[Project instructions for the files below these folders; they apply from now on.]"
_BLOCK = '<instructions file="{name}">\n{text}\n</instructions>'


class NestedGiven:
    """Gives each file once, and again if it changed or a compaction removed it from the messages."""

    def __init__(
        self,
        read: NestedInstructions,
        compactor: Compactor,
        history: MessageHistory,
        hide: Callable[[str], str],
        emit: Emit,
        hooks: AgentHooks,
    ) -> None:
        """`hide` redacts secrets."""
        self._read, self._compactor, self._history, self._hooks = read, compactor, history, hooks
        self._hide, self._emit = hide, emit
        self._answer_id = ""
        self._in_answer: dict[str, str] = {}
        """Given with calls of the running answer, which no sent message contains yet."""
        self._noticed: set[str] = set()

    async def add_to(self, part: ToolPart, message_id: str, intents: Sequence[Intent]) -> ToolPart:
        touched = [each.path for each in intents if isinstance(each, ReadIntent | WriteIntent)]
        if not touched:
            return part
        texts, notices = await asyncio.to_thread(self._read, part.id, touched)
        for notice in notices:
            if notice not in self._noticed:
                self._noticed.add(notice)
                await self._emit(Noticed(text=self._hide(notice), level="warning"))
        if not texts:
            return part
        if message_id != self._answer_id:
            self._answer_id, self._in_answer = message_id, {}
        known: dict[str, str] = {}
        for message in self._compactor.apply_cut(self._history.messages):
            for call in message.calls:
                known |= call.metadata.get(INSTRUCTIONS, {})
        known |= self._in_answer
        new = {name: text for name, text in ((name, self._hide(text)) for name, text in texts.items()) if known.get(name) != text}
        if not new:
            return part
        self._in_answer |= new
        if self._hooks.is_active:
            trigger = str(touched[0])
            for name in new:
                await self._hooks.run(
                    "InstructionsLoaded", file_path=name, load_reason="nested_traversal", trigger_file_path=trigger
                )
        blocks = "\n".join(_BLOCK.format(name=name, text=text) for name, text in new.items())
        return replace(part, output=f"{part.output}\n\n{_LEAD}\n{blocks}", metadata={**part.metadata, INSTRUCTIONS: new})
