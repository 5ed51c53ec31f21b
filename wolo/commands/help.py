"""/help: what can be typed, written from the commands themselves."""

from __future__ import annotations

import textwrap

from wolo.commands.command import GROUPS, Command, Desk, Outcome, Shown, find

KEYS = (
    ("Enter", "send; Alt-Enter or Ctrl-J makes a new line"),
    ("Esc", "stop what runs; twice on an empty line: go back"),
    ("Ctrl-C", "clear what is typed, or stop a turn; twice: leave"),
    ("Ctrl-D", "leave"),
    ("Up, Ctrl-R", "what was typed before"),
    ("@path", "attach a file"),
    ("//text", "send a text that begins with a slash"),
)
COLUMNS = 80
NAME_COLUMNS = 20


async def run(desk: Desk, rest: str) -> Outcome:
    if rest:
        return Shown(page(find(rest.removeprefix("/").split()[0], desk.commands)))
    lines: list[str] = []
    for group in GROUPS:
        members = [command for command in desk.commands if command.group == group]
        if members:
            lines += [group, *(line for command in members for line in _row(_names(command), command.help)), ""]
    lines += ["Keys", *(line for key, words in KEYS for line in _row(key, words)), "", "/help NAME says more about a command."]
    return Shown("\n".join(lines))


def arguments(desk: Desk) -> list[tuple[str, str]]:
    return [(command.name, command.help) for command in desk.commands]


def page(command: Command) -> str:
    """All about one command."""
    lines = [f"/{command.name} {command.usage}".rstrip(), *textwrap.wrap(f"{command.help}.", COLUMNS - 2)]
    if command.more:
        lines += ["", *textwrap.wrap(command.more, COLUMNS - 2)]
    if command.aliases:
        lines += ["", f"Also: {', '.join(f'/{alias}' for alias in command.aliases)}"]
    if command.while_working:
        lines += ["", "Works while a turn runs."]
    return "\n".join(lines)


def _names(command: Command) -> str:
    return ", ".join(f"/{name}" for name in (command.name, *command.aliases))


def _row(names: str, words: str) -> list[str]:
    """One line, or as many as the words take."""
    first = f"  {names} ".ljust(NAME_COLUMNS)
    return textwrap.wrap(words, COLUMNS, initial_indent=first, subsequent_indent=" " * NAME_COLUMNS)
