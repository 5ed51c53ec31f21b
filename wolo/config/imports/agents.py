"""Reads the settings of Claude Code, Codex, OpenCode, Gemini CLI, Kimi and pi."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from wolo.config.foreign_servers import read_foreign_entries
from wolo.config.project import MAX_BYTES, RULES, read_file
from wolo.config.translation import rules
from wolo.config.translation.findings import Reading, SettingFinding, items, part
from wolo.errors import ConfigError, ExtensionError
from wolo.extensions.hooks.hook_files import read_hooks
from wolo.extensions.settings_documents import parse_settings
from wolo.foreign_places import IMPORTED, TABLE
from wolo.guard.protected_paths import is_secret
from wolo.guard.rules import Decision
from wolo.places import Notices, find_home

_LEVELS = frozenset(("off", "minimal", "low", "medium", "high", "xhigh", "max"))
_PROVIDERS = {"google": "gemini", "google-gemini": "gemini", "moonshotai": "moonshot", "zai-coding-plan": "zai-coding"}
_KNOWN_PROVIDERS = (
    *("anthropic", "openai", "gemini", "openrouter", "deepseek", "moonshot"),
    *("mistral", "groq", "xai", "zai", "zai-coding", "ollama"),
)
_DECISIONS: tuple[Decision, ...] = ("deny", "ask", "allow")
_MOST_FILES = 50
"""Of one folder."""
_NAME = r"[A-Za-z0-9][\w-]*"
_MOST_CHARS = 200_000
_TEXT_FIELDS: Mapping[str, str] = {"agent": "prompt", "command": "template"}
_BYPASSES = ("bypassPermissions", "yolo")
_BYPASS = "it switches all questions off; wolo does that for one run only (`--mode yolo`)"


class ForeignAgent(Struct, frozen=True):
    name: str
    """As in `--from`."""
    label: str
    own: tuple[str, ...]
    """Settings files of the user."""
    of_project: tuple[str, ...]
    read: Callable[[Reading, dict[str, Any]], None]
    memory: str
    """The user's instructions."""


def findings(agent: ForeignAgent, root: Path) -> Iterator[SettingFinding]:
    """A broken file costs itself only."""
    home = find_home()
    for name in agent.own:
        yield from _read(agent, Reading(home / name), root)
    for name in agent.of_project:
        if root != home:
            yield from _read(agent, Reading(root / name, is_projects=True), root)
    # A line for every other place that exists: where it is read, or why it is not
    kinds = ("skills", "commands", "agents", "output-styles", "rules", "hooks", "MCP servers", "instructions")
    for row in TABLE:
        base, before = (home, "~/") if row.is_users else (root, "")
        if row.agent != agent.label or (not row.is_users and (root == home or row.kind == "instructions")):
            continue
        for path in row.paths:
            if path in (agent.memory, *(agent.own if row.is_users else ())) or not (base / path).exists():
                continue
            if row.why and IMPORTED not in row.why:
                yield SettingFinding(source=base / path, kind="skip", what=f"{row.kind} ({before}{path})", why=row.why)
            elif not row.why and row.kind in kinds:
                after = ", after your consent" if row.kind in ("hooks", "MCP servers") else ""
                yield SettingFinding(source=base / path, kind="present", what=row.kind, why=f"read from {before}{path}{after}")
    if (home / agent.memory).is_file():
        yield SettingFinding(source=home / agent.memory, kind="memory", what=f"@~/{agent.memory}")


def is_there(agent: ForeignAgent) -> bool:
    return any((find_home() / name).is_file() for name in (*agent.own, agent.memory))


