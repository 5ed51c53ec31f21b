"""/config, /output-style: show settings, and change one."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from wolo.commands.command import Command, CommandContext, Outcome, ShowText, SwitchConversation, rows
from wolo.config import layers
from wolo.config.dotted_keys import join_key, parse_key
from wolo.config.settings_writer import write_setting
from wolo.conversation.resources.startup import ConversationChange
from wolo.errors import UsageError
from wolo.extensions.output_styles import DEFAULT, OutputStyle, find_style
from wolo.messages.terminal_text import clean_line
from wolo.places import Notices, find_places


async def _config(context: CommandContext, rest: str) -> Outcome:
    """`/config`: all but defaults; `/config KEY`: one setting; `/config KEY VALUE`: saves and applies it."""
    key, _, value = rest.partition(" ")
    rows = list(layers.rows(context.conversation.permissions.config))
    if not key:
        changed = [row for row in rows if row[2] != "default"]
        path = find_places().config / "config.toml"
        return ShowText(
            "\n".join(
                [
                    *map(_line, changed),
                    *([""] if changed else ["All settings have their defaults."]),
                    f"/config KEY VALUE writes {path}.",
                ]
            )
        )
    if not value.strip():
        name = join_key(parse_key(key))
        found = [row for row in rows if row[0] == name or row[0].startswith(f"{name}.")]
        if not found:
            raise UsageError(f"Unknown setting: {name}.", hint="`wolo config show` lists all settings.")
        return ShowText("\n".join(map(_line, found)))
    places = find_places()
    name = await asyncio.to_thread(write_setting, places, key, value.strip())
    opened = await context.conversation.reopen(ConversationChange())
    held = next((row for row in layers.rows(opened.permissions.config) if row[0] == name), None)
    overridden = "" if held is None or str(places.config) in held[2] else f" It has no effect here: {held[2]} overrides it."
    return SwitchConversation(opened, text=f"Saved {name} in {places.config / 'config.toml'}.{overridden}")


def _setting_names(context: CommandContext) -> list[tuple[str, str]]:
    return [(name, _format_value(value)) for name, value, _ in layers.rows(context.conversation.permissions.config)]


def _line(row: tuple[str, Any, str]) -> str:
    name, value, source = row
    return f"{name} = {_format_value(value) or 'not set'}  ({source})"


def _format_value(value: Any) -> str:
    return "" if value in (None, "", (), {}) else json.dumps(value, ensure_ascii=False, default=list)


async def _output_style(context: CommandContext, rest: str) -> Outcome:
    notices = Notices()
    styles = (OutputStyle(DEFAULT, "no style of your own", ""), *context.conversation.user_files.output_styles(notices))
    if not rest:
        chosen = find_style(styles, context.conversation.permissions.config.settings.output_style or DEFAULT)
        marked = [(f"{'*' if each == chosen else ' '} {each.name}", each.description) for each in styles]
        return ShowText("\n".join((*rows(marked, context.columns), *notices)))
    if (style := find_style(styles, rest)) is None:
        raise UsageError(
            f"There is no output style {clean_line(rest)}.", hint=f"Styles: {', '.join(each.name for each in styles)}."
        )
    return await _config(context, f"output_style {style.name}")


def _styles(context: CommandContext) -> list[tuple[str, str]]:
    return [(each.name, each.description) for each in context.conversation.user_files.output_styles(Notices())]


COMMANDS = (
    Command(
        "config",
        "show the settings, or change one",
        _config,
        doing="changing the setting",
        usage="[KEY [VALUE]]",
        more="KEY alone shows one setting and its source; with VALUE it is saved in your config.toml and applied at once.",
        arguments=_setting_names,
    ),
    Command(
        "output-style",
        "list output styles, or choose one",
        _output_style,
        doing="changing the style",
        usage="[NAME]",
        more="NAME is saved as output_style in your config.toml and applied at once; `default` ends it. Styles are Markdown "
        "files in output-styles/ next to config.toml, in .claude/output-styles, and in plugins.",
        group="Extensions",
        arguments=_styles,
    ),
)
