"""Turns what the user submits into messages, `!commands` and `#notes`."""

from __future__ import annotations

import errno
import re
import stat
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from wolo.agent.events import CallEnded
from wolo.commands.command import SendPrompt, SwitchConversation
from wolo.conversation.conversation import Conversation
from wolo.conversation.handover import HandoverFailed
from wolo.conversation.prompt_attachments import unresolved_mentions, write_prompt
from wolo.conversation.resources.startup import ConversationChange
from wolo.errors import UsageError, WoloError
from wolo.frontends.terminal.composer.pastes import Pastes
from wolo.frontends.terminal.display.event_view import Screen
from wolo.frontends.terminal.display.line_prompt import Dismissed, PassedOver, ask_line
from wolo.frontends.terminal.display.terminal import Terminal
from wolo.messages.message import UserPrompt
from wolo.messages.terminal_text import clean_line
from wolo.operating_system import os
from wolo.places import find_places

NOTES = "AGENTS.md"
QUESTION = f"Save to the [p]roject's or [y]our own {NOTES}, [s]end it as a prompt, or [n]either? [p/y/s/N] › "
_OPENED = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
_NOTE = re.compile(r"#+(?![\d#])[^\S\n]*[^#\s][^\n]*\Z")


# Prompts


def make_message(
    submitted: str | SendPrompt, conversation: Conversation, pastes: Pastes, ran: Sequence[str], screen: Screen
) -> UserPrompt:
    """`ran`: output of the user's own commands. Raises UsageError for a file that cannot be attached."""
    if isinstance(submitted, SendPrompt):
        text, typed = submitted.text, submitted.text if submitted.typed is None else submitted.typed
    else:
        text = typed = submitted[1:] if submitted.startswith("//") else submitted
        if unresolved := unresolved_mentions(pastes.without_pastes(typed), conversation):
            verb = "names no file and is" if len(unresolved) == 1 else "name no files and are"
            screen.show_text(f"{', '.join(map(clean_line, unresolved))} {verb} sent as text.", "dim")
    return write_prompt(
        pastes.unfold(text),
        conversation,
        origin="keyboard",
        notify=screen.show_text,
        typed=pastes.without_pastes(typed),
        ran=tuple(ran),
    )


def show_prompt(prompt: SendPrompt, screen: Screen) -> None:
    screen.show_user_text(prompt.shown or prompt.text)
    for notice in prompt.notices:
        screen.show_text(notice, "warning")


@asynccontextmanager
async def answering_with(
    model: str, conversation: Conversation, change_to: Callable[[SwitchConversation], None], screen: Screen
) -> AsyncIterator[None]:
    """Switches to the model while the block runs; stays with the current one if it is empty or not available."""
    if model in ("", conversation.info.model):
        yield
        return
    before = (
        f"{conversation.info.model}:{conversation.choice.thinking}" if conversation.choice.thinking else conversation.info.model
    )
    try:
        other = await conversation.reopen(ConversationChange(model=model))
    except HandoverFailed:
        raise
    except WoloError as error:
        screen.show_text(f"{error.message} {conversation.info.model} answers instead.", "warning")
        yield
        return
    change_to(SwitchConversation(other, text=f"{other.info.model} answers this prompt."))
    try:
        yield
    finally:
        change_to(
            SwitchConversation(await other.reopen(ConversationChange(model=before)), text=f"Back to {conversation.info.model}.")
        )


# Commands and notes


async def run_command(line: str, conversation: Conversation, terminal: Terminal) -> str:
    """Runs `!command`. Returns what the next prompt tells the model about it; empty for `!!command`."""
    if not (command := line.lstrip("!").strip()):
        raise UsageError("No command follows the !.", hint="!ls runs ls; a space before the ! sends it as text.")
    output = ""
    terminal.screen.is_brief = False
    try:
        with terminal.signals.during(conversation.interrupt):
            async for event in conversation.run_user_command(command):
                terminal.screen.show(event)
                if isinstance(event, CallEnded):
                    output = event.part.output
    finally:
        terminal.screen.is_brief = True
    return "" if line.startswith("!!") else f"$ {command}\n{output}"


def is_note(line: str) -> bool:
    """A single line that begins with `#`; `#12` is a number."""
    return _NOTE.match(line) is not None


async def save_note(line: str, conversation: Conversation, terminal: Terminal) -> bool:
    """Asks where to save the note. True: it is a prompt after all."""
    try:
        answer = await ask_line(QUESTION, terminal, may_pass=True)
    except (Dismissed, PassedOver, EOFError):
        answer = ""
    if answer.strip().lower().startswith("s"):
        return True
    if (path := note_path(answer, conversation.info.root)) is None:
        terminal.screen.show_text("The note was not saved.", "dim")
    else:
        append_note(line, path)
        terminal.screen.show_text(f"Saved in {path}; new conversations read it.", "dim")
    return False


def note_path(answer: str, root: Path) -> Path | None:
    return {"p": root / NOTES, "y": find_places().config / NOTES}.get(answer.strip().lower()[:1])


def append_note(line: str, path: Path) -> None:
    """Appends the note as a list item. Raises UsageError when the file cannot be written."""
    note = line.lstrip("#").strip()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, _OPENED, 0o644)
        with open(descriptor, "rb+", buffering=0) as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise OSError(errno.EINVAL, "not a regular file")
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - 1))
            gap = b"\n" if size and file.read(1) != b"\n" else b""
            item = gap + f"- {note}\n".encode()
            if file.write(item) < len(item):
                raise OSError(errno.ENOSPC, "the disk is full")
    except OSError as error:
        why = "it is a symbolic link" if error.errno == errno.ELOOP else error.strerror
        raise UsageError(f"Cannot write {path}: {why}.", hint="Press Up to get the note back.") from error