def _read(agent: ForeignAgent, reading: Reading, root: Path) -> Iterator[SettingFinding]:
    path = reading.source
    pattern = {"rules": "*.rules", "policies": "*.toml"}.get(path.name)
    for file in sorted(path.glob(pattern))[:_MOST_FILES] if pattern else [path]:
        reading.source = file
        try:
            if os.path.lexists(file):
                _read_file(agent, reading, root)
        except (ValueError, RecursionError, SyntaxError, ConfigError, ExtensionError, AttributeError, TypeError) as error:
            reading.skip("this file", f"it cannot be read: {getattr(error, 'message', None) or error}")
    holds = reading.is_projects and path.relative_to(root).as_posix() in RULES.places
    kinds = () if not holds else ("rule", "setting") if agent.name == "opencode" else ("rule",)
    why = "holds where it is, once the folder is trusted"
    yield from (replace(each, kind="present", why=why) if each.kind in kinds else each for each in reading.findings)


def _read_file(agent: ForeignAgent, reading: Reading, root: Path) -> None:
    path = reading.source
    data = read_file(path, root if reading.is_projects else Path("/"), MAX_BYTES * 16)
    if path.suffix == ".rules":
        rules.add_codex(reading, data.decode("utf-8-sig"))
        return
    table = parse_settings(data, path.name)
    if path.parent.name == "policies":
        _policies(reading, table)
    elif path.name == ".claude.json":
        # `~/.claude.json` holds servers of the user and of single projects, and much that is no setting
        _servers(reading, table.get("mcpServers", {}))
        local = table.get("projects", {}).get(str(root), {})
        if local.get("mcpServers"):
            reading.is_projects = True
            _servers(reading, local["mcpServers"])
    elif path.name == "hooks.json":
        _hooks(reading, table.get("hooks", table))
    elif path.name == "models.json":
        # Providers that pi's user has added
        apis = {"openai-completions": "openai-chat", "openai-responses": "openai-responses", "anthropic-messages": "anthropic"}
        for name in part(table, "providers"):
            own = part(table["providers"], name)
            add_provider(reading, name, own.get("baseUrl"), apis.get(str(own.get("api", ""))), own.get("apiKey"))
    elif path.name == "mcp.json":
        _servers(reading, table.get("mcpServers", {}))
    else:
        agent.read(reading, table)


def _model(reading: Reading, key: str, provider: str, model: object, own: Mapping[str, Any] | None = None) -> None:
    """`own`: the providers that the same settings define."""
    provider = _PROVIDERS.get(provider, provider)
    if not isinstance(model, str) or not model:
        return
    if provider in _KNOWN_PROVIDERS or provider in (own or {}):
        reading.setting(key, f"{provider}/{model}")
    else:
        reading.skip(f"{key} {model}", f"wolo knows no provider {provider or 'for it'}; choose a model with /model")


def _level(reading: Reading, level: object) -> None:
    if level in _LEVELS:
        reading.setting("thinking", level)
    elif level is not None:
        reading.skip(f"thinking {level}", "there is no such level")


def _mode(reading: Reading, value: object, modes: Mapping[str, str]) -> None:
    if value is None:
        return
    if value in _BYPASSES:
        reading.skip(f"mode {value}", _BYPASS)
    else:
        reading.add("setting", "mode", modes.get(str(value), "ask"), "" if value in modes else f"wolo has no mode {value}")


def _number(reading: Reading, key: str, value: object) -> None:
    if isinstance(value, int) and value > 0:
        reading.add("setting", key, value)


def _servers(reading: Reading, entries: object) -> None:
    if not isinstance(entries, dict):
        reading.skip("MCP servers", "they are no table")
        return
    for name, entry in entries.items():
        problems = Notices()
        written = (
            {key: value for key, value in entry.items() if key not in ("trust", "_gemini")} if isinstance(entry, dict) else entry
        )
        is_gemini = isinstance(entry, dict) and "_gemini" in entry
        for called, server in read_foreign_entries({name: written}, str(reading.source), problems, is_gemini=is_gemini):
            if reading.is_projects and reading.source.name != ".claude.json":
                reading.add("present", f"MCP server {called}", why="offered where it is, after your consent")
            else:
                reading.add("server", called, server)
        for problem in problems:
            reading.skip(f"MCP server {name}", problem.rpartition(": ")[2])
        if isinstance(entry, dict) and entry.get("trust") is True:
            reading.skip(f"trust of MCP server {name}", "its tools are approved by rules: mcp:SERVER/TOOL")


