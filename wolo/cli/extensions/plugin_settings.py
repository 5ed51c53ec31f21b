"""`wolo plugin settings`: shows, asks for and saves the settings of a plugin."""

from __future__ import annotations

import getpass
import sys
from typing import Annotated

import typer

from wolo.config.plugins.install import find, save_value
from wolo.config.plugins.installed import Plugin, read_index, values_of
from wolo.errors import UsageError
from wolo.extensions.plugins.manifest import PluginSetting
from wolo.frontends.streams import print_line, print_lines
from wolo.messages.terminal_text import escaped_line
from wolo.places import Notices, Places, find_places


def ask_for_values(plugin: Plugin, places: Places, *, yes: bool) -> None:
    """At a terminal asks for each setting; elsewhere names those that have neither a value nor a default."""
    values = values_of(plugin, places, Notices())
    for each in plugin.contents.settings:
        if sys.stdin.isatty() and not yes and values.get(each.variable, "") == each.default:
            if value := _ask(plugin, each):
                save_value(plugin, each, value, places)
        elif each.variable not in values:
            command = f"wolo plugin settings {plugin.name} {each.key} {'< FILE' if each.is_secret else 'VALUE'}"
            print_line(f"Not set: {each.key} ({each.title}). To set it: {command}")


def settings(
    name: Annotated[str, typer.Argument(metavar="NAME")],
    key: Annotated[str, typer.Argument(metavar="[KEY]", show_default=False)] = "",
    value: Annotated[str, typer.Argument(metavar="[VALUE]", show_default=False)] = "",
) -> None:
    """Show the settings of a plugin, or save one. Secrets are typed without being shown, or read from stdin."""
    from wolo.cli.run import read_piped

    places, notices = find_places(), Notices()
    plugin = find(name, read_index(places))
    by_key = {each.key: each for each in plugin.contents.settings}
    if key and key not in by_key:
        raise UsageError(f"The plugin {name} has no setting {key}.", hint=f"Settings: {', '.join(by_key) or 'none'}.")
    if key:
        if value and by_key[key].is_secret:
            hint = f"wolo plugin settings {name} {key} < FILE"
            raise UsageError("A secret cannot be an argument: other users could read it.", hint=hint)
        value = value or (_ask(plugin, by_key[key]) if sys.stdin.isatty() else read_piped(patient=True).strip())
        if not value or "\0" in value:
            raise UsageError(f"No value for {key}: nothing was changed.")
        save_value(plugin, by_key[key], value, places)
        print_line(f"Saved {key} of the plugin {name}.")
        return
    values = values_of(plugin, places, notices)
    for each in by_key.values():
        shown = "(hidden)" if each.is_secret and each.variable in values else escaped_line(values.get(each.variable, "(not set)"))
        print_line(f"{each.key} = {shown}  {each.title}")
    print_lines(notices)


def _ask(plugin: Plugin, setting: PluginSetting) -> str:
    """Empty where nothing was typed. The title is the plugin's, so its name comes first."""
    title = f"{plugin.name}: {setting.title}"
    try:
        if setting.is_secret:
            return getpass.getpass(f"{title} (input is hidden): ").strip()
        return input(f"{title}{f' [{escaped_line(setting.default)}]' if setting.default else ''}: ").strip()
    except EOFError:
        return ""
