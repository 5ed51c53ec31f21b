"""Prompts of MCP servers as slash commands: `/mcp__SERVER__PROMPT words`."""

from __future__ import annotations

import asyncio
import mimetypes
from collections.abc import Iterator, Sequence
from functools import partial

from wolo.commands.arguments import words
from wolo.commands.command import Command, CommandContext, Expansion, Outcome, SendPrompt, shorten
from wolo.conversation.conversation import Conversation
from wolo.errors import ToolError, UsageError
from wolo.mcp.connection import Completing, PromptMessage
from wolo.mcp.listings import ListedPrompt
from wolo.mcp.mcp_tool import offered_name
from wolo.mcp.tool_answer import BinaryFile, ToolAnswer
from wolo.messages.terminal_text import clean, clean_line

_LONGEST_HELP = 58


def prompt_commands(conversation: Conversation) -> Iterator[Command]:
    for server, prompts in conversation.servers.prompts.items():
        for prompt in prompts:
            placeholders = [f"<{each.name}>" if each.required else f"[{each.name}]" for each in prompt.arguments]
            facts = [
                f"A prompt of the MCP server {server}.",
                prompt.description,
                *[f"{each.name}: {each.description}" for each in prompt.arguments if each.description],
            ]
            yield Command(
                offered_name(server, prompt.name),
                shorten(prompt.description, _LONGEST_HELP) or f"prompt of {server}",
                partial(_send, server, prompt),
                usage=" ".join(map(clean_line, placeholders)),
                more=" ".join(filter(None, facts)),
                group="Custom",
                makes_prompt=True,
                complete=partial(_complete, server, prompt) if prompt.arguments else None,
            )


async def _send(server: str, prompt: ListedPrompt, context: CommandContext, rest: str) -> Outcome:
    conversation = context.conversation
    arguments = read_arguments(prompt, rest)
    try:
        messages = await conversation.servers.prompt(server, prompt.name, arguments)
    except ToolError as error:
        raise UsageError(error.message) from error
    text, files = await asyncio.to_thread(_compose, messages, conversation)
    if not text.strip() and not files:
        raise UsageError(f"{server} returned an empty prompt.")
    mentions = " ".join(f'@"{file}"' for file in files)
    expansion = Expansion(offered_name(server, prompt.name), rest, server, "mcp_prompt")
    return SendPrompt("\n\n".join(filter(None, (text, mentions))), typed=mentions, expands=expansion)


def read_arguments(prompt: ListedPrompt, rest: str) -> dict[str, str]:
    """Words in the order of the arguments, or `name=value`; the last argument takes all that is left.

    Raises UsageError for a missing one.
    """
    names = [each.name for each in prompt.arguments]
    values: dict[str, str] = {}
    loose: list[str] = []
    for word in words(rest):
        name, sign, value = word.partition("=")
        if sign and name in names:
            values[name] = value
        else:
            loose.append(word)
    free = [name for name in names if name not in values]
    if loose and not free:
        raise UsageError(f"{prompt.name} takes no further words: {' '.join(loose)}")
    for at, name in enumerate(free):
        taken = loose[at:] if at == len(free) - 1 else loose[at : at + 1]
        if taken:
            values[name] = " ".join(taken)
    missing = [each.name for each in prompt.arguments if each.required and each.name not in values]
    if missing:
        placeholders = " ".join(f"<{each.name}>" if each.required else f"[{each.name}]" for each in prompt.arguments)
        raise UsageError(f"{prompt.name} needs {', '.join(missing)}.", hint=f"Its arguments: {placeholders}")
    return values


def _compose(messages: Sequence[PromptMessage], conversation: Conversation) -> tuple[str, list[str]]:
    """Text, and files of images and recordings. Answers of the assistant are marked as such."""
    pieces: list[str] = []
    files: list[str] = []
    for message in messages:
        for item in message.items:
            if isinstance(item, BinaryFile):
                pieces.append(ToolAnswer((item,)).text(conversation.files.services.save_output))
            elif isinstance(item, str):
                said = clean(item)
                pieces.append(said if message.role != "assistant" else f"<assistant>\n{said}\n</assistant>")
            else:
                extension = mimetypes.guess_extension(item.media_type) or ".bin"
                files.append(str(conversation.files.services.save_output(f"{message.role}{extension}", item.data)))
    return "\n\n".join(pieces), files


def _complete(server: str, prompt: ListedPrompt, context: CommandContext, rest: str) -> Sequence[tuple[str, str]]:
    """Values of the argument that is being typed. Called from a thread."""
    try:
        typed = words(rest)
    except UsageError:
        return ()
    if rest[-1:].isspace() or not rest:
        typed.append("")
    at = min(len(typed), len(prompt.arguments)) - 1
    argument = prompt.arguments[at]
    others = {each.name: word for each, word in zip(prompt.arguments[:at], typed, strict=False)}
    wanted = Completing(prompt.name, "", argument.name, " ".join(typed[at:]), others)
    help = argument.description or argument.name
    return [(value, help) for value in context.conversation.servers.complete(server, wanted)]
