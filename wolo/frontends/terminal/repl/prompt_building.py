"""What a prompt is made of when it is sent, and the prompts that commands write: shown, and asked of the model they want."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Protocol

from msgspec.structs import replace
from rich.text import Text

from wolo.agent.events import CallEnded
from wolo.commands.command import EmbeddedCommand, SendPrompt, SwitchConversation
from wolo.conversation.attachments import compose
from wolo.conversation.conversation import Conversation
from wolo.conversation.handover import HandoverFailed
from wolo.conversation.resources.startup import Change
from wolo.errors import UsageError, WoloError
from wolo.frontends.terminal.composer.pastes import Pastes
from wolo.frontends.terminal.display.event_view import Screen
from wolo.frontends.terminal.display.terminal import Terminal
from wolo.messages.message import Message
from wolo.messages.terminal_text import clean
from wolo.tools.tool_values import Output


def message_of(said: str | SendPrompt, conversation: Conversation, pastes: Pastes, ran: Sequence[str]) -> Message:
    """Raises UsageError for a file that cannot be attached."""
    if isinstance(said, SendPrompt):
        text, typed = said.text, said.text if said.typed is None else said.typed
    else:
        text = typed = said[1:] if said.startswith("//") else said
    return compose(
        pastes.unfold(text), typed=pastes.typed(typed), ran=tuple(ran), cwd=conversation.cwd, attaching=conversation.attaching
    )


def show_prompt(prompted: SendPrompt, screen: Screen) -> None:
    screen.print(Text.assemble(("› ", "bold"), clean(prompted.shown or prompted.text)))
    for notice in prompted.notices:
        screen.say(notice, "warning")


async def run_first(prompted: SendPrompt, conversation: Conversation, terminal: Terminal) -> SendPrompt:
    """With what its commands have printed. Raises UsageError when the person stops one of them."""
    text, typed = prompted.text, prompted.text if prompted.typed is None else prompted.typed
    printed = [await _printed(run, conversation, terminal) for run in prompted.runs]
    for run, output in reversed(list(zip(prompted.runs, printed, strict=True))):
        text = f"{text[: run.at]}{output}{text[run.at :]}"
    return replace(prompted, text=text, typed=typed, runs=())


async def _printed(run: EmbeddedCommand, conversation: Conversation, terminal: Terminal) -> str:
    ended = None
    with terminal.signals.during(conversation.interrupt):
        async for event in conversation.run_user_command(run.command, run.rights):
            terminal.screen.show(event)
            ended = event if isinstance(event, CallEnded) else ended
    if ended is None or ended.part.outcome in ("interrupted", "never_started"):
        raise UsageError("It was stopped, so nothing was sent.")
    if isinstance(ended.view, Output) and ended.view.exit_code == 0:
        return ended.view.text.rstrip("\n")
    return ended.part.output.rstrip("\n")


class ConversationSwitch(Protocol):
    def change_to(self, opened: SwitchConversation) -> None: ...


@asynccontextmanager
async def answered_by(model: str, conversation: Conversation, switch: ConversationSwitch, screen: Screen) -> AsyncIterator[None]:
    """Meanwhile this model answers; the one at hand where none is named, or it cannot be had."""
    if model in ("", conversation.model):
        yield
        return
    before = f"{conversation.model}:{conversation.thinking}" if conversation.thinking else conversation.model
    try:
        other = await conversation.reopen(Change(model=model))
    except HandoverFailed:
        raise
    except WoloError as error:
        screen.say(f"{error.message} {conversation.model} answers instead.", "warning")
        yield
        return
    switch.change_to(SwitchConversation(other, text=f"{other.model} answers this prompt."))
    try:
        yield
    finally:
        switch.change_to(SwitchConversation(await other.reopen(Change(model=before)), text=f"{conversation.model} goes on."))