def _hooks(reading: Reading, hooks: object) -> None:
    if not hooks:
        return
    imported = read_hooks(json.dumps({"hooks": hooks}).encode(), reading.source.with_name("settings.json"))
    for event, hook in imported.hooks:
        if not reading.is_projects:  # those of a project are read in place
            reading.add("hook", f"{event} `{hook.action}`", (event, hook))
    for problem in imported.problems:
        reading.skip("hook", problem.partition(": ")[2] or problem)


def _claude(reading: Reading, table: dict[str, Any]) -> None:
    if str(table.get("model", "")).startswith("claude-"):
        _model(reading, "model", "anthropic", table["model"])
    elif table.get("model"):
        reading.skip(
            f"model {table['model']}",
            "not a name of a model"
            if not isinstance(table["model"], str)
            else "a short name of Claude Code; choose a model with /model",
        )
    _level(reading, table.get("effortLevel"))
    permissions = part(table, "permissions")
    modes = {"default": "ask", "dontAsk": "ask", "acceptEdits": "edit", "plan": "plan", "auto": "auto"}
    _mode(reading, permissions.get("defaultMode"), modes)
    rules.add_denials(reading, permissions)
    for each in items(permissions, "allow"):
        rules.add_rule(reading, "allow", each)
    if directories := items(permissions, "additionalDirectories"):
        reading.skip(f"directories {', '.join(map(str, directories))}", "given for each run: --add-dir")
    if names := ", ".join(part(table, "env")):
        reading.skip(f"env {names}", "wolo stores no values; export the variables, and commands get them")
    if reading.is_projects and table.get("hooks"):
        reading.add("present", "hooks", why=f"read from {reading.source.parent.name}/{reading.source.name}, after your consent")
    elif table.get("disableAllHooks") is not True:
        _hooks(reading, table.get("hooks"))
    markets = part(table, "extraKnownMarketplaces")
    for name in [name for name, is_on in part(table, "enabledPlugins").items() if is_on]:
        plugin, _, market = str(name).partition("@")
        source = part(part(markets, market), "source")
        where = source.get("repo") or source.get("url") or source.get("path") or market
        reading.skip(f"plugin {name}", f"`wolo plugin marketplace add {where}`, then `wolo plugin add {plugin}`")
    if "apiKeyHelper" in table:
        reading.skip("apiKeyHelper", 'providers.anthropic.api_key = "!COMMAND" does the same')
    if "outputStyle" in table:
        reading.skip(f"outputStyle {table['outputStyle']}", "/output-style NAME chooses a style of your files")
    known = {"model", "permissions", "env", "hooks", "effortLevel", "disableAllHooks", "enabledPlugins", "extraKnownMarketplaces"}
    reading.rest(table, {*known, "apiKeyHelper", "outputStyle"})


def _codex(reading: Reading, table: dict[str, Any]) -> None:
    own = {name: each for name, each in part(table, "model_providers").items() if isinstance(each, dict)}
    for name, each in own.items():
        api = {"chat": "openai-chat", "responses": "openai-responses"}.get(str(each.get("wire_api", "chat")))
        add_provider(reading, name, each.get("base_url"), api, each.get("env_key"))
    _model(reading, "model", str(table.get("model_provider", "openai")), table.get("model"), own)
    _level(reading, table.get("model_reasoning_effort"))
    policy, sandbox = table.get("approval_policy"), table.get("sandbox_mode")
    asks = policy == "untrusted" or isinstance(policy, dict)
    if sandbox == "danger-full-access":
        reading.skip(f"sandbox_mode {sandbox}", _BYPASS)
        if asks:
            reading.add("setting", "mode", "ask")
    elif policy or sandbox:
        careful = "plan" if policy == "never" else "ask"
        _mode(reading, str(sandbox), {"read-only": careful, "workspace-write": "ask" if asks else "auto", "None": "ask"})
    _servers(reading, table.get("mcp_servers", {}))
    _hooks(reading, table.get("hooks"))
    for name in part(table, "profiles"):
        reading.skip(f"profile {name}", "wolo has no profiles; an agent (`wolo --agent NAME`) has a model and rights of its own")
    if "notify" in table:
        reading.skip("notify", "a Stop or Notification hook does the same: it gets the event on stdin")
    if part(table, "tools").get("web_search", table.get("web_search")) not in (None, False, "disabled"):
        reading.skip("web_search", "it needs a search service: web_search.backend")
    known = {"profiles", "notify", "web_search", "model", "model_provider", "model_providers", "model_reasoning_effort"}
    known |= {"approval_policy", "sandbox_mode", "mcp_servers", "hooks", "projects"}
    reading.rest(table, known)


