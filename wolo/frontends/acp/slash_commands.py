"""Slash commands in an editor: those that make prompts, and those that need no terminal."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

from wolo.agent.events import Compacted, Event, Noticed
from wolo.commands.command import (
    Command,
    CommandContext,
    RunEvents,
    ShowText,
    SwitchConversation,
    by_name,
    is_command,
    split_command,
)
from wolo.commands.table import load_commands
from wolo.commands.user_commands import load_user_commands
from wolo.conversation.conversation import Conversation
from wolo.conversation.phrasing import describe_briefly
from wolo.frontends.acp.acp_sdk import schema
from wolo.messages.terminal_text import clean

HERE = frozenset(
    (
        *("btw", "mode", "todo", "jobs", "undo", "redo", "diff", "model", "thinking", "context", "compact", "uncompact", "cost"),
        *("tools", "skills", "status"),
    )
)
"""Built-in commands that show text, or change the session that the editor has open."""
_COLUMNS = 100
Outcomes = AsyncGenerator[str | Event | Conversation, None]


def available(conversation: Conversation) -> list[Any]:
    """Commands that the client may offer. Blocks."""
    builtin = load_commands()
    return [
        schema.AvailableCommand(
            name=each.name,
            description=each.help,
            input=schema.AvailableCommandInput(root=schema.UnstructuredCommandInput(hint=each.usage or "words"))
            if each.usage or each.makes_prompt
            else None,
        )
        for each in (*builtin, *load_user_commands(conversation, builtin))
        if each.makes_prompt or each.name in HERE
    ]


def find_command(line: str, conversation: Conversation) -> tuple[Command, str] | None:
    """The command and its arguments; None for text, and for commands that make prompts."""
    if not is_command(line):
        return None
    name, rest = split_command(line)
    builtin = load_commands()
    command = by_name(name, (*builtin, *load_user_commands(conversation, builtin)))
    return (command, rest) if command in builtin and (command.name in HERE or command.asks) else None


async def run_command(command: Command, rest: str, conversation: Conversation) -> Outcomes:
    """Yields texts and events, and the conversation that continues the session. Raises WoloError."""
    builtin = load_commands()
    commands = (*builtin, *load_user_commands(conversation, builtin))
    outcome = await command.run(CommandContext(conversation, commands, columns=_COLUMNS), rest)
    match outcome:
        case ShowText(is_answer=True):
            yield outcome.text
        case ShowText():
            yield as_written(outcome.text)
        case SwitchConversation():
            yield outcome.conversation
            yield as_written(outcome.text or f"{outcome.conversation.info.model} answers from now on.")
        case RunEvents():
            async for event in outcome.events:
                match event:
                    case Noticed():
                        yield f"{describe_briefly(event)}\n"
                    case Compacted():
                        yield f"About {event.tokens_after:,} of {event.tokens_before:,} tokens are sent from now on.\n"
                    case _:
                        yield event


def as_written(text: str) -> str:
    """Columns stay columns in a client that renders Markdown."""
    text, fence = clean(text), "```"
    while fence in text:
        fence += "`"
    return f"{fence}\n{text}\n{fence}" if "\n" in text else text
