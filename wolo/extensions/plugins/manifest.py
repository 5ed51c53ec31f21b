"""Reads the contents of a plugin: a folder with skills, commands, agents, hooks, MCP servers and language servers.

The manifest is that of Claude Code (`.claude-plugin/plugin.json`) or of Gemini CLI; a folder without one is a plugin too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from msgspec import Struct

from wolo.errors import ExtensionError
from wolo.extensions.custom_tools.tool_packages import find_entry_points
from wolo.extensions.markdown_files import decode
from wolo.extensions.skill_files import skill_file
from wolo.messages.terminal_text import clean_line

MANIFESTS = (
    ".claude-plugin/plugin.json",
    ".codex-plugin/plugin.json",
    ".cursor-plugin/plugin.json",
    ".github/plugin/plugin.json",
    ".plugin/plugin.json",
    "plugin.json",
    "gemini-extension.json",
)
MARKETPLACE_FILES = (
    ".claude-plugin/marketplace.json",
    ".github/plugin/marketplace.json",
    ".agents/plugins/marketplace.json",
    "marketplace.json",
)
NAME = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}"
LONGEST_DESCRIPTION = 300
_MOST_MATCHES = 500
_FOLDERS: Mapping[str, str] = {"skills": "skills", "commands": "commands", "agents": "agents", "outputStyles": "output-styles"}
_HOOKS = ("hooks/hooks.json",)
_SERVERS = (".mcp.json", "mcp.json")
_LANGUAGE_SERVERS = (".lsp.json",)
_LANGUAGE_SERVER_KEYS = frozenset(
    ("command", "args", "extensionToLanguage", "fileExtensions", "env", "initializationOptions", "settings", "transport")
)
_OPTION = "CLAUDE_PLUGIN_OPTION_"
_VARIABLE = r"(?a)[A-Za-z_]\w{0,63}"
_LOADERS = ("LD_", "DYLD_")
"""Variables that would act on the programs of the sandbox as well."""
_UNUSED_KEYS = ("monitors", "themes", "channels", "dependencies", "apps")
_UNUSED_FILES = ("themes", "monitors", "bin", "settings.json", ".app.json")


class PluginComponent(Struct, frozen=True):
    """A folder of skills, commands, agents or output styles."""

    folder: str
    """Relative to the plugin."""
    only: tuple[str, ...] | None = None
    """Entries to use; None: all."""


class PluginSetting(Struct, frozen=True):
    """A value that the user gives, for the servers and hooks of the plugin."""

    key: str
    variable: str
    """Environment variable that holds it."""
    title: str
    default: str = ""
    is_secret: bool = False


class Contents(Struct, frozen=True, kw_only=True):
    name: str
    version: str = ""
    description: str = ""
    skills: tuple[PluginComponent, ...] = ()
    commands: tuple[PluginComponent, ...] = ()
    agents: tuple[PluginComponent, ...] = ()
    output_styles: tuple[PluginComponent, ...] = ()
    hooks: tuple[str, ...] = ()
    """Hooks in Claude Code's JSON form."""
    servers: str = ""
    """MCP servers in the JSON form of `.mcp.json`; empty: none."""
    language_servers: str = ""
    """A JSON list of `wolo.lsp.server_table.ServerSpec`; empty: none."""
    context: tuple[str, ...] = ()
    """Files of instructions, relative to the plugin: Gemini CLI's `contextFileName`."""
    denied: tuple[str, ...] = ()
    """Tools and commands that it denies, in Gemini CLI's form: `excludeTools`."""
    settings: tuple[PluginSetting, ...] = ()
    extensions: tuple[str, ...] = ()
    """Paths of Python files, or entry points `NAME=MODULE:ATTRIBUTE` of a package."""
    unused: tuple[str, ...] = ()
    """Parts of the plugin that wolo does not use."""

    @property
    def runs_something(self) -> bool:
        return bool(self.hooks or self.servers or self.language_servers or self.extensions)

    @property
    def is_empty(self) -> bool:
        texts = (self.skills, self.commands, self.agents, self.output_styles, self.context, self.denied)
        return not (any(texts) or self.runs_something)