def _opencode(reading: Reading, table: dict[str, Any]) -> None:
    own = {name: each for name, each in part(table, "provider").items() if isinstance(each, dict) and "npm" in each}
    for name, each in own.items():
        options = part(each, "options")
        api = "openai-chat" if each["npm"] == "@ai-sdk/openai-compatible" else None
        add_provider(reading, name, options.get("baseURL"), api, variable_in(options.get("apiKey")))
    if others := ", ".join(name for name in part(table, "provider") if name not in own):
        reading.skip(f"provider {others}", "its keys are not copied; see `wolo auth login` and providers.NAME")
    for key in ("model", "small_model"):
        provider, _, model = str(table.get(key, "")).partition("/")
        _model(reading, key, provider, model, own)
    rules.add_opencode_settings(reading, table)
    _servers(reading, table.get("mcp", {}))
    for files in items(table, "instructions"):
        if reading.is_projects:
            reading.add("present", "instructions", why=f"{files} is read")
        else:
            reading.skip(f"instructions {files}", f"write @{files} into AGENTS.md")
    for kind in ("agent", "command"):
        add_files(reading, kind, table.get(kind))
    if isinstance(agent := table.get("default_agent"), str) and agent not in ("", "build"):
        reading.setting("agent", agent)
    if plugins := items(table, "plugin"):
        reading.skip(f"plugins {', '.join(map(str, plugins))}", "they are JavaScript for OpenCode's own functions")
    if names := ", ".join(part(table, "mode")):
        reading.skip(f"mode {names}", "wolo has agents instead")
    known = {"model", "small_model", "permission", "tools", "mcp", "instructions", "agent", "command", "mode", "provider"}
    reading.rest(table, {*known, "default_agent", "plugin"})


def _gemini(reading: Reading, table: dict[str, Any]) -> None:
    general, tools = part(table, "general"), part(table, "tools")
    model = part(table, "model") or {"name": table.get("model")}
    _model(reading, "model", "gemini", model.get("name"))
    _number(reading, "limits.max_turns", model.get("maxSessionTurns", table.get("maxSessionTurns")))
    modes = {"default": "ask", "auto_edit": "edit", "plan": "plan"}
    _mode(reading, general.get("defaultApprovalMode", tools.get("approvalMode", table.get("approvalMode"))), modes)
    rules.add_gemini(reading, table)
    reading.rest({f"tools.{name}": each for name, each in tools.items()}, {"tools.approvalMode", *rules.GEMINI_TOOLS})
    servers = table.get("mcpServers", {})
    if isinstance(servers, dict):
        limits = part(table, "mcp")
        for name in (*items(limits, "excluded"), *items(table, "excludeMCPServers")):
            rules.add_rule(reading, "deny", f"mcp__{name}")
        allowed = limits.get("allowed", table.get("allowMCPServers"))
        for name in [each for each in servers if isinstance(allowed, list) and each not in allowed]:
            reading.skip(f"MCP server {name}", "it is not among the allowed ones")
            servers = {other: each for other, each in servers.items() if other != name}
        servers = {name: {**each, "_gemini": True} if isinstance(each, dict) else each for name, each in servers.items()}
    _servers(reading, servers)
    _hooks(reading, table.get("hooks"))
    known = {"general", "model", "tools", "excludeTools", "allowedTools", "maxSessionTurns", "mcpServers", "hooks", "mcp"}
    known |= {"approvalMode", "coreTools", "excludeMCPServers", "allowMCPServers"}
    reading.rest(table, known)


