"""Slash commands of the terminal: /copy, /editor, /keys and /theme."""

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
_ABOUT = {"auto": "from COLORFGBG, or else dark", "dark": "for a dark background", "light": "for a light background"}


def own_commands(actions: TerminalActions) -> tuple[Command, ...]:
    return (
        copy_command(actions),
        Command(
            "editor",
            "write in your editor (VISUAL, EDITOR)",
            partial(_editor, actions),
            more="Opens the typed text; the edited text replaces it. Same as Ctrl-G.",
            group="Conversation",
            while_working=True,
        ),
        Command("keys", "list the keys", partial(_keys, actions), while_working=True),
        Command(
            "theme",
            "colours for a dark or a light background",
            partial(_theme, actions),
            usage=f"[{'|'.join(THEMES)}]",
            more="Also saved in your settings (ui.theme). NO_COLOR=1 in the environment turns colours off.",
            arguments=lambda context: [(name, _ABOUT.get(name, "")) for name in THEMES],
            while_working=True,
        ),
    )


async def _editor(actions: TerminalActions, context: CommandContext, rest: str) -> Outcome:
    actions.open_editor()
    return ShowText("")


async def _keys(actions: TerminalActions, context: CommandContext, rest: str) -> Outcome:
    return ShowText(actions.keys_listed())


async def _theme(actions: TerminalActions, context: CommandContext, rest: str) -> Outcome:
    if not rest:
        off = " (NO_COLOR is set: colours are off)" if os.environ.get("NO_COLOR") else ""
        themes = "\n".join(f"{name:<5} {_ABOUT.get(name, '')}" for name in THEMES)
        return ShowText(f"{themes}\n\nChange it with /theme NAME{off}.")
    if rest not in THEMES:
        raise UsageError(f"There is no theme {rest}.", hint=f"Themes are {', '.join(THEMES)}; NO_COLOR=1 turns colours off.")
    actions.use_theme(rest)
    places = find_places()
    await asyncio.to_thread(set_value, places, "ui.theme", rest)
    return ShowText(f"Theme set to {rest}; saved in {places.config / 'config.toml'}.")
