"""Expands a prompt that begins with a slash command, for every front end without an input line."""

from __future__ import annotations

import os
import re
from collections.abc import Callable

from msgspec.structs import replace

from wolo.agent.events import CallEnded, Event, Noticed
from wolo.agent.hook_calls import CONTEXT
from wolo.commands.command import (
    Command,
    CommandContext,
    EmbeddedCommand,
    Expansion,
    RunEvents,
    SendPrompt,
    ShowText,
    by_name,
    find,
    is_command,
    split_command,
)
from wolo.commands.table import load_commands
from wolo.commands.user_commands import load_user_commands
from wolo.conversation.conversation import Conversation
from wolo.conversation.handover import HandoverFailed
from wolo.conversation.resources.startup import ConversationChange
from wolo.errors import UsageError, WoloError
from wolo.messages.message import Origin, is_typed
from wolo.tools.tool_values import Output
from wolo.tools.toolbox import MCP_PREFIX

_NAME = r"[A-Za-z][\w.:-]*"
AS_TEXT = "A blank before the slash sends it as text."


async def expand(prompt: str, conversation: Conversation, show: Callable[[Event], None], origin: Origin) -> SendPrompt | None:
    """The prompt that a command makes, after running the shell commands in it; None: the prompt is text.

    A prompt without text is not sent: the command has only notices. A path is text, and so is what nobody typed.

    Raises UsageError for an unknown command, and for one that makes no prompt.
    `show` gets the events of the shell commands, and a notice about what stays text.
    """
    line = prompt.rstrip()
    name, rest = split_command(line)
    if not name or not is_command(line):
        return None
    if not (is_typed(origin) and conversation.info.mentions):
        if re.fullmatch(_NAME, name) and not os.path.lexists(f"/{name}"):  # noqa: ASYNC240  # as below
            show(Noticed(text=f"/{name} is sent as text: slash commands count where a person types them.", level="warning"))
        return None
    if name.startswith(MCP_PREFIX):
        await conversation.servers.wait_known()
    builtin = load_commands()
    commands = (*builtin, *load_user_commands(conversation, builtin))
    command = by_name(name, commands)
    if command is None and (not re.fullmatch(_NAME, name) or os.path.lexists(f"/{name}")):  # noqa: ASYNC240  # once, before the first request
        return None
    if command is None or not (command.makes_prompt or command.asks):
        raise _unusable(name, command, commands, conversation.user_files.untrusted)
    outcome = await command.run(CommandContext(conversation, commands), rest)
    if isinstance(outcome, ShowText):
        return SendPrompt("", notices=(outcome.text,))
    if isinstance(outcome, RunEvents):
        async for event in outcome.events:
            show(event)
        return SendPrompt("")
    assert isinstance(outcome, SendPrompt)  # the promise of `makes_prompt`
    return await run_embedded(outcome, conversation, show)


async def run_embedded(prompt: SendPrompt, conversation: Conversation, show: Callable[[Event], None]) -> SendPrompt:
    """Replaces the prompt's commands by their output.

    Raises UsageError when the user stops one of them, or a hook blocks the prompt.
    """
    if prompt.expands is not None and (context := await _ask_hooks(prompt.expands, conversation)):
        prompt = replace(prompt, typed=prompt.text if prompt.typed is None else prompt.typed, text=f"{prompt.text}\n\n{context}")
    text, typed = prompt.text, prompt.text if prompt.typed is None else prompt.typed
    outputs = [await _output(run, conversation, show) for run in prompt.runs]
    for run, output in reversed(list(zip(prompt.runs, outputs, strict=True))):
        text = f"{text[: run.at]}{output}{text[run.at :]}"
    return replace(prompt, text=text, typed=typed, runs=())


async def _ask_hooks(expansion: Expansion, conversation: Conversation) -> str:
    """The text that `UserPromptExpansion` hooks add. Raises UsageError."""
    hooks = conversation.agent.services.hooks
    if not hooks.is_active:
        return ""
    typed = f"/{expansion.name} {expansion.arguments}".strip()
    answer = await hooks.run(
        "UserPromptExpansion",
        expansion_type=expansion.kind,
        command_name=expansion.name,
        command_args=expansion.arguments,
        command_source=expansion.source,
        prompt=typed,
    )
    if answer.decision == "deny" or answer.stops:
        raise UsageError(f"A hook blocked /{expansion.name}: {answer.reason or answer.stop_reason}", hint="Nothing was sent.")
    return CONTEXT.format(text=answer.context) if answer.context else ""


async def _output(run: EmbeddedCommand, conversation: Conversation, show: Callable[[Event], None]) -> str:
    ended = None
    async for event in conversation.run_user_command(run.command, run.rights):
        show(event)
        ended = event if isinstance(event, CallEnded) else ended
    if ended is None or ended.part.outcome in ("interrupted", "never_started"):
        raise UsageError("The command was stopped, so nothing was sent.")
    if isinstance(ended.view, Output) and ended.view.exit_code == 0:
        return ended.view.text.rstrip("\n")
    return ended.part.output.rstrip("\n")


async def switch_model(model: str, conversation: Conversation, notify: Callable[[str], None]) -> Conversation:
    """Opens the model that a command selects; the current one continues if that is not available."""
    if model in ("", conversation.info.model):
        return conversation
    try:
        return await conversation.reopen(ConversationChange(model=model))
    except HandoverFailed as failed:
        if failed.conversation is None:
            raise
        notify(f"{failed.message} {conversation.info.model} answers instead.")
        return failed.conversation
    except WoloError as error:
        notify(f"{error.message} {conversation.info.model} answers instead.")
        return conversation


def _unusable(name: str, command: Command | None, commands: tuple[Command, ...], untrusted: str) -> UsageError:
    if command is not None:
        return UsageError(f"/{name} works in an interactive session only.", hint=AS_TEXT)
    try:
        find(name, commands, untrusted)
    except UsageError as error:
        return UsageError(error.message, hint=f"{error.hint.removesuffix('/help lists all commands.').strip()} {AS_TEXT}".strip())
    raise AssertionError(name)
