"""Lists where coding agents keep their files, each with its reader or the reason why wolo has none.

The readers take their places from here, the guide's page is made of it, and a file that no reader takes is named once.
"""

from __future__ import annotations

import os
from pathlib import Path

from msgspec import Struct


class Place(Struct, frozen=True):
    agent: str
    kind: str
    paths: tuple[str, ...]
    """In a project: below any folder from its root to the working directory. The user's: below the home directory."""
    why: str = ""
    """Why wolo reads none of them; empty: it does."""
    is_users: bool = False


MAIN_FILES = (
    *("AGENTS.override.md", "AGENTS.md", "AGENT.md", "CLAUDE.md", ".claude/CLAUDE.md", "GEMINI.md", "QWEN.md"),
    *(".junie/AGENTS.md", ".junie/guidelines.md"),
)
"""Instructions that mostly repeat each other: the first usable file of a folder counts."""
MORE_FILES = (
    *("CLAUDE.local.md", ".github/copilot-instructions.md", ".cursorrules", ".windsurfrules", ".clinerules", ".roorules"),
    *(".roorules-code", ".clinerules-code", ".continuerules", ".kimi/AGENTS.md", ".rules", ".goosehints", ".goosehints.local"),
)
"""Instructions that are read besides."""
USERS_FILES = (
    *(".claude/CLAUDE.md", ".codex/AGENTS.md", ".gemini/GEMINI.md", ".config/opencode/AGENTS.md", ".pi/agent/AGENTS.md"),
    *(".qwen/QWEN.md", ".kimi/AGENTS.md", ".config/AGENTS.md", ".config/amp/AGENTS.md", ".agents/AGENTS.md"),
    ".factory/AGENTS.md",
    *(".copilot/copilot-instructions.md", ".config/goose/.goosehints", ".codeium/windsurf/memories/global_rules.md"),
)
"""The user's instructions for other agents; the first usable one is read if wolo has none."""
RULES = (
    *(".claude/rules", ".github/instructions", ".cursor/rules", ".windsurf/rules", ".clinerules", ".cline/rules"),
    *(".roo/rules", ".roo/rules-code", ".continue/rules", ".kiro/steering"),
)
USERS_RULES = (
    *(".claude/rules", ".copilot/instructions", ".roo/rules", ".roo/rules-code", ".continue/rules", ".kiro/steering"),
    *("Documents/Cline/Rules", ".cline/rules"),
)
NAMING_SETTINGS = (
    *("opencode.json", "opencode.jsonc", ".opencode/opencode.json", ".opencode/opencode.jsonc"),
    *(".gemini/settings.json", ".qwen/settings.json"),
)
"""Settings that name further files of instructions."""

PERMISSION_RULES = "permission rules"
"""What they deny and ask about holds; what they allow does not."""

_SHARED = "several agents"
_DATA = "wolo takes agents from Markdown and Codex's TOML only"
_NOT_RUN = "these guards are NOT run; add them to your own hooks.json"
_NOT_HELD = "hooks and denials in it do NOT hold; write them into your own config.toml"
IMPORTED = "`wolo import-config` takes it over"


def _project(agent: str, kind: str, *paths: str, why: str = "") -> Place:
    return Place(agent, kind, paths, why)


def _user(agent: str, kind: str, *paths: str, why: str = "") -> Place:
    return Place(agent, kind, paths, why, is_users=True)


def _folders(agent: str, place: str, *kinds: str, is_users: bool = False) -> list[Place]:
    """A folder for each kind, named after it."""
    return [Place(agent, kind, (f"{place}/{kind}",), is_users=is_users) for kind in kinds]


