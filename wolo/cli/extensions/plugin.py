"""`wolo plugin`: adds, lists, updates, removes and allows plugins, saves their settings, and searches marketplaces."""

from __future__ import annotations

import getpass
import json
import re
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from msgspec import to_builtins

from wolo.cli.listing import AsJson, print_described, print_json
from wolo.cli.subcommands import GroupPage
from wolo.config.plugins import install, marketplaces
from wolo.config.plugins.installed import (
    Plugin,
    PluginIndex,
    hooks_of,
    is_allowed,
    language_servers_of,
    read_index,
    root_of,
    servers_of,
    values_of,
)
from wolo.errors import UsageError, WoloError
from wolo.extensions.hooks.definitions import describe_hook
from wolo.extensions.plugins.manifest import NAME, Contents, PluginSetting
from wolo.extensions.sources.source import Source, read_source
from wolo.frontends.streams import confirm, print_line, print_lines, print_message, print_messages
from wolo.mcp.server import Server, describe_server
from wolo.messages.terminal_text import escaped_line, quantity
from wolo.places import Notices, Places, find_places

app = typer.Typer(rich_markup_mode=None)
marketplace = typer.Typer(rich_markup_mode=None)
app.add_typer(marketplace, name="marketplace", help="Marketplaces: add, list, update, remove.", cls=GroupPage)

Name = Annotated[str, typer.Argument(metavar="NAME")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
_MOST_FILES = 20
_OWN_VARIABLES = ("CLAUDE_PLUGIN_ROOT=", "CLAUDE_PLUGIN_DATA=")
_LAST_COMMIT = " (without changes that are not committed)"


@app.command("add")
def add(
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="Folder, OWNER/REPO, git URL, archive, pypi:NAME, npm:NAME, PLUGIN@MARKET.")
    ],
    yes: Yes = False,
) -> None:
    """Install a plugin. Its hooks and servers run only after `wolo plugin allow`."""
    places = find_places()
    index = read_index(places)
    origin = _origin(source, index, places)
    with install.candidate(origin, places) as new:
        install.check_is_new(new.contents.name, index)
        _show(new.contents, new.pin, origin.source)
        if not yes and sys.stdin.isatty() and not confirm("Install this plugin?"):
            print_line("Not installed.")
            return
        plugin = install.add(new, places)
    print_line(f"Installed the plugin {plugin.name}.")
    ask_for_values(plugin, places, yes=yes)
    _offer_to_allow(plugin, places, yes=yes)


@app.command("list")
def show_all(as_json: AsJson = False) -> None:
    """List the installed plugins."""
    places = find_places()
    rows = [_row(each, places) for _, each in sorted(read_index(places).plugins.items())]
    if as_json:
        print_json(rows)
        return
    if not rows:
        print_message("There are no plugins.", hint="wolo plugin add SOURCE")
    width, of_version = (max((len(row[key] or "-") for row in rows), default=0) for key in ("name", "version"))
    for row in rows:
        state = " · ".join(filter(None, ["" if row["enabled"] else "disabled", row["state"]]))
        print_line(
            f"{row['name']:<{width}}  {row['version'] or '-':<{of_version}}  {row['commit'][:12]}  {state}  ({row['source']})"
        )
        if row["description"]:
            print_line(f"{'':<{width}}  {row['description']}")


@app.command("show")
def show_one(name: Name, as_json: AsJson = False) -> None:
    """Show what a plugin contributes and what it runs."""
    places = find_places()
    plugin = install.find(name, read_index(places))
    if as_json:
        print_json({**_row(plugin, places), "contents": to_builtins(plugin.contents)})
        return
    _show(plugin.contents, plugin.pin, plugin.source)
    _show_programs(plugin, places)


@app.command("update")
def update(
    name: Annotated[str, typer.Argument(metavar="[NAME]", help="All plugins if not given.", show_default=False)] = "",
    yes: Yes = False,
) -> None:
    """Install the newest version of plugins; changed files are shown, and hooks and servers need `allow` again."""
    places = find_places()
    index = read_index(places)
    plugins = [install.find(name, index)] if name else list(index.plugins.values())
    failed = False
    for plugin in plugins:
        try:
            _update(plugin, places, yes=yes)
        except WoloError as error:
            if name:
                raise
            failed = True
            print_message(f"{plugin.name}: {error.message}", hint=error.hint)
    if not plugins:
        print_message("There are no plugins.", hint="wolo plugin add SOURCE")
    if failed:
        raise typer.Exit(1)


