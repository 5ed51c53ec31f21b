"""What a slash command is, and how a typed line finds one."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Literal

from msgspec import Struct

from wolo.agent.events import Event
from wolo.agent.user_command import Footing
from wolo.conversation.conversation import Conversation
from wolo.errors import UsageError
from wolo.messages.terminal_text import clean_line

Group = Literal["Talking", "Going back", "Sessions", "The model", "What it may do", "Around", "From files"]
GROUPS: tuple[Group, ...] = ("Talking", "Going back", "Sessions", "The model", "What it may do", "Around", "From files")
"""In the order in which /help shows them."""


class CommandContext(Struct, frozen=True):
    """What a command may use."""

    conversation: Conversation
    commands: tuple[Command, ...]
    rows: int = 24
    columns: int = 80
    """Of the window in which is read what it shows."""


class ShowText(Struct, frozen=True):
    """Something to read."""

    text: str
    is_answer: bool = False
    """Written by the model: to be drawn as its answers are."""


class SwitchConversation(Struct, frozen=True):
    """Another conversation takes the place of this one, which is closed."""

    conversation: Conversation
    draft: str = ""
    """What the person may want to write anew."""
    text: str = ""
    """Something to read first."""


class RunEvents(Struct, frozen=True):
    """Something that takes a while: its events are to be shown as those of a turn. `Conversation.interrupt` stops it."""

    events: AsyncIterator[Event]


class EmbeddedCommand(Struct, frozen=True):
    """A command whose output becomes part of a prompt."""

    command: str
    at: int
    """The place in the text where its output belongs."""
    footing: Footing


class SendPrompt(Struct, frozen=True):
    """A prompt, to be shown and then sent as if the person had written it."""

    text: str
    shown: str = ""
    """Instead of the text, where that is long; empty: the text."""
    typed: str | None = None
    """What of it can name files; None: all of it."""
    model: str = ""
    """Answers this prompt only; empty: the one of the conversation."""
    runs: tuple[EmbeddedCommand, ...] = ()
    """Commands to be run first."""
    notices: tuple[str, ...] = ()


class Exit(Struct, frozen=True):
    """The person leaves."""


Outcome = ShowText | SwitchConversation | RunEvents | SendPrompt | Exit


class Command(Struct, frozen=True):
    name: str
    help: str
    """One line."""
    run: Callable[[CommandContext, str], Awaitable[Outcome]]
    """Gets the rest of the line. Raises WoloError for what a person must mend."""
    aliases: tuple[str, ...] = ()
    doing: str = ""
    """What it does, for whoever waits: "searching all sessions"; empty: that is told by its name."""
    usage: str = ""
    """What may follow the name, as `/help NAME` shows it."""
    more: str = ""
    """What one line cannot say."""
    group: Group = "Around"
    arguments: Callable[[CommandContext], Sequence[tuple[str, str]]] | None = None
    """What can follow the name, each with one line of help: for completion. It is called while a person types."""
    repeats: bool = False
    """Several of the `arguments` may follow each other; what holds a blank stands in quotes."""
    while_working: bool = False
    """It may run while the model works: it neither opens another conversation nor begins a turn."""


def is_command(line: str) -> bool:
    """`//text` is text that begins with a slash, and so is a path."""
    return line.startswith("/") and "/" not in split_command(line)[0]


def split_command(line: str) -> tuple[str, str]:
    """The name behind the slash, and what follows the first blank or line end behind it."""
    name = re.match(r"\S*", line[1:])
    end = 1 + (name.end() if name else 0)
    return line[1:end], line[end:].strip()


async def dispatch(line: str, desk: CommandContext) -> Outcome:
    """Runs the command that a line beginning with `/` names. Raises UsageError for one that is not there."""
    name, rest = split_command(line)
    return await find(name, desk.commands).run(desk, rest)


def find(name: str, commands: Sequence[Command]) -> Command:
    """By its name or another name of it. Raises UsageError with the nearest one."""
    if command := named(name, commands):
        return command
    nearest = _nearest(name, [each for command in commands for each in (command.name, *command.aliases)])
    hint = f"Did you mean /{nearest}? /help lists all." if nearest else "/help lists them."
    raise UsageError(f"There is no command /{clean_line(name)}.", hint=hint)


def named(name: str, commands: Sequence[Command]) -> Command | None:
    return next((each for each in commands if name in (each.name, *each.aliases)), None)


def _nearest(name: str, names: Sequence[str]) -> str:
    """The command that was probably meant; empty: nobody knows."""
    from difflib import get_close_matches  # noqa: PLC0415  # 5 ms, and only on the way to an error

    wanted = name.casefold()
    if wanted and (begun := [each for each in names if each.startswith(wanted)]):
        return begun[0]
    return next(iter(get_close_matches(wanted, names, n=1, cutoff=0.6)), "")


def number(text: str) -> int:
    """The number of a prompt that a person typed. Raises UsageError."""
    if not text.isdecimal():
        raise UsageError(f"{text} is no number.", hint="/tree shows the numbers of the prompts.")
    return int(text)
