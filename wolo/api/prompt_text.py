"""Expands slash commands and `@path` in a prompt that is a text."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from wolo.api.program_input import to_message
from wolo.commands.expansion import answered_by, expand
from wolo.conversation.conversation import Conversation
from wolo.conversation.prompt_attachments import compose, without_files
from wolo.messages.message import Message
from wolo.workspace.root import resolve_path


async def expand_text(
    prompt: str, conversation: Conversation, adopt: Callable[[Conversation], None] | None
) -> tuple[Message, list[str]]:
    """Returns the message and notices. `adopt` gets the conversation with the model of a command; None: the model stays.

    Raises UsageError.
    """
    text, typed, notices = prompt, prompt, list[str]()
    if prompt.startswith("/") and (made := await expand(prompt, conversation, lambda event: None)):
        text, typed = made.text, made.text if made.typed is None else made.typed
        if adopt is not None:
            conversation = await answered_by(made.model, conversation, notices.append)
            adopt(conversation)
        notices += made.notices
    message, unread = await attach_readable(text, typed, conversation)
    return message, notices + unread


async def attach_readable(text: str, typed: str, conversation: Conversation) -> tuple[Message, list[str]]:
    """Returns the message of a text, and notices. Mentions in `typed` attach files that the model may read without approval.

    Without the tool `read` they stay text. Raises UsageError for a file that cannot be attached.
    """
    if "@" not in typed or "read" not in conversation.info.tool_names:
        return to_message(text), []
    judge, cwd = conversation.permissions.judge, conversation.info.cwd
    typed, refused = without_files(typed, lambda path: judge.readable(Path(resolve_path(path))), cwd)
    attaching, agents = conversation.files.allow_attachment, conversation.mentionable_agents
    message = await asyncio.to_thread(compose, text, cwd=cwd, attaching=attaching, typed=typed, agents=agents)
    return message, [f"Not attached, because reading it needs an approval: {path}" for path in refused]
