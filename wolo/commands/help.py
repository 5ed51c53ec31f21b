"""/help: what can be typed, written from the commands themselves."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from functools import partial

from wolo.commands.command import GROUPS, Command, CommandContext, Group, Outcome, ShowText, find, named

Groups = Mapping[Group, Sequence[Command]]

KEYS = (
    ("Enter", "send; Alt-Enter or Ctrl-J makes a new line"),
    ("Esc", "stop what runs; twice on an empty line: go back"),
    ("Ctrl-C", "clear what is typed, or stop a turn; twice: leave"),
    ("Ctrl-D", "leave"),
    ("Up, Ctrl-R", "what was typed before"),
    ("@path", "attach a file"),
    ("//text", "send a text that begins with a slash"),
)
MOST_COLUMNS = 80
NAME_COLUMNS = 20
LEAST_COLUMNS = 45
"""In a narrower window words stand below the names."""
LEAST_ROWS = 16
"""In a lower window the names alone are told first."""


async def run(desk: CommandContext, rest: str) -> Outcome:
    columns = min(desk.columns - 1, MOST_COLUMNS)
    groups: Groups = {group: members for group in GROUPS if (members := [each for each in desk.commands if each.group == group])}
    if rest:
        return ShowText("\n".join(_about(rest, desk.commands, groups, columns)))
    if desk.rows < LEAST_ROWS:
        return ShowText("\n".join(_in_short(groups, columns)))
    lines = [line for group, members in groups.items() for line in (*_group(group, members, columns), "")]
    lines += ["Keys", *(line for key, words in KEYS for line in _row(key, words, columns)), ""]
    return ShowText("\n".join([*lines, *textwrap.wrap("/help NAME says more about a command.", columns)]))


def _about(wanted: str, commands: Sequence[Command], groups: Groups, columns: int) -> list[str]:
    """A command, a group of them, or both where one is called like the other."""
    group = next((each for each in groups if each.casefold() == wanted.casefold()), None)
    grouped = _group(group, groups[group], columns) if group else []
    name = wanted.removeprefix("/").split()[0]
    if grouped and not named(name, commands):
        return grouped
    return [page(find(name, commands), columns), *(["", *grouped] if grouped else [])]


def arguments(desk: CommandContext) -> list[tuple[str, str]]:
    return [(command.name, command.help) for command in desk.commands]


def page(command: Command, columns: int = MOST_COLUMNS) -> str:
    """All about one command."""
    wrap = partial(textwrap.wrap, width=max(columns - 2, 1), break_on_hyphens=False)
    lines = [f"/{command.name} {command.usage}".rstrip(), *wrap(f"{command.help}.")]
    if command.more:
        lines += ["", *wrap(command.more)]
    if command.aliases:
        lines += ["", f"Also: {', '.join(f'/{alias}' for alias in command.aliases)}"]
    if command.while_working:
        lines += ["", "Works while a turn runs."]
    return "\n".join(lines)


def _names(command: Command) -> str:
    return ", ".join(f"/{name}" for name in (command.name, *command.aliases))


def _group(name: str, members: Sequence[Command], columns: int) -> list[str]:
    return [name, *(line for command in members for line in _row(_names(command), command.help, columns))]


def _in_short(groups: Groups, columns: int) -> list[str]:
    """All names on as few lines as they take."""
    lines: list[str] = []
    for group, members in groups.items():
        names = " ".join(f"/{each.name}" for each in members)
        lines += textwrap.wrap(f"{group}: {names}", max(columns, 1), subsequent_indent="  ", break_on_hyphens=False)
    return [
        *lines,
        *textwrap.wrap("/help NAME says more about a command or a group, /keys about keys.", max(columns, 1)),
    ]


def _row(names: str, words: str, columns: int) -> list[str]:
    """One line, or as many as the words take."""
    if columns < LEAST_COLUMNS:
        return [f"  {names}", *textwrap.wrap(words, max(columns, 5), initial_indent="    ", subsequent_indent="    ")]
    first, indent = f"  {names} ".ljust(NAME_COLUMNS), " " * NAME_COLUMNS
    if len(first) > NAME_COLUMNS:
        return [first.rstrip(), *textwrap.wrap(words, columns, initial_indent=indent, subsequent_indent=indent)]
    return textwrap.wrap(words, columns, initial_indent=first, subsequent_indent=indent)
