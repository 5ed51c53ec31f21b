"""/help: lists the commands, or explains one."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from functools import partial

from wolo.commands.command import GROUPS, Command, CommandContext, Group, Outcome, ShowText, by_name, find

Groups = Mapping[Group, Sequence[Command]]

KEYS = (
    ("Enter", "send; Alt-Enter or Ctrl-J makes a new line"),
    ("Esc", "interrupt; twice on an empty line: rewind"),
    ("Ctrl-C", "clear the input or interrupt the turn; twice: quit"),
    ("Ctrl-D", "quit"),
    ("Up, Ctrl-R", "input history"),
    ("@path", "attach a file"),
    ("//text", "send text that starts with a slash"),
)
OFTEN = ("init", "model", "mode", "permissions", "new", "resume", "undo", "diff", "compact", "cost")
"""Commands that the page begins with."""
MOST_COLUMNS = 80
NAME_COLUMNS = 20
LEAST_COLUMNS = 45
"""In a narrower window help goes below the names."""
LEAST_ROWS = 16
"""A lower window shows names only."""


async def _run(context: CommandContext, rest: str) -> Outcome:
    columns = min(context.columns - 1, MOST_COLUMNS)
    by_group = {group: [each for each in context.commands if each.group == group] for group in GROUPS}
    groups: Groups = {group: members for group, members in by_group.items() if members}
    if rest:
        return ShowText("\n".join(_about(rest, context.commands, groups, columns)))
    if context.rows < LEAST_ROWS:
        lines: list[str] = []
        for group, members in groups.items():
            names = " ".join(f"/{each.name}" for each in members)
            lines += textwrap.wrap(f"{group}: {names}", max(columns, 1), subsequent_indent="  ", break_on_hyphens=False)
        return ShowText(
            "\n".join([*lines, *textwrap.wrap("/help NAME explains a command or a group, /keys the keys.", max(columns, 1))])
        )
    often = [each for name in OFTEN if (each := by_name(name, context.commands)) is not None]
    others = {group: left for group, members in groups.items() if (left := [each for each in members if each not in often])}
    pages = [("Most used", often), *others.items()]
    lines = [line for group, members in pages for line in (*_group(group, members, columns), "")]
    lines += ["Keys", *(line for key, words in KEYS for line in _row(key, words, columns)), ""]
    return ShowText("\n".join([*lines, *textwrap.wrap("/help NAME explains a command.", columns)]))


def _about(topic: str, commands: Sequence[Command], groups: Groups, columns: int) -> list[str]:
    """A command, a group, or both where they share a name."""
    group = next((each for each in groups if each.casefold() == topic.casefold()), None)
    grouped = _group(group, groups[group], columns) if group else []
    name = topic.removeprefix("/").split()[0]
    if grouped and not by_name(name, commands):
        return grouped
    return [page(find(name, commands), columns), *(["", *grouped] if grouped else [])]


def _arguments(context: CommandContext) -> list[tuple[str, str]]:
    return [(command.name, command.help) for command in context.commands]


def page(command: Command, columns: int = MOST_COLUMNS) -> str:
    wrap = partial(textwrap.wrap, width=max(columns - 2, 1), break_on_hyphens=False)
    lines = [f"/{command.name} {command.usage}".rstrip(), *wrap(f"{command.help}.")]
    if command.more:
        lines += ["", *wrap(command.more)]
    if command.aliases:
        lines += ["", f"Also: {', '.join(f'/{alias}' for alias in command.aliases)}"]
    if command.while_working:
        lines += ["", "Works while a turn runs."]
    return "\n".join(lines)


def _group(name: str, members: Sequence[Command], columns: int) -> list[str]:
    return [
        name,
        *(
            line
            for command in members
            for line in _row(", ".join(f"/{name}" for name in (command.name, *command.aliases)), command.help, columns)
        ),
    ]


def _row(names: str, text: str, columns: int) -> list[str]:
    if columns < LEAST_COLUMNS:
        return [f"  {names}", *textwrap.wrap(text, max(columns, 5), initial_indent="    ", subsequent_indent="    ")]
    first, indent = f"  {names} ".ljust(NAME_COLUMNS), " " * NAME_COLUMNS
    if len(first) > NAME_COLUMNS:
        return [first.rstrip(), *textwrap.wrap(text, columns, initial_indent=indent, subsequent_indent=indent)]
    return textwrap.wrap(text, columns, initial_indent=first, subsequent_indent=indent)


COMMANDS = (
    Command(
        "help",
        "list the commands, or explain one",
        _run,
        aliases=("?",),
        usage="[NAME]",
        arguments=_arguments,
        while_working=True,
    ),
)
