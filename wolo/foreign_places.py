"""Lists where coding agents keep their files, each with its reader or the reason why wolo has none.

The readers take their places from here, the guide's page is made of it, and a file that no reader takes is named once. The table
itself is `foreign_places.json`.
"""

import os
from pathlib import Path

import msgspec


class Place(msgspec.Struct, frozen=True):
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

IMPORTED = "`wolo import-config` takes it over"

TABLE = msgspec.json.decode(Path(__file__).with_suffix(".json").read_bytes(), type=tuple[Place, ...])
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
    """Select the paths whose first part is among `names`."""
    return [path for path in paths if path.partition("/")[0] in names]
