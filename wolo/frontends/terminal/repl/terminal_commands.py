"""The slash commands that only a terminal can have: the editor, the keys, the clipboard and the colours."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from functools import partial
from typing import Protocol, get_args

from msgspec.structs import fields

from wolo.commands.command import Command, CommandContext, Outcome, ShowText
from wolo.config.edit import set_value
from wolo.config.schema import Ui
from wolo.errors import UsageError
from wolo.frontends.terminal.repl.clipboard import copy_command
from wolo.places import find_places

THEMES: tuple[str, ...] = get_args(next(each.type for each in fields(Ui) if each.name == "theme"))
_ABOUT = {"auto": "as COLORFGBG says, or else dark", "dark": "for a dark background", "light": "for a light background"}


class Room(Protocol):
    """What they do it with."""

    def open_editor(self) -> None: ...

    def keys_listed(self) -> str: ...

    def use_theme(self, theme: str) -> None: ...


def own_commands(room: Room, write: Callable[[str], None] | None) -> tuple[Command, ...]:
    """`write` takes what goes to the terminal as it is; None: nothing but text."""
    return (
        copy_command(write),
        Command(
            "editor",
            "write in your editor (VISUAL, EDITOR)",
            partial(_editor, room),
            more="With what is written so far; what the editor leaves stands in the line afterwards. Ctrl-G is the same.",
            group="Talking",
            while_working=True,
        ),
        Command("keys", "which keys do what", partial(_keys, room), while_working=True),
        Command(
            "theme",
            "the colours: for a dark background or a light one",
            partial(_theme, room),
            usage=f"[{'|'.join(THEMES)}]",
            more="From now on, and kept in your settings (ui.theme). NO_COLOR=1 in the environment turns colours off.",
            arguments=lambda desk: [(name, _ABOUT.get(name, "")) for name in THEMES],
            while_working=True,
        ),
    )


async def _editor(room: Room, desk: CommandContext, rest: str) -> Outcome:
    room.open_editor()
    return ShowText("")


async def _keys(room: Room, desk: CommandContext, rest: str) -> Outcome:
    return ShowText(room.keys_listed())


async def _theme(room: Room, desk: CommandContext, rest: str) -> Outcome:
    if not rest:
        off = " (NO_COLOR is set: there are none)" if os.environ.get("NO_COLOR") else ""
        return ShowText("\n".join([f"{name:<5} {_ABOUT.get(name, '')}" for name in THEMES]) + f"\n\n/theme NAME changes it{off}.")
    if rest not in THEMES:
        raise UsageError(f"There is no theme {rest}.", hint=f"Themes are {', '.join(THEMES)}; NO_COLOR=1 turns colours off.")
    room.use_theme(rest)
    places = find_places()
    await asyncio.to_thread(set_value, places, "ui.theme", rest)
    return ShowText(f"Theme {rest}, from now on; kept in {places.config / 'config.toml'}.")