@app.command("remove")
def remove(name: Name) -> None:
    """Remove a plugin and its data."""
    plugin = install.remove(name, find_places())
    print_line(f"Removed the plugin {plugin.name}.")


@app.command("enable")
def enable(name: Name) -> None:
    """Use a plugin again."""
    _set_enabled(name, enabled=True)


@app.command("disable")
def disable(name: Name) -> None:
    """Keep a plugin, but use nothing of it."""
    _set_enabled(name, enabled=False)


def _set_enabled(name: str, *, enabled: bool) -> None:
    install.set_enabled(name, find_places(), enabled=enabled)
    print_line(f"The plugin {name} is {'enabled' if enabled else 'disabled'}.")


@app.command("allow")
def allow(name: Name, yes: Yes = False) -> None:
    """Allow the hooks and servers of a plugin; each command is shown. Without a terminal there is no question."""
    places = find_places()
    plugin = install.find(name, read_index(places))
    if not plugin.contents.runs_something:
        print_line(f"The plugin {plugin.name} has no hooks and no servers, so there is nothing to allow.")
        return
    _show_programs(plugin, places)
    if is_allowed(plugin, places):
        print_line(f"The plugin {plugin.name} is already allowed.")
        return
    if not yes and sys.stdin.isatty() and not confirm("Allow them to run, with your permissions?"):
        print_line("Not allowed.")
        return
    install.allow(plugin, places)
    print_line(f"The plugin {plugin.name} is allowed until it changes.")


@app.command("settings")
def settings(
    name: Name,
    key: Annotated[str, typer.Argument(metavar="[KEY]", show_default=False)] = "",
    value: Annotated[str, typer.Argument(metavar="[VALUE]", show_default=False)] = "",
) -> None:
    """Show the settings of a plugin, or save one. Secrets are typed without being shown, or read from stdin."""
    from wolo.cli.run import read_piped

    places, notices = find_places(), Notices()
    plugin = install.find(name, read_index(places))
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
        install.save_value(plugin, by_key[key], value, places)
        print_line(f"Saved {key} of the plugin {name}.")
        return
    values = values_of(plugin, places, notices)
    for each in by_key.values():
        shown = "(hidden)" if each.is_secret and each.variable in values else escaped_line(values.get(each.variable, "(not set)"))
        print_line(f"{each.key} = {shown}  {each.title}")
    print_lines(notices)


@app.command("search")
def search(
    words: Annotated[list[str] | None, typer.Argument(metavar="[WORD]...", show_default=False)] = None, as_json: AsJson = False
) -> None:
    """Search the plugins of your marketplaces."""
    places, notices = find_places(), Notices()
    index = read_index(places)
    matching = marketplaces.search(" ".join(words or ()), marketplaces.listed_plugins(index, places, notices))
    print_messages(notices)
    rows = [
        {
            "name": each.name,
            "marketplace": each.marketplace,
            "version": each.version,
            "description": each.description,
            "installed": each.name in index.plugins,
        }
        for each in matching
    ]
    if as_json:
        print_json(rows)
        return
    if not index.marketplaces:
        print_message("There are no marketplaces.", hint="wolo plugin marketplace add SOURCE")
    elif not rows:
        print_message("No plugin matches.")
    for row in rows:
        print_line(f"{row['name']}@{row['marketplace']}{'  installed' if row['installed'] else ''}")
        if row["description"]:
            print_line(f"  {row['description']}")


@marketplace.command("add")
def add_market(source: Annotated[str, typer.Argument(metavar="SOURCE")]) -> None:
    """Add a marketplace: a folder or repository with `.claude-plugin/marketplace.json`."""
    places = find_places()
    name, added = marketplaces.add_marketplace(read_source(source, Path.cwd()), places)
    count = sum(each.marketplace == name for each in marketplaces.listed_plugins(read_index(places), places, Notices()))
    print_line(f"Added the marketplace {name} from {added.source}: {quantity(count, 'plugin')}.")


@marketplace.command("list")
def list_markets(as_json: AsJson = False) -> None:
    """List your marketplaces."""
    markets = sorted(read_index(find_places()).marketplaces.items())
    if as_json:
        print_json(
            [{"name": name, "source": str(each.source), "commit": each.pin, "added": each.added} for name, each in markets]
        )
        return
    if not markets:
        print_message("There are no marketplaces.", hint="wolo plugin marketplace add SOURCE")
    for name, each in markets:
        print_line(f"{name}  {each.pin[:12]}  ({each.source})")