TABLE = (
    _project("wolo", "settings", ".wolo/config.toml"),
    _project("wolo", "hooks", ".wolo/hooks.json", ".wolo/hooks"),
    _project("wolo", "MCP servers", ".wolo/mcp.json"),
    *_folders("wolo", ".wolo", "skills", "commands", "agents", "tools", "extensions", "output-styles"),
    _project(_SHARED, "instructions", *MAIN_FILES[:3]),
    _project(_SHARED, "MCP servers", ".mcp.json"),
    *_folders(_SHARED, ".agents", "skills", "commands", "agents"),
    _user(_SHARED, "instructions", ".agents/AGENTS.md", ".config/AGENTS.md"),
    _user(_SHARED, "skills", ".agents/skills", ".config/agents/skills"),
    _user(_SHARED, "commands", ".agents/commands", ".config/agents/commands"),
    _user(_SHARED, "agents", ".agents/agents", ".config/agents/agents"),
    _user(
        *(_SHARED, "MCP servers", ".copilot/mcp-config.json", ".factory/mcp.json", ".junie/mcp/mcp.json"),
        *(".kiro/settings/mcp.json", ".config/zed/settings.json"),
        why="`wolo mcp import FILE` reads it",
    ),
    _project(
        *(_SHARED, "hidden files", ".aiexclude", ".aiignore", ".clineignore", ".codeiumignore", ".continueignore"),
        *(".cursorignore", ".geminiignore", ".gooseignore", ".qwenignore", ".rooignore"),
        why="files that it lists are NOT hidden from the model; deny them by rules, such as read:NAME, in .wolo/config.toml",
    ),
    _project("Claude Code", "instructions", "CLAUDE.md", ".claude/CLAUDE.md", "CLAUDE.local.md"),
    _project("Claude Code", "rules", ".claude/rules"),
    _project(
        "Claude Code", "hooks", ".claude/settings.json", ".claude/settings.local.json", ".claude/hooks.json", ".claude/hooks"
    ),
    _project("Claude Code", PERMISSION_RULES, ".claude/settings.json", ".claude/settings.local.json"),
    *_folders("Claude Code", ".claude", "skills", "commands", "agents", "output-styles"),
    _user("Claude Code", "instructions", ".claude/CLAUDE.md"),
    *_folders("Claude Code", ".claude", "rules", "skills", "commands", "agents", is_users=True),
    _user("Claude Code", "settings, hooks and MCP servers", ".claude/settings.json", ".claude.json", why=IMPORTED),
    _user("Claude Code", "keybindings", ".claude/keybindings.json", why="/keys lists wolo's keys; they are fixed"),
    _user("Claude Code", "output-styles", ".claude/output-styles"),
    _project("Codex", "MCP servers", ".codex/config.toml"),
    _project("Codex", "hooks", ".codex/hooks.json", ".codex/config.toml"),
    *_folders("Codex", ".codex", "skills", "agents"),
    _project("Codex", PERMISSION_RULES, ".codex/rules", why=IMPORTED),
    _user("Codex", "instructions", ".codex/AGENTS.md"),
    _user("Codex", "skills", ".codex/skills"),
    _user("Codex", "commands", ".codex/prompts"),
    _user("Codex", "agents", ".codex/agents"),
    _user(
        "Codex", "settings, rules, hooks and MCP servers", ".codex/config.toml", ".codex/rules", ".codex/hooks.json", why=IMPORTED
    ),
    _project("OpenCode", "MCP servers", *NAMING_SETTINGS[:4]),
    _project("OpenCode", PERMISSION_RULES, *NAMING_SETTINGS[:4]),
    _project("OpenCode", "skills", ".opencode/skills", ".opencode/skill"),
    _project("OpenCode", "commands", ".opencode/commands", ".opencode/command"),
    _project("OpenCode", "agents", ".opencode/agents", ".opencode/agent", ".opencode/modes", ".opencode/mode"),
    _project("OpenCode", "plugins", ".opencode/plugins", ".opencode/plugin", why="guards in them are NOT run"),
    _project("OpenCode", "tools", ".opencode/tools", ".opencode/tool", why="they are JavaScript; wolo's own are Python"),
    _user("OpenCode", "plugins", ".config/opencode/plugins", ".config/opencode/plugin", why="guards in them are NOT run"),
    _user("OpenCode", "instructions", ".config/opencode/AGENTS.md"),
    _user("OpenCode", "skills", ".config/opencode/skills", ".config/opencode/skill"),
    _user("OpenCode", "commands", ".config/opencode/commands", ".config/opencode/command"),
    _user("OpenCode", "agents", ".config/opencode/agents", ".config/opencode/agent"),
    _user(
        *("OpenCode", "settings and MCP servers", ".config/opencode/opencode.json", ".config/opencode/opencode.jsonc"),
        why=IMPORTED,
    ),
    _project("Gemini CLI", "instructions", "GEMINI.md"),
    _project("Gemini CLI", "MCP servers", ".gemini/settings.json"),
    _project("Gemini CLI", "hooks", ".gemini/settings.json"),
    _project("Gemini CLI", PERMISSION_RULES, ".gemini/settings.json"),
    *_folders("Gemini CLI", ".gemini", "skills", "commands", "agents"),
    _project("Gemini CLI", "policies", ".gemini/policies", why=f"calls that they forbid are NOT denied; {IMPORTED}"),
    _user("Gemini CLI", "instructions", ".gemini/GEMINI.md"),
    *_folders("Gemini CLI", ".gemini", "skills", "commands", "agents", is_users=True),
    _user("Gemini CLI", "settings, hooks and MCP servers", ".gemini/settings.json", why=IMPORTED),
    _user("Gemini CLI", "policies", ".gemini/policies", why=IMPORTED),
    _user("Gemini CLI", "extensions", ".gemini/extensions", why="`wolo plugin add FOLDER` installs one"),
    _project("Qwen Code", "instructions", "QWEN.md"),
    _project("Qwen Code", "MCP servers", ".qwen/settings.json"),
    _project("Qwen Code", "hooks", ".qwen/settings.json"),
    _project("Qwen Code", PERMISSION_RULES, ".qwen/settings.json"),
    *_folders("Qwen Code", ".qwen", "skills", "commands", "agents"),
    _user("Qwen Code", "instructions", ".qwen/QWEN.md"),
    *_folders("Qwen Code", ".qwen", "skills", "commands", "agents", is_users=True),
    _user("Qwen Code", "settings", ".qwen/settings.json", why=_NOT_HELD),
    _project("Kimi", "instructions", ".kimi/AGENTS.md"),
    _project("Kimi", "skills", ".kimi/skills"),
    _project("Kimi", "MCP servers", ".kimi/mcp.json", ".kimi-code/mcp.json"),
    _user("Kimi", "instructions", ".kimi/AGENTS.md"),
    _user("Kimi", "skills", ".kimi/skills"),
    _user("Kimi", "settings and MCP servers", ".kimi/config.toml", ".kimi/mcp.json", why=IMPORTED),
    _project("GitHub Copilot", "instructions", ".github/copilot-instructions.md"),
    _project("GitHub Copilot", "rules", ".github/instructions"),
    _project("GitHub Copilot", "MCP servers", ".vscode/mcp.json", ".github/mcp.json"),
    *_folders("GitHub Copilot", ".github", "hooks", "skills"),
    _project("GitHub Copilot", "commands", ".github/prompts"),
    _project("GitHub Copilot", "agents", ".github/agents", ".github/chatmodes"),
    _user("GitHub Copilot", "instructions", ".copilot/copilot-instructions.md"),
    _user("GitHub Copilot", "rules", ".copilot/instructions"),
    _user("GitHub Copilot", "hooks", ".copilot/hooks", why=_NOT_RUN),
    *_folders("GitHub Copilot", ".copilot", "skills", "agents", is_users=True),
    _project("Cursor", "instructions", ".cursorrules"),
    _project("Cursor", "rules", ".cursor/rules"),
    _project("Cursor", "MCP servers", ".cursor/mcp.json"),
    _project("Cursor", "hooks", ".cursor/hooks.json"),
    _project("Cursor", PERMISSION_RULES, ".cursor/cli.json"),
    *_folders("Cursor", ".cursor", "skills", "commands", "agents"),
    _user("Cursor", "settings", ".cursor/cli-config.json", why=_NOT_HELD),
    _user("Cursor", "hooks", ".cursor/hooks.json", why=_NOT_RUN),
    *_folders("Cursor", ".cursor", "skills", "commands", "agents", is_users=True),
    _user("Cursor", "MCP servers", ".cursor/mcp.json", why="`wolo mcp import cursor` takes them over"),
    _project("Windsurf", "instructions", ".windsurfrules"),
    _project("Windsurf", "rules", ".windsurf/rules"),
    _project("Windsurf", "hooks", ".windsurf/hooks.json"),
    _project("Windsurf", "skills", ".windsurf/skills"),
    _project("Windsurf", "commands", ".windsurf/workflows"),
    _user("Windsurf", "instructions", ".codeium/windsurf/memories/global_rules.md"),
    _user("Windsurf", "hooks", ".codeium/windsurf/hooks.json", why=_NOT_RUN),
    _user("Windsurf", "skills", ".codeium/windsurf/skills"),
    _user("Windsurf", "commands", ".codeium/windsurf/global_workflows"),
    _user("Windsurf", "MCP servers", ".codeium/windsurf/mcp_config.json", why="`wolo mcp import windsurf` takes them over"),
    _project("Cline", "rules", ".clinerules", ".cline/rules"),
    _project("Cline", "hooks", ".clinerules/hooks", ".cline/hooks"),
    _user("Cline", "hooks", "Documents/Cline/Hooks", ".cline/hooks", why=_NOT_RUN),
    _project("Cline", "skills", ".cline/skills", ".clinerules/skills"),
    _project("Cline", "commands", ".clinerules/workflows", ".cline/workflows"),
    _user("Cline", "rules", "Documents/Cline/Rules", ".cline/rules"),
    _user("Cline", "commands", "Documents/Cline/Workflows"),
    _user("Cline", "skills", ".cline/skills"),
    _project("Roo Code", "instructions", ".roorules", ".roorules-code", ".clinerules-code"),
    _project("Roo Code", "rules", ".roo/rules", ".roo/rules-code"),
    _project("Roo Code", "MCP servers", ".roo/mcp.json"),
    *_folders("Roo Code", ".roo", "skills", "commands"),
    _project("Roo Code", "agents", ".roomodes"),
    _project(
        "Roo Code",
        "rules of modes",
        *(f".roo/rules-{mode}" for mode in ("architect", "ask", "debug", "orchestrator")),
        why="wolo has no such modes",
    ),
    _user("Roo Code", "rules", ".roo/rules", ".roo/rules-code"),
    *_folders("Roo Code", ".roo", "skills", "commands", is_users=True),
    _project("Goose", "instructions", ".goosehints", ".goosehints.local"),
    _project("Goose", "skills", ".goose/skills"),
    _project("Goose", "commands", ".goose/recipes"),
    _user("Goose", "instructions", ".config/goose/.goosehints"),
    _user("Goose", "skills", ".config/goose/skills"),
    _user("Goose", "commands", ".config/goose/recipes"),
    _user("Goose", "settings", ".config/goose/config.yaml", why="wolo reads no settings of Goose"),
    _project("Zed", "instructions", ".rules"),
    _project("Zed", "MCP servers", ".zed/settings.json"),
    _project("Zed", "tool permissions", ".zed/settings.json", why="calls that regular expressions in it forbid are NOT denied"),
    _project("Amp", "MCP servers", ".amp/settings.json"),
    _project("Amp", PERMISSION_RULES, ".amp/settings.json"),
    _user("Amp", "instructions", ".config/amp/AGENTS.md"),
    _user("Amp", "skills", ".config/amp/skills"),
    _user("Amp", "settings", ".config/amp/settings.json", why=_NOT_HELD),
    _project("pi", "skills", ".pi/skills"),
    _project("pi", "commands", ".pi/prompts"),
    _project("pi", "system prompt", ".pi/SYSTEM.md", ".pi/APPEND_SYSTEM.md", why="wolo has its own; put it into AGENTS.md"),
    _project("pi", "extensions", ".pi/extensions", why="they are TypeScript for pi's own functions"),
    _user("pi", "instructions", ".pi/agent/AGENTS.md"),
    _user("pi", "skills", ".pi/agent/skills"),
    _user("pi", "commands", ".pi/agent/prompts"),
    _user("pi", "settings", ".pi/agent/settings.json", ".pi/agent/models.json", why=IMPORTED),
    _user("pi", "extensions", ".pi/agent/extensions", why="they are TypeScript for pi's own functions"),
    _project("Junie", "instructions", ".junie/AGENTS.md", ".junie/guidelines.md"),
    _project("Junie", "MCP servers", ".junie/mcp/mcp.json"),
    *_folders("Junie", ".junie", "skills", "commands", "agents"),
    _project("Kiro", "rules", ".kiro/steering"),
    _project("Kiro", "MCP servers", ".kiro/settings/mcp.json"),
    _project("Kiro", "skills", ".kiro/skills"),
    _project("Kiro", "commands", ".kiro/prompts"),
    _project("Kiro", "agents", ".kiro/agents", why=f"they are JSON; {_DATA}; hooks in them are NOT run"),
    _project("Kiro", "hooks", ".kiro/hooks"),
    _user("Kiro", "hooks", ".kiro/hooks", why=_NOT_RUN),
    _user("Kiro", "rules", ".kiro/steering"),
    _user("Kiro", "skills", ".kiro/skills"),
    _project("Factory", "MCP servers", ".factory/mcp.json"),
    _project("Factory", "hooks", ".factory/hooks.json", ".factory/settings.json"),
    _project("Factory", PERMISSION_RULES, ".factory/settings.json"),
    *_folders("Factory", ".factory", "skills", "commands"),
    _project("Factory", "agents", ".factory/droids"),
    _user("Factory", "instructions", ".factory/AGENTS.md"),
    _user("Factory", "hooks", ".factory/hooks.json", why=_NOT_RUN),
    _user("Factory", "settings", ".factory/settings.json", why=_NOT_HELD),
    *_folders("Factory", ".factory", "skills", "commands", is_users=True),
    _user("Factory", "agents", ".factory/droids"),
    _project("Continue", "instructions", ".continuerules"),
    _project("Continue", "rules", ".continue/rules"),
    _project("Continue", "commands", ".continue/prompts"),
    _project("Continue", "skills", ".continue/skills"),
    _project("Continue", "MCP servers", ".continue/mcpServers", ".continue/config.yaml"),
    _project("Continue", "settings", ".continue/config.yaml", why="rules and prompts go into their folders"),
    _user("Continue", "rules", ".continue/rules"),
    _user("Continue", "commands", ".continue/prompts"),
    _user("Continue", "settings", ".continue/config.yaml", why="rules and prompts go into their folders"),
)
"""In the order in which the places of a kind are searched."""