def _policies(reading: Reading, table: dict[str, Any]) -> None:
    """Rules of Gemini CLI's policy engine: denials and questions by tool and prefix of a command."""
    for rule in items(table, "rule"):
        if not isinstance(rule, dict) or rule.get("decision") not in ("deny", "ask_user", "allow"):
            reading.skip(f"policy {rule}", "it has no decision. Calls that it forbids are NOT denied.")
            continue
        decision: Decision = "ask" if rule["decision"] == "ask_user" else rule["decision"]
        tools = items(rule, "toolName") or ["*"]
        shown = f"policy {rule['decision']} {', '.join(map(str, tools))}"
        narrowed = sorted(rule.keys() & {"argsPattern", "commandRegex", "modes", "mcpName", "toolAnnotations", "subagent"})
        if "*" in tools or (narrowed and decision == "allow"):
            reading.skip(shown, "wolo has no rule for it" + (". These calls are NOT denied." if decision != "allow" else ""))
            continue
        if narrowed:
            reading.skip(shown, f"wolo cannot compare {', '.join(narrowed)}: {decision} holds for all these calls")
        prefixes = [] if narrowed else items(rule, "commandPrefix")
        for tool in tools:
            for written in [f"{tool}({prefix})" for prefix in prefixes] or [tool]:
                rules.add_bare(reading, decision, written)


def _kimi(reading: Reading, table: dict[str, Any]) -> None:
    name = table.get("default_model")
    chosen = table.get("models", {}).get(name, {})
    address = str(table.get("providers", {}).get(chosen.get("provider"), {}).get("base_url", ""))
    _model(reading, "model", "moonshot" if "moonshot" in address else str(chosen.get("provider", "")), chosen.get("model", name))
    thinking = table.get("thinking", {})
    _level(reading, thinking.get("effort") if thinking.get("enabled", True) else "off")
    if table.get("default_yolo") or table.get("default_permission_mode") == "yolo":
        reading.skip("mode yolo", _BYPASS)
    elif table.get("default_plan_mode"):
        reading.add("setting", "mode", "plan")
    elif mode := table.get("default_permission_mode"):
        _mode(reading, mode, {"plan": "plan"})
    _number(reading, "limits.max_turns", table.get("loop_control", {}).get("max_steps_per_turn"))
    for rule in table.get("permission", {}).get("rules", ()):
        decision = next((each for each in _DECISIONS if each == rule.get("decision")), None)
        if decision is None:
            reading.skip(f"rule {rule}", "it has no decision")
        else:
            rules.add_rule(reading, decision, rule.get("pattern"))
    groups: dict[str, list[Any]] = {}
    for hook in table.get("hooks", ()):
        entry = {"type": "command", **{name: hook[name] for name in ("command", "timeout") if name in hook}}
        groups.setdefault(str(hook.get("event")), []).append({"matcher": hook.get("matcher", ""), "hooks": [entry]})
    _hooks(reading, groups)
    if names := ", ".join(name for name, each in table.get("providers", {}).items() if each.get("api_key")):
        reading.skip(f"API keys of {names}", "secrets are not copied: `wolo login`")
    known = {"default_model", "models", "providers", "thinking", "default_yolo", "default_permission_mode", "default_plan_mode"}
    reading.rest(table, {*known, "loop_control", "permission", "hooks", "mcp"})


def _pi(reading: Reading, table: dict[str, Any]) -> None:
    _model(reading, "model", str(table.get("defaultProvider", "")), table.get("defaultModel"))
    _level(reading, table.get("defaultThinkingLevel"))
    if table.get("compaction", {}).get("enabled") is False:
        reading.setting("compaction.auto", False)
    if table.get("theme") in ("dark", "light"):
        reading.setting("ui.theme", table["theme"])
    reading.rest(table, {"defaultProvider", "defaultModel", "defaultThinkingLevel", "theme", "compaction"})