@marketplace.command("update")
def update_markets(
    name: Annotated[str, typer.Argument(metavar="[NAME]", help="All if not given.", show_default=False)] = "",
) -> None:
    """Fetch marketplaces again."""
    places = find_places()
    there = read_index(places).marketplaces
    if name and name not in there:
        raise UsageError(f"There is no marketplace {name}.", hint="wolo plugin marketplace list")
    for each in [name] if name else sorted(there):
        marketplaces.add_marketplace(there[each].source, places)
        print_line(f"Updated {each}.")


@marketplace.command("remove")
def remove_market(name: Name) -> None:
    """Remove a marketplace; plugins from it stay installed."""
    marketplaces.remove_marketplace(name, find_places())
    print_line(f"Removed the marketplace {name}.")


def _origin(source: str, index: PluginIndex, places: Places) -> install.PluginOrigin:
    """A plugin of a marketplace, or a source of its own."""
    name, at, market = source.partition("@")
    if re.fullmatch(NAME, name) and (not at or re.fullmatch(NAME, market)) and not Path(source).exists():
        listed = list(marketplaces.listed_plugins(index, places, Notices()))
        matching = [each for each in listed if each.name == name and market in ("", each.marketplace)]
        if len({each.marketplace for each in matching}) == 1:
            return marketplaces.origin_of(matching[0], index, places)
        if matching:
            raise UsageError(
                f"Several marketplaces have a plugin {name}.",
                hint=" or ".join(f"wolo plugin add {name}@{each.marketplace}" for each in matching),
            )
        if at and market not in index.marketplaces:
            raise UsageError(f"There is no marketplace {market}.", hint="wolo plugin marketplace add SOURCE")
        raise UsageError(f"There is no plugin {source} in your marketplaces.", hint="`wolo plugin search` lists them.")
    return install.PluginOrigin(source=read_source(source, Path.cwd()))


def _update(plugin: Plugin, places: Places, *, yes: bool) -> None:
    origin = install.PluginOrigin(source=plugin.source, marketplace=plugin.marketplace, entry=plugin.entry)
    if known := read_index(places).marketplaces.get(plugin.marketplace):
        marketplaces.add_marketplace(known.source, places)
        origin = _origin(f"{plugin.name}@{plugin.marketplace}", read_index(places), places)
    with install.candidate(origin, places) as new:
        if new.pin == plugin.pin and new.contents == plugin.contents:
            print_line(f"{plugin.name} is up to date ({plugin.pin[:12]}).")
            return
        difference = install.difference(plugin, new, places)
        versions = (
            f"{plugin.contents.version} → {new.contents.version}, " if plugin.contents.version != new.contents.version else ""
        )
        print_line(f"{plugin.name}: {versions}{plugin.pin[:12]} → {new.pin[:12]}")
        for sign, paths in (("+", difference.added), ("~", difference.changed), ("-", difference.removed)):
            for path in paths[:_MOST_FILES]:
                print_line(f"  {sign} {escaped_line(path)}")
            if len(paths) > _MOST_FILES:
                print_line(f"  {sign} {len(paths) - _MOST_FILES} more files")
        if any(
            getattr(new.contents, each) != getattr(plugin.contents, each) for each in ("hooks", "servers", "language_servers")
        ):
            print_line("  Its hooks or servers are different.")
        if not yes and sys.stdin.isatty() and not confirm("Install this version?"):
            print_line("Not updated.")
            return
        updated = install.update(plugin, new, places)
    print_line(f"Updated {plugin.name} to {updated.pin[:12]}.")
    ask_for_values(updated, places, yes=yes)
    _offer_to_allow(updated, places, yes=yes)


def _offer_to_allow(plugin: Plugin, places: Places, *, yes: bool) -> None:
    """Asks at a terminal; `--yes` answers only for the installation."""
    if not plugin.contents.runs_something:
        return
    _show_programs(plugin, places)
    if sys.stdin.isatty() and not yes and confirm("Allow them to run, with your permissions?"):
        install.allow(plugin, places)
        print_line(f"The plugin {plugin.name} is allowed until it changes.")
        return
    what = "extensions" if plugin.contents.extensions else "hooks and servers"
    print_line(f"Its {what} do not run. To allow them: wolo plugin allow {plugin.name}")


