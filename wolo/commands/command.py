"""Defines slash commands and finds the one that a typed line names."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from wolo.agent.events import Event
from wolo.conversation.conversation import Conversation
from wolo.errors import UsageError
from wolo.messages.terminal_text import clean_line

if TYPE_CHECKING:
    from wolo.conversation.user_command import CommandRights

Group = Literal["Conversation", "History", "Sessions", "Model", "Permissions", "Extensions", "Other", "Custom"]
GROUPS: tuple[Group, ...] = ("Conversation", "History", "Sessions", "Model", "Permissions", "Extensions", "Other", "Custom")
"""In the order of /help."""


class CommandContext(Struct, frozen=True):
    """Everything a command may use."""

    conversation: Conversation
    commands: tuple[Command, ...]
    rows: int = 24
    columns: int = 80
    """Size of the window that shows its output."""


class ShowText(Struct, frozen=True):
    text: str
    is_answer: bool = False
    """Written by the model: rendered like its answers."""


class RunEvents(Struct, frozen=True):
    """Long work, whose events are shown like those of a turn. `Conversation.interrupt` stops it."""

    events: AsyncIterator[Event]


class EmbeddedCommand(Struct, frozen=True):
    """A shell command whose output becomes part of a prompt."""

    command: str
    at: int
    """Offset in the text where the output is inserted."""
    rights: CommandRights


class Expansion(Struct, frozen=True):
    """The command that a prompt comes from, for hooks."""

    name: str
    arguments: str
    source: str
    """The file or server that defines it."""
    kind: Literal["slash_command", "mcp_prompt"] = "slash_command"


class SendPrompt(Struct, frozen=True):
    """A prompt to show and send as if the user had typed it."""

    text: str
    shown: str = ""
    """Shown instead of a long text; empty: the text itself."""
    typed: str | None = None
    """The part in which mentions count: the words of a person, and readable files that the author mentions; None: all."""
    model: str = ""
    """Answers this prompt only; empty: the model of the conversation."""
    runs: tuple[EmbeddedCommand, ...] = ()
    """Run before the prompt is sent."""
    notices: tuple[str, ...] = ()
    """Shown with it; without a text only these are shown."""
    expands: Expansion | None = None
    """None: the command is built in."""


class SwitchConversation(Struct, frozen=True):
    """Replaces the current conversation, which is closed."""

    conversation: Conversation
    draft: str = ""
    """Put into the composer for editing."""
    text: str = ""
    """Shown first."""
    sends: SendPrompt | None = None
    """Sent in it at once."""


class EditFile(Struct, frozen=True):
    """Opens a file in the user's editor."""

    path: Path


class Exit(Struct, frozen=True):
    """Quits wolo."""


Outcome = ShowText | SwitchConversation | RunEvents | SendPrompt | EditFile | Exit


class Command(Struct, frozen=True):
    name: str
    help: str
    """A single line."""
    run: Callable[[CommandContext, str], Awaitable[Outcome]]
    """Gets the rest of the line. Raises WoloError for the user."""
    aliases: tuple[str, ...] = ()
    doing: str = ""
    """Status text while it runs: "searching all sessions"; empty: its name."""
    usage: str = ""
    """Arguments as `/help NAME` shows them."""
    more: str = ""
    """Details for `/help NAME`."""
    group: Group = "Other"
    arguments: Callable[[CommandContext], Sequence[tuple[str, str]]] | None = None
    """Completions of the arguments, each with a line of help. Called while the user types."""
    repeats: bool = False
    """Several `arguments` may follow each other; those with blanks are quoted."""
    complete: Callable[[CommandContext, str], Sequence[tuple[str, str]]] | None = None
    """Completions of the last word, by all that is typed behind the name; instead of `arguments`."""
    makes_prompt: bool = False
    """It returns a `SendPrompt` or a `ShowText`, so it works without an interactive session."""
    asks: bool = False
    """Without a terminal it returns `RunEvents` with questions; it is not listed there: few providers have a dialog."""
    while_working: bool = False
    """May run during a turn: it neither switches the conversation nor starts a turn."""


def is_command(line: str) -> bool:
    """`//text` and paths are text."""
    return line.startswith("/") and "/" not in split_command(line)[0]


def split_command(line: str) -> tuple[str, str]:
    """The name after the slash, and the rest of the line."""
    name = re.match(r"\S*", line[1:])
    end = 1 + (name.end() if name else 0)
    return line[1:end], line[end:].strip()


async def dispatch(line: str, context: CommandContext) -> Outcome:
    """Runs the command that a line names. Raises UsageError for an unknown one."""
    name, rest = split_command(line)
    command = by_name(name, context.commands) or find(name, context.commands, context.conversation.user_files.untrusted)
    return await command.run(context, rest)


def find(name: str, commands: Sequence[Command], untrusted: str = "") -> Command:
    """By name or alias. Raises UsageError with the nearest name, or the `untrusted` files that may define it."""
    if command := by_name(name, commands):
        return command
    if several := [f"/{each.name}" for each in commands if each.name.endswith(f":{name}")]:
        raise UsageError(f"Several commands are called {clean_line(name)}.", hint=f"Name one in full: {', '.join(several)}.")
    from wolo.commands.other_agents import explain_name  # noqa: PLC0415  # only on the way to an error

    explain_name(name)
    names = [each for command in commands for each in (command.name, *command.aliases)]
    from difflib import get_close_matches  # noqa: PLC0415  # 5 ms, and only on the way to an error

    wanted = name.casefold()
    if wanted and (begun := [each for each in names if each.startswith(wanted)]):
        nearest = begun[0]
    else:
        nearest = next(iter(get_close_matches(wanted, names, n=1, cutoff=0.6)), "")
    hint = f"Did you mean /{nearest}? /help lists all commands." if nearest else "/help lists all commands."
    hint = f"Not used, because this folder is not trusted (--trust): {untrusted}." if untrusted else hint
    raise UsageError(f"Unknown command: /{clean_line(name)}.", hint=hint)


def by_name(name: str, commands: Sequence[Command]) -> Command | None:
    """Ours by a name of other agents, too, unless one of the commands has it."""
    if (command := _exact_match(name, commands)) is not None:
        return command
    from wolo.commands.other_agents import SAME  # noqa: PLC0415  # few lines name another agent's command

    return _exact_match(SAME.get(name, ""), commands)


def _exact_match(name: str, commands: Sequence[Command]) -> Command | None:
    return next((each for each in commands if name in (each.name, *each.aliases)), None)


def number(text: str) -> int:
    """Parses the number of a prompt. Raises UsageError."""
    if not text.isdecimal():
        raise UsageError(f"{text} is not a number.", hint="/tree shows the numbers of the prompts.")
    return int(text)


LEAST_CHARS = 24
"""Width of a description, even in a narrower window."""


def rows(pairs: Sequence[tuple[str, str]], columns: int) -> list[str]:
    width = max((len(name) for name, _ in pairs), default=0)
    room = max(columns - 1 - width - 2, LEAST_CHARS)
    return [f"{name:<{width}}  {shorten(words, room)}" for name, words in pairs]


def shorten(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"
