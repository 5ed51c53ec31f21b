"""/config: shows settings, and changes one."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from wolo.commands.command import Command, CommandContext, Outcome, ShowText, SwitchConversation
from wolo.config import layers
from wolo.config.dotted_keys import join_key, parse_key
from wolo.config.settings_writer import write_setting
from wolo.conversation.resources.startup import ConversationChange
from wolo.errors import UsageError
from wolo.places import find_places


async def run(context: CommandContext, rest: str) -> Outcome:
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


def _arguments(context: CommandContext) -> list[tuple[str, str]]:
    return [(name, _format_value(value)) for name, value, _ in layers.rows(context.conversation.permissions.config)]


def _line(row: tuple[str, Any, str]) -> str:
    name, value, source = row
    return f"{name} = {_format_value(value) or 'not set'}  ({source})"


def _format_value(value: Any) -> str:
    return "" if value in (None, "", (), {}) else json.dumps(value, ensure_ascii=False, default=list)


COMMANDS = (
    Command(
        "config",
        "show the settings, or change one",
        run,
        doing="changing the setting",
        usage="[KEY [VALUE]]",
        more="KEY alone shows one setting and its source; with VALUE it is saved in your config.toml and applied at once.",
        arguments=_arguments,
    ),
)