def _show(contents: Contents, pin: str, source: Source) -> None:
    is_local_git = source.kind == "git" and source.location.startswith("/")
    version = f" {contents.version}" if contents.version else ""
    print_line(f"{contents.name}{version}, from {escaped_line(str(source))}")
    if contents.description:
        print_line(f"  {contents.description}")
    print_line(f"  pinned at    {pin}{_LAST_COMMIT if is_local_git else ''}")
    for kind in ("skills", "commands", "agents", "output_styles"):
        for each in getattr(contents, kind):
            shown = each.folder if each.only is None else ", ".join(f"{each.folder}/{name}" for name in each.only)
            print_line(f"  {kind.removeprefix('output_'):<12} {escaped_line(shown.removeprefix('./'))}")
    rows = {
        "hooks": dict.fromkeys(event for each in contents.hooks for event in json.loads(each)["hooks"]),
        "MCP servers": json.loads(contents.servers or "{}").get("mcpServers"),
        "LSP servers": [each["name"] for each in json.loads(contents.language_servers or "[]")],
        "instructions": contents.context,
        "denies": contents.denied,
        "extensions": contents.extensions,
        "settings": [each.key for each in contents.settings],
        "not used": contents.unused,
    }
    for title, names in rows.items():
        if names:
            print_line(f"  {title:<12} {escaped_line(', '.join(names))}")


def _show_programs(plugin: Plugin, places: Places) -> None:
    notices = Notices()
    hook_sets = hooks_of(plugin, places)
    for event, hook in hook_sets.hooks:
        print_line(f"  hook         {event}")
        print_described(describe_hook(hook), "    ")
    servers = [("MCP server", each.name, each.server) for each in servers_of(plugin, places, notices)]
    for spec in language_servers_of(plugin, places):
        server = Server(command=spec.command[0], args=spec.command[1:], env=spec.env)
        servers.append(("LSP server", f"{spec.name} ({' '.join(spec.extensions)})", server))
    for kind, title, server in servers:
        print_line(f"  {kind}   {escaped_line(title)}")
        print_described((row for row in describe_server(server) if not row[1].startswith(_OWN_VARIABLES)), "    ")
    for each in plugin.contents.settings:  # a command may be no more than such a variable
        if value := plugin.values.get(each.key) or each.default:  # no secret of the user is in either
            print_line(f"  setting      {each.variable}={escaped_line(value)}")
    for name in plugin.contents.extensions:
        print_line(f"  extension    {escaped_line(name)}")
        print_line(f"    code in {escaped_line(str(root_of(plugin, places)))}")
    print_messages((*hook_sets.problems, *notices))


def _row(plugin: Plugin, places: Places) -> dict[str, Any]:
    contents = plugin.contents
    state = "" if not contents.runs_something else "allowed" if is_allowed(plugin, places) else "hooks and servers not allowed"
    return {
        "name": plugin.name,
        "version": contents.version,
        "description": contents.description,
        "source": str(plugin.source),
        "marketplace": plugin.marketplace or None,
        "commit": plugin.pin,
        "enabled": plugin.is_enabled,
        "allowed": is_allowed(plugin, places) if contents.runs_something else None,
        "state": state,
        "added": plugin.added,
        "not_used": list(contents.unused),
    }


def ask_for_values(plugin: Plugin, places: Places, *, yes: bool) -> None:
    """At a terminal asks for each setting; elsewhere names those that have neither a value nor a default."""
    values = values_of(plugin, places, Notices())
    for each in plugin.contents.settings:
        if sys.stdin.isatty() and not yes and values.get(each.variable, "") == each.default:
            if value := _ask(plugin, each):
                install.save_value(plugin, each, value, places)
        elif each.variable not in values:
            command = f"wolo plugin settings {plugin.name} {each.key} {'< FILE' if each.is_secret else 'VALUE'}"
            print_line(f"Not set: {each.key} ({each.title}). To set it: {command}")


def _ask(plugin: Plugin, setting: PluginSetting) -> str:
    """Empty where nothing was typed. The title is the plugin's, so its name comes first."""
    title = f"{plugin.name}: {setting.title}"
    try:
        if setting.is_secret:
            return getpass.getpass(f"{title} (input is hidden): ").strip()
        return input(f"{title}{f' [{escaped_line(setting.default)}]' if setting.default else ''}: ").strip()
    except EOFError:
        return ""