def read_plugin(folder: Path, name: str, entry: Mapping[str, Any] | None = None) -> Contents:
    """`entry` is its entry in a marketplace, `name` the name without a manifest. Raises ExtensionError."""
    entry = entry or {}
    manifest = next((path for each in MANIFESTS if (path := folder / each).is_file()), None)
    said = _object(manifest, folder) if manifest else {}
    is_listed = entry.get("strict") is False
    fields = {**entry, **said}
    package = read_package(folder)
    fields = {**package, **fields}
    called = str(fields.get("name") or name)
    if not re.fullmatch(NAME, called):
        called = re.sub(r"[^A-Za-z0-9_.-]+", "-", called).strip("-._").lower()[:64]
        if not called:
            raise ExtensionError(f"The plugin has no usable name: {clean_line(str(fields.get('name') or name))}.")
    reading = _ManifestReader(folder, fields, is_listed=is_listed)
    description = fields.get("description")
    paths = (path for path in (folder / "extensions").glob("*.py") if not path.name.startswith(("_", ".")))
    return Contents(
        name=called,
        version=clean_line(str(fields.get("version") or "")),
        description=clean_line(description)[:LONGEST_DESCRIPTION] if isinstance(description, str) else "",
        skills=reading.components("skills"),
        commands=reading.components("commands"),
        agents=reading.components("agents"),
        output_styles=reading.components("outputStyles"),
        hooks=reading.hooks(),
        servers=reading.servers(),
        language_servers=reading.language_servers(),
        context=reading.context(),
        denied=reading.denied_tools(),
        settings=reading.settings(),
        extensions=(*find_entry_points(folder, "extensions"), *sorted(str(path.relative_to(folder)) for path in paths)),
        unused=(*reading.unused_names(), *package.get("unused", ())),
    )


def read_package(folder: Path) -> dict[str, Any]:
    """Name, version and summary of an unpacked wheel, and what it needs; without the name for a package of npm."""
    metadata = next(folder.glob("*.dist-info/METADATA"), None)
    if metadata is None:
        return _read_npm_package(folder)
    head = metadata.read_text(encoding="utf-8", errors="replace").partition("\n\n")[0]
    lines = [line.partition(": ")[::2] for line in head.splitlines()]
    values = dict(reversed(lines))
    needs = [value.partition(";")[0].strip() for name, value in lines if name == "Requires-Dist" and "extra ==" not in value]
    unused = [f"dependencies, to be installed next to wolo: {clean_line(', '.join(needs))}"] if needs else []
    return {
        "name": values.get("Name", ""),
        "version": values.get("Version", ""),
        "description": values.get("Summary", ""),
        "unused": unused,
    }


def _read_npm_package(folder: Path) -> dict[str, Any]:
    try:
        package = _object(folder / "package.json", folder)
    except ExtensionError:
        return {}
    needs = package.get("dependencies")
    absent = [name for name in needs if not (folder / "node_modules" / name).exists()] if isinstance(needs, dict) else []
    unused = [f"dependencies, which are not installed: {clean_line(', '.join(absent))}"] if absent else []
    return {"version": package.get("version"), "description": package.get("description"), "unused": unused}


