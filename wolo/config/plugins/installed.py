"""The index of installed plugins, and the skills, commands, agents, hooks and servers that they contribute."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from wolo.config import files, key_store, managed, project
from wolo.errors import ConfigError, WoloError
from wolo.extensions.hooks.definitions import Hook
from wolo.extensions.markdown_files import ExtensionFolder
from wolo.extensions.plugins.manifest import Contents, PluginComponent
from wolo.extensions.sources.source import Source
from wolo.extensions.sources.tree_copy import tree_digest
from wolo.mcp.server import ConfiguredServer
from wolo.mcp.server_entries import read_servers
from wolo.messages.terminal_text import quantity
from wolo.places import Notices, Places

if TYPE_CHECKING:
    from wolo.extensions.custom_tools.tool_listing import ToolFile
    from wolo.lsp.server_table import ServerSpec

_Named = TypeVar("_Named", ConfiguredServer, "ServerSpec")
_ROOT = r"\$\{(?:CLAUDE_PLUGIN_ROOT|extensionPath)\}|\$CLAUDE_PLUGIN_ROOT\b"
_DATA = r"\$\{CLAUDE_PLUGIN_DATA\}"
_SAFE_PATH = r"[\w/.@+-]+"


class Plugin(Struct, frozen=True, kw_only=True):
    contents: Contents
    source: Source
    pin: str
    """The commit; without git a hash of the contents."""
    folder: str
    """Below `plugins/store` of the data folder."""
    marketplace: str = ""
    entry: Mapping[str, Any] = field(default_factory=dict)
    """Its entry in the marketplace."""
    is_enabled: bool = True
    allowed: str = ""
    """Digest of the hooks and servers that the user allowed."""
    added: str = ""
    values: Mapping[str, str] = field(default_factory=dict)
    """Of its settings that are no secrets."""

    @property
    def name(self) -> str:
        return self.contents.name


class Marketplace(Struct, frozen=True, kw_only=True):
    source: Source
    pin: str
    folder: str
    added: str = ""


class PluginIndex(Struct, frozen=True):
    plugins: Mapping[str, Plugin] = field(default_factory=dict)
    marketplaces: Mapping[str, Marketplace] = field(default_factory=dict)


def read_index(places: Places) -> PluginIndex:
    """Raises ConfigError for a damaged index, and for one that others may have written."""
    path = places.plugin_index
    data = files.read_own(path, Notices()) if path.parent.exists() else None
    if data is None:
        return PluginIndex()
    try:
        return msgspec.json.decode(data, type=PluginIndex)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is damaged.", hint="Remove it, and add your plugins again.") from error


def enabled_plugins(places: Places, notices: Notices) -> list[Plugin]:
    """A damaged index becomes a notice: the run continues without plugins. Managed files may forbid some of them."""
    try:
        plugins = [each for each in read_index(places).plugins.values() if each.is_enabled]
        allowed = managed.read_policy(os.environ).plugins if plugins else managed.Allowed()
    except ConfigError as error:
        notices.add(f"Plugins are not used: {error.message} {error.hint}".strip())
        return []
    refused = [each.name for each in plugins if not allowed.has(each.name, str(each.source))]
    notices.extend(f"The plugin {name} is not allowed on this machine, so it is not used." for name in refused)
    return [each for each in plugins if each.name not in refused]


def root_of(plugin: Plugin | Marketplace, places: Places) -> Path:
    return places.plugins / "store" / plugin.folder


def data_of(plugin: Plugin, places: Places) -> Path:
    """Survives updates."""
    return places.plugins / "data" / plugin.name


def plugin_folders(kind: str, places: Places) -> Iterator[ExtensionFolder]:
    """Folders of skills, commands, agents or output styles."""
    for plugin in enabled_plugins(places, Notices()):
        root = root_of(plugin, places)
        read = partial(project.read_file, root=Path(root).resolve())
        components: tuple[PluginComponent, ...] = getattr(plugin.contents, kind.replace("-", "_"), ())
        for each in components:
            yield ExtensionFolder(root / each.folder, read, namespace=plugin.name, plugin=root, only=each.only)


def context_files(places: Places) -> list[tuple[Path, str]]:
    """Files of instructions, with the names that the model sees."""
    plugins = enabled_plugins(places, Notices())
    return [
        (root_of(each, places) / name, f"{name} of the plugin {each.name}") for each in plugins for name in each.contents.context
    ]


def denials(places: Places) -> list[tuple[str, str]]:
    """The name of a plugin, and a tool or command that it denies."""
    return [(each.name, denied) for each in enabled_plugins(places, Notices()) for denied in each.contents.denied]


class PluginHooks(Struct, frozen=True):
    plugin: str
    root: Path
    variables: Mapping[str, str]
    hooks: tuple[tuple[str, Hook], ...]
    """By event."""
    problems: tuple[str, ...]


def values_of(plugin: Plugin, places: Places, notices: Notices) -> dict[str, str]:
    """The values of its settings by variable, defaults too; without those that have none."""
    settings = plugin.contents.settings
    stored = key_store.read(places, notices) if any(each.is_secret for each in settings) else {}
    values = {each.variable: plugin.values.get(each.key) or each.default for each in settings}
    for each in settings:
        if (row := key_store.plugin_row(plugin.name, each.key)) in stored and each.is_secret:
            values[each.variable] = key_store.fetch(row, stored[row], notices)
    return {name: value for name, value in values.items() if value}


def _folders_of(plugin: Plugin, places: Places) -> dict[str, str]:
    return {"CLAUDE_PLUGIN_ROOT": str(root_of(plugin, places)), "CLAUDE_PLUGIN_DATA": str(data_of(plugin, places))}


def hooks_of(plugin: Plugin, places: Places, values: Mapping[str, str] = {}) -> PluginHooks:
    """`values` are those of its settings, also below."""
    from wolo.extensions.hooks.hook_files import read_hooks  # noqa: PLC0415  # only for plugins with hooks

    root, data = root_of(plugin, places), data_of(plugin, places)
    hooks: list[tuple[str, Hook]] = []
    problems: list[str] = []
    for each in plugin.contents.hooks:
        try:
            parsed = read_hooks(fill_folders(each, root, data).encode(), Path(f"plugin {plugin.name}"))
        except WoloError as error:
            problems.append(error.message)
        else:
            hooks += parsed.hooks
            problems += parsed.problems
    return PluginHooks(plugin.name, root, {**_folders_of(plugin, places), **values}, tuple(hooks), tuple(problems))


def servers_of(plugin: Plugin, places: Places, notices: Notices, values: Mapping[str, str] = {}) -> Iterator[ConfiguredServer]:
    if not plugin.contents.servers:
        return
    root, data, source = root_of(plugin, places), data_of(plugin, places), f"the plugin {plugin.name}"
    variables = {**_folders_of(plugin, places), **{name: f"${{{name}}}" for name in values}}
    try:
        found = list(read_servers(fill_folders(plugin.contents.servers, root, data).encode(), source, notices))
    except ConfigError as error:
        notices.add(error.message)
        return
    for name, server in found:
        own = replace(server, env={**server.env, **variables}) if server.command else server
        # A relative program is looked up in the plugin, not in the working directory
        is_relative = any(word.startswith(("./", "../")) for word in (own.command, *own.args))
        named_in = root if is_relative else None
        yield ConfiguredServer(name=name, server=own, source=source, named_in=named_in, variables=values)


def language_servers_of(plugin: Plugin, places: Places, values: Mapping[str, str] = {}) -> tuple[ServerSpec, ...]:
    if not plugin.contents.language_servers:
        return ()
    from wolo.lsp.server_table import ServerSpec  # noqa: PLC0415  # few plugins have any

    root, data = root_of(plugin, places), data_of(plugin, places)
    text = fill_folders(plugin.contents.language_servers, root, data, in_shell=False)
    text = re.sub(r"\$\{(\w+)\}", lambda match: json.dumps(values.get(match[1], match[0]))[1:-1], text)
    variables = {**_folders_of(plugin, places), **values}
    return tuple(replace(each, env={**each.env, **variables}) for each in msgspec.json.decode(text, type=list[ServerSpec]))


def allowed_hooks(places: Places, notices: Notices) -> list[PluginHooks]:
    """Of plugins that the user allowed as they are; notices name the others."""
    sets = []
    for plugin in enabled_plugins(places, notices):
        if plugin.contents.hooks:
            if is_allowed(plugin, places):
                sets.append(hooks_of(plugin, places, values_of(plugin, places, notices)))
            else:
                notices.add(_notice(plugin, f"{quantity(len(hooks_of(plugin, places).hooks), 'hook')} of", "not run"))
    return sets


def allowed_servers(places: Places, taken: Collection[str], notices: Notices) -> Iterator[ConfiguredServer]:
    """As above. A server whose name is taken is called `plugin_PLUGIN_SERVER`, as in Claude Code."""
    return _allowed_parts(partial(servers_of, places=places, notices=notices), "MCP servers", places, taken, notices)


def allowed_language_servers(places: Places, notices: Notices) -> list[ServerSpec]:
    """As above."""
    return list(_allowed_parts(partial(language_servers_of, places=places), "language servers", places, (), notices))


def _allowed_parts(
    servers_in: Callable[..., Iterable[_Named]], kind: str, places: Places, taken: Collection[str], notices: Notices
) -> Iterator[_Named]:
    seen = set(taken)
    for plugin in enabled_plugins(places, Notices()):
        servers = list(servers_in(plugin, values=values_of(plugin, places, notices)))
        if servers and not is_allowed(plugin, places):
            names = ", ".join(each.name for each in servers)
            notices.add(_notice(plugin, f"{kind} ({names}) of", "not started"))
            continue
        for each in servers:
            name = f"plugin_{plugin.name}_{each.name}" if each.name in seen else each.name
            seen.add(name)
            yield replace(each, name=name)


def extensions_of(places: Places) -> Iterator[tuple[ToolFile, str]]:
    """Each extension, and why it does not run: the user has not allowed the plugin as it is."""
    from wolo.extensions.custom_tools.tool_listing import ToolFile  # noqa: PLC0415  # few plugins have extensions

    for plugin in enabled_plugins(places, Notices()):
        names, root = plugin.contents.extensions, root_of(plugin, places)
        if not names:
            continue
        digest = digest_of(plugin, places)
        what = f"{quantity(len(names), 'extension')} of"
        problem = "" if plugin.allowed == digest else _notice(plugin, what, "not run")
        for name in names:
            source = f"{name.partition('=')[0]} of the plugin {plugin.name}"
            if "=" in name:
                yield ToolFile(f"entry point {name}", digest, source, is_extension=True, import_from=str(root)), problem
            else:
                text = (root / name).read_text(encoding="utf-8-sig", errors="replace")
                yield ToolFile(str(root / name), digest, source, text, is_extension=True), problem


def _notice(plugin: Plugin, what: str, state: str) -> str:
    verb = "is" if what.startswith("1 ") else "are"
    return f"{what} the plugin {plugin.name} {verb} {state}: `wolo plugin allow {plugin.name}` shows and allows what it runs."


def is_allowed(plugin: Plugin, places: Places) -> bool:
    return bool(plugin.allowed) and plugin.allowed == digest_of(plugin, places)


def digest_of(plugin: Plugin, places: Places) -> str:
    """Changes with the version, a hook, a server, and a file that one of them names."""
    from wolo.extensions.hooks.hook_runner import digest  # noqa: PLC0415  # only for plugins that run something

    contents = plugin.contents
    root = root_of(plugin, places)
    servers = [each.server for each in servers_of(plugin, places, Notices())]
    commands = [(each.command, *each.args) for each in servers if each.command]
    commands += [each.command for each in language_servers_of(plugin, places)]
    programs = [("server", Hook(command=shlex.join(each))) for each in commands]
    consented = (plugin.name, plugin.pin, contents.hooks, contents.servers, *filter(None, (contents.language_servers,)))
    seen = hashlib.sha256(msgspec.json.encode(consented))
    if contents.extensions:
        seen.update(tree_digest(root).encode())
    seen.update(digest([*hooks_of(plugin, places).hooks, *programs], root).encode())
    return seen.hexdigest()


def fill_folders(text: str, root: Path, data: Path, *, in_shell: bool = True) -> str:
    """Inserts the folders of the plugin into JSON. Where a shell would have to quote them, the variable remains."""
    text = text.replace("${/}", "/").replace("${workspacePath}", "${workspaceFolder}")  # Gemini CLI's
    if not in_shell or re.fullmatch(_SAFE_PATH, f"{root}{data}"):
        text = re.sub(_ROOT, lambda _: json.dumps(str(root))[1:-1], text)
        text = re.sub(_DATA, lambda _: json.dumps(str(data))[1:-1], text)
    return text