_OPENCODE = (".config/opencode/opencode.json", ".config/opencode/opencode.jsonc")
_KIMI = (".kimi/mcp.json", ".kimi-code/mcp.json")
_CLAUDE = (".claude/settings.json", ".claude/settings.local.json")
_CODEX = (".codex/config.toml", ".codex/rules")
_GEMINI = (".gemini/settings.json", ".gemini/policies")
AGENTS = (
    ForeignAgent("claude", "Claude Code", (_CLAUDE[0], ".claude.json"), _CLAUDE, _claude, ".claude/CLAUDE.md"),
    ForeignAgent("codex", "Codex", (_CODEX[0], ".codex/hooks.json", _CODEX[1]), _CODEX, _codex, ".codex/AGENTS.md"),
    ForeignAgent(
        *("opencode", "OpenCode", _OPENCODE, ("opencode.json", "opencode.jsonc"), _opencode, ".config/opencode/AGENTS.md")
    ),
    ForeignAgent("gemini", "Gemini CLI", _GEMINI, _GEMINI, _gemini, ".gemini/GEMINI.md"),
    ForeignAgent(
        *("kimi", "Kimi", (".kimi/config.toml", _KIMI[0], ".kimi-code/config.toml", _KIMI[1]), _KIMI, _kimi, ".kimi/AGENTS.md")
    ),
    ForeignAgent(
        *("pi", "pi", (".pi/agent/settings.json", ".pi/agent/models.json"), (".pi/settings.json",), _pi, ".pi/agent/AGENTS.md")
    ),
)


def add_files(reading: Reading, kind: str, entries: object) -> None:
    """Makes a Markdown file of each `agent` or `command` of OpenCode's settings."""
    for name, entry in entries.items() if isinstance(entries, dict) else ():
        what = f"{kind} {name}"
        text = entry.get(_TEXT_FIELDS[kind]) if isinstance(entry, dict) else None
        text = _from_file(reading, text) if isinstance(text, str) else ""
        if reading.is_projects:
            reading.skip(what, f"put it into .opencode/{kind}s, where wolo reads it")
        elif not re.fullmatch(_NAME, str(name)) or not text.strip():
            reading.skip(what, f"it has no {_TEXT_FIELDS[kind]}" if not text.strip() else "its name does not fit a file")
        else:
            fields = [f"{key}: {json.dumps(value)}" for key, value in entry.items() if key != _TEXT_FIELDS[kind]]
            reading.add("file", what, (f"{kind}s/{name}.md", "\n".join(["---", *fields, "---", "", text.strip(), ""])))


def _from_file(reading: Reading, text: str) -> str:
    """Follows `{file:./PATH}` below the folder of the settings; empty where that cannot be read."""
    found = re.fullmatch(r"\s*\{file:(.+)\}\s*", text)
    if found is None:
        return text
    folder = reading.source.parent.resolve()
    path = (folder / found[1].strip()).resolve()
    if not path.is_relative_to(folder) or is_secret(str(path)) or not path.is_file():
        return ""
    read = path.read_text(encoding="utf-8-sig")
    return read if len(read) <= _MOST_CHARS else ""


def add_provider(reading: Reading, name: str, address: object, api: str | None, variable: object) -> None:
    """`variable` names the environment variable of the key; keys themselves are not copied."""
    if reading.is_projects or not re.fullmatch(_NAME, name) or not isinstance(address, str) or api is None:
        why = "a project does not set this for you" if reading.is_projects else "it has no address or an unknown format"
        reading.skip(f"provider {name}", why)
        return
    is_variable = isinstance(variable, str) and re.fullmatch(r"\w+", variable) is not None
    key = {"api_key": f"${variable}"} if is_variable else {}
    reading.add("setting", f"providers.{name}", {"base_url": address, "api": api, **key})
    if variable and not is_variable:
        reading.skip(f"key of provider {name}", f"secrets are not copied: `wolo auth login {name}`")


def variable_in(key: Any) -> Any:
    """The NAME of OpenCode's `{env:NAME}`; otherwise True if there is a key."""
    found = re.fullmatch(r"\{env:(\w+)\}", key) if isinstance(key, str) else None
    return found[1] if found else bool(key)