class _ManifestReader:
    def __init__(self, folder: Path, fields: Mapping[str, Any], *, is_listed: bool) -> None:
        """`is_listed`: the marketplace names all components, so default folders are not searched."""
        self._folder = folder
        self._fields = fields
        self._is_listed = is_listed
        self._unread: list[str] = []

    def components(self, kind: str) -> tuple[PluginComponent, ...]:
        value = self._fields.get(kind)
        if isinstance(value, Mapping):
            value = [each.get("source") if isinstance(each, Mapping) else each for each in value.values()]
        value = value if isinstance(value, list) else [] if value is None else [value]
        if not all(isinstance(each, str) for each in value):
            raise ExtensionError(f"'{kind}' of the plugin must be a path, or a list of paths.")
        for each in value:
            self._inside(each, kind)
        paths = [path for each in value for path in self._matches(_plain(each))]
        listed = [self._component(kind, path) for path in paths]
        if not self._is_listed:
            default = _FOLDERS[kind]
            names_part = any(path == default or path.startswith(f"{default}/") for path in paths)
            if not names_part and (self._folder / default).is_dir():
                listed.insert(0, PluginComponent(default))
        if kind == "skills" and not listed and skill_file(self._folder):
            listed.append(self._component(kind, "."))
        return tuple(dict.fromkeys(listed))

    def _matches(self, path: str) -> list[str]:
        """The files that a pattern names; the path itself where it is none, or names nothing."""
        if not re.search(r"[*?\[]", path):
            return [path]
        found = sorted(str(each.relative_to(self._folder)) for each in islice(self._folder.glob(path), _MOST_MATCHES))
        return found or [path]

    def context(self) -> tuple[str, ...]:
        """Gemini CLI's default name counts for its extensions only."""
        value = self._fields.get("contextFileName", "GEMINI.md" if (self._folder / "gemini-extension.json").is_file() else [])
        names = [each for each in (value if isinstance(value, list) else [value]) if isinstance(each, str) and each]
        return tuple(_plain(each) for each in names if self._inside(each, "contextFileName").is_file())

    def denied_tools(self) -> tuple[str, ...]:
        value = self._fields.get("excludeTools")
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise ExtensionError("'excludeTools' of the plugin must be a list of tools.")
        return tuple(value)

    def _component(self, kind: str, path: str) -> PluginComponent:
        """A folder, a single skill, or a single file."""
        target = self._folder / path
        if not target.exists():
            raise ExtensionError(f"The plugin names {path} for its {kind}, which does not exist.")
        parent = str(Path(path).parent)
        if target.is_file() and kind == "skills" and target.name.lower() == "skill.md":
            path, target = parent, target.parent
            parent = str(Path(path).parent)
        skill = skill_file(target) if kind == "skills" and target.is_dir() else None
        if target.is_file() or skill:
            return PluginComponent(".", (skill.name,)) if skill and path == "." else PluginComponent(parent, (target.name,))
        return PluginComponent(path)

    def hooks(self) -> tuple[str, ...]:
        files: dict[str, None] = {}
        for value in self._values("hooks", _HOOKS):
            if isinstance(value, str):
                value = _object(self._inside(value, "hooks"), self._folder)
            elif isinstance(value, Mapping) and "hooks" not in value:
                value = {"hooks": value}
            hooks = value.get("hooks", {}) if isinstance(value, Mapping) else value
            if not isinstance(hooks, Mapping):
                self._unread.append("hooks that are no table of events")
            elif hooks:
                files[_with_variables(json.dumps({"hooks": hooks}, sort_keys=True))] = None
        return tuple(files)

    def servers(self) -> str:
        by_name = self._servers_by_name("mcpServers", _SERVERS)
        return _with_variables(json.dumps({"mcpServers": by_name}, sort_keys=True)) if by_name else ""

    def language_servers(self) -> str:
        servers = [
            self._language_server(clean_line(name), each)
            for name, each in self._servers_by_name("lspServers", _LANGUAGE_SERVERS).items()
        ]
        return _with_variables(json.dumps([each for each in servers if each], sort_keys=True)) if any(servers) else ""

    def settings(self) -> tuple[PluginSetting, ...]:
        """`settings` of Gemini CLI, which name their variables, and `userConfig` of Claude Code."""
        listed, table = self._fields.get("settings") or [], self._fields.get("userConfig")
        rows = [("", each.get("envVar"), each) for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
        rows += [(_OPTION, key, each) for key, each in table.items() if isinstance(each, dict)] if isinstance(table, dict) else []
        if not isinstance(listed, list):
            self._unread.append("settings")
        settings = []
        for prefix, key, each in rows:
            given = each.get("default")
            default = json.dumps(given) if isinstance(given, bool) else "" if given is None else str(given)
            if not isinstance(key, str) or not re.fullmatch(_VARIABLE, key) or key.startswith(_LOADERS) or "\0" in default:
                self._unread.append(f"the setting {clean_line(str(key))}")
                continue
            title = clean_line(str(each.get("title") or each.get("description") or each.get("name") or key))
            variable = f"{prefix}{key.upper()}" if prefix else key
            settings.append(PluginSetting(key, variable, title, default, each.get("sensitive") is True))
        return tuple(settings)

    def _language_server(self, name: str, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Empty for one that cannot be used."""
        command, args, env = fields.get("command"), fields.get("args") or [], fields.get("env") or {}
        languages: Any = fields.get("extensionToLanguage") or fields.get("fileExtensions")
        is_usable = isinstance(command, str) and command and isinstance(languages, dict)
        if not (is_usable and isinstance(args, list) and isinstance(env, dict) and fields.get("transport", "stdio") == "stdio"):
            self._unread.append(f"the language server {name} (it needs `command` and `extensionToLanguage`, and stdio)")
            return {}
        unread = [*(fields.keys() - _LANGUAGE_SERVER_KEYS), *(each for each in env if each.startswith(_LOADERS))]
        self._unread += [f"{clean_line(key)} of the language server {name}" for key in sorted(unread)]
        return {
            "name": name,
            "command": [re.sub(r"^\./", "${CLAUDE_PLUGIN_ROOT}/", str(command)), *map(str, args)],
            "extensions": [each.lower() for each in languages],
            "languages": {each.lower(): str(language) for each, language in languages.items()},
            "env": {key: str(value) for key, value in env.items() if key not in unread},
            "options": fields.get("initializationOptions"),
            "settings": fields.get("settings"),
        }

    def _servers_by_name(self, key: str, defaults: Iterable[str]) -> dict[str, Any]:
        by_name: dict[str, Any] = {}
        for value in self._values(key, defaults):
            table = _object(self._inside(value, key), self._folder) if isinstance(value, str) else value
            if isinstance(table, Mapping):
                by_name |= {name: each for name, each in _servers_of(table).items() if isinstance(each, Mapping)}
        return by_name

    def unused_names(self) -> tuple[str, ...]:
        named = [key for key in _UNUSED_KEYS if self._fields.get(key)]
        files = [name for name in _UNUSED_FILES if (self._folder / name).exists()]
        # Guards of an extension of Gemini CLI
        files += ["policies (calls that they forbid are NOT denied)"] if (self._folder / "policies").is_dir() else []
        return tuple(dict.fromkeys((*named, *files, *self._unread)))

    def _values(self, key: str, defaults: Iterable[str]) -> list[Any]:
        """The default files, then what the manifest says: paths and tables."""
        there = [] if self._is_listed else [each for each in defaults if (self._folder / each).is_file()]
        said = self._fields.get(key)
        said = said if isinstance(said, list) else [] if said is None else [said]
        named = [_plain(each) if isinstance(each, str) else each for each in said]
        return [*(each for each in there if each not in named), *named]

    def _inside(self, path: str, kind: str) -> Path:
        """Raises ExtensionError for a path that leads out of the plugin."""
        if path.startswith(("/", "~")) or ".." in Path(path).parts:
            raise ExtensionError(f"'{kind}' of the plugin names {clean_line(path)}, which is outside of it.")
        return self._folder / _plain(path)


def _with_variables(text: str) -> str:
    return re.sub(r"\$\{user_config\.(\w+)\}", lambda match: f"${{{_OPTION}{match[1].upper()}}}", text)


def _plain(path: str) -> str:
    plain = path.replace("${CLAUDE_PLUGIN_ROOT}", ".").replace("${extensionPath}", ".").replace("${/}", "/")
    return str(Path(plain))


def _servers_of(table: Mapping[str, Any]) -> Mapping[str, Any]:
    """With or without the word `mcpServers` or `lspServers` around them."""
    for key in ("mcpServers", "lspServers", "servers"):
        if isinstance(table.get(key), Mapping):
            return table[key]  # type: ignore[no-any-return]  # it was just checked
    return table


def _object(path: Path, folder: Path) -> Mapping[str, Any]:
    """Raises ExtensionError."""
    name = str(path.relative_to(folder))
    try:
        content = json.loads(decode(path.read_bytes(), name))
    except FileNotFoundError as error:
        raise ExtensionError(f"The plugin names {name}, which does not exist.") from error
    except (OSError, ValueError, RecursionError) as error:
        raise ExtensionError(f"{name} of the plugin cannot be read: {error}.") from error
    if not isinstance(content, dict):
        raise ExtensionError(f"{name} of the plugin is not a JSON object.")
    return content
