"""Rewinds the files of a session to a prompt, which the program names by a UUID."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wolo.conversation.conversation import Conversation
from wolo.conversation.history.turn_undo import FORGOTTEN, Undoing
from wolo.errors import UsageError


def prompt_uuid(message_id: str) -> str:
    """The name of a prompt to which the program gave none; the same in every process."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, message_id))


async def rewind_files(
    conversation: Conversation, names: Mapping[str, str], name: str, *, is_preview: bool
) -> tuple[Conversation, dict[str, Any]]:
    """The files are as before that prompt; the conversation stays, and the model is told. Returns the one that continues it.

    `names` are the program's own, with the ids of their prompts. Raises WoloError.
    """
    ids = [message.id for message in conversation.history if message.is_prompt]
    number = next((at for at, id in enumerate(reversed(ids), 1) if name == prompt_uuid(id) or names.get(name) == id), 0)
    undoing = Undoing.of(conversation)
    whole = await asyncio.to_thread(undoing.undo, number) if number else None
    if whole is None or FORGOTTEN in whole.report.not_covered:
        why = FORGOTTEN if whole else f"There is no prompt {name} in this session."
        if is_preview:
            return conversation, {"canRewind": False, "error": why}
        raise UsageError(why)
    paths = [step.path for step in whole.plan.steps]
    response: dict[str, Any] = {"canRewind": True, "filesChanged": paths}
    if conflicts := [each.path for each in whole.report.conflicts]:
        response["error"] = f"Not restored, because they were changed since: {', '.join(conflicts)}."
    if paths and not is_preview:
        done = await asyncio.to_thread(lambda: undoing.carry_out(undoing.undo(number, map(Path, paths))))
        conversation = await conversation.reopen(done.change)
        if (store := conversation.files.tracker.store) is not None:
            store.end_step(done.step)
    return conversation, response