def paths_of(kind: str, *, is_users: bool = False) -> tuple[str, ...]:
    """The places of a kind that a reader takes, the preferred ones first."""
    rows = (each for each in TABLE if each.kind == kind and not each.why and each.is_users == is_users)
    return tuple(dict.fromkeys(path for row in rows for path in row.paths))


UNREAD = tuple((path, row) for row in TABLE if row.why and (not row.is_users or "NOT" in row.why) for path in row.paths)
"""Places in a project that no reader takes, and guards of the user."""
_FIRST_NAMES = frozenset(
    path.partition("/")[0]
    for path in (
        *(path for row in TABLE for path in row.paths),
        *(*MAIN_FILES, *MORE_FILES, *RULES, *NAMING_SETTINGS, *USERS_FILES),
    )
)


def first_names(folder: Path | str) -> frozenset[str]:
    """The first parts of places that exist in a folder. One listing instead of a look for each name; opens nothing."""
    try:
        return _FIRST_NAMES.intersection(os.listdir(folder))  # noqa: PTH208  # at every start
    except (FileNotFoundError, NotADirectoryError):
        return frozenset()
    except OSError:
        pass
    # A folder may be entered and not listed
    return frozenset(name for name in _FIRST_NAMES if os.path.lexists(f"{folder}/{name}"))


def present(paths: tuple[str, ...], names: frozenset[str]) -> list[str]:
    """Those of `paths` whose first part is among `names`."""
    return [path for path in paths if path.partition("/")[0] in names]
