"""The slash commands that only a terminal can have: the editor, the keys, the clipboard and the colours."""

from __future__ import annotations

import asyncio
import os
from functools import partial
from typing import get_args

from msgspec.structs import fields

from wolo.commands.command import Command, CommandContext, Outcome, ShowText
from wolo.config.schema import Ui
from wolo.config.settings_writer import set_value
from wolo.errors import UsageError
from wolo.frontends.terminal.live.component import TerminalActions
from wolo.frontends.terminal.repl.clipboard import copy_command
from wolo.places import find_places

THEMES: tuple[str, ...] = get_args(next(each.type for each in fields(Ui) if each.name == "theme"))
_ABOUT = {"auto": "as COLORFGBG says, or else dark", "dark": "for a dark background", "light": "for a light background"}


def own_commands(actions: TerminalActions) -> tuple[Command, ...]:
    return (
        copy_command(actions),
        Command(
            "editor",
            "write in your editor (VISUAL, EDITOR)",
            partial(_editor, actions),
            more="With what is written so far; what the editor leaves stands in the line afterwards. Ctrl-G is the same.",
            group="Conversation",
            while_working=True,
        ),
        Command("keys", "which keys do what", partial(_keys, actions), while_working=True),
        Command(
            "theme",
            "the colours: for a dark background or a light one",
            partial(_theme, actions),
            usage=f"[{'|'.join(THEMES)}]",
            more="From now on, and kept in your settings (ui.theme). NO_COLOR=1 in the environment turns colours off.",
            arguments=lambda desk: [(name, _ABOUT.get(name, "")) for name in THEMES],
            while_working=True,
        ),
    )


async def _editor(actions: TerminalActions, desk: CommandContext, rest: str) -> Outcome:
    actions.open_editor()
    return ShowText("")


async def _keys(actions: TerminalActions, desk: CommandContext, rest: str) -> Outcome:
    return ShowText(actions.keys_listed())


async def _theme(actions: TerminalActions, desk: CommandContext, rest: str) -> Outcome:
    if not rest:
        off = " (NO_COLOR is set: there are none)" if os.environ.get("NO_COLOR") else ""
        return ShowText("\n".join([f"{name:<5} {_ABOUT.get(name, '')}" for name in THEMES]) + f"\n\n/theme NAME changes it{off}.")
    if rest not in THEMES:
        raise UsageError(f"There is no theme {rest}.", hint=f"Themes are {', '.join(THEMES)}; NO_COLOR=1 turns colours off.")
    actions.use_theme(rest)
    places = find_places()
    await asyncio.to_thread(set_value, places, "ui.theme", rest)
    return ShowText(f"Theme {rest}, from now on; kept in {places.config / 'config.toml'}.")
