"""Reads the modes of Roo Code (`.roomodes`) as agents, with the rights of their groups at most."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from wolo.errors import ExtensionError
from wolo.extensions.markdown_files import Document
from wolo.extensions.settings_documents import parse_settings

_GROUPS: Mapping[str, tuple[str, ...]] = {
    **{"read": ("read", "grep", "glob", "list"), "edit": ("edit",), "command": ("bash",)},
    **{"browser": ("webfetch", "websearch"), "mcp": ("mcp",)},
}
"""Tools as OpenCode's permissions name them."""


def read_modes(text: str, name: str, folder: Path) -> list[Document]:
    """`folder`: where the file is. Raises ExtensionError."""
    modes = parse_settings(text.encode(), name).get("customModes")
    if not isinstance(modes, list) or not all(isinstance(mode, dict) for mode in modes):
        raise ExtensionError(f"{name}: customModes is no list of modes.")
    return [_as_document(mode, name, folder) for mode in modes]


def _as_document(mode: Mapping[str, Any], name: str, folder: Path) -> Document:
    def text(*keys: str) -> str:
        return next((each for key in keys if isinstance(each := mode.get(key), str) and each.strip()), "")

    groups: dict[str, Mapping[str, Any]] = {}
    for each in given if isinstance(given := mode.get("groups"), list) else []:
        group, *limits = each if isinstance(each, list) and each else [each]
        groups[str(group)] = limits[0] if limits and isinstance(limits[0], dict) else {}
    denied = {tool: "deny" for group, tools in _GROUPS.items() if group not in groups for tool in tools}
    pattern = groups.get("edit", {}).get("fileRegex")
    limit = f"Edit only files that match the regular expression {pattern}." if pattern else ""
    permission: dict[str, Any] = denied | ({"edit": "ask"} if pattern else {})  # wolo has no such rules
    about = text("description", "whenToUse", "roleDefinition").partition("\n")[0]
    own = f".roo/rules-{text('slug')}"
    has_rules = text("slug").replace("-", "").isalnum() and (folder / own).is_dir()
    rules = f"Before you begin, read the files in {folder / own}: the rules of this mode." if has_rules else ""
    prompt = "\n\n".join(filter(None, (text("roleDefinition"), text("customInstructions"), rules, limit)))
    return Document({"name": text("slug", "name"), "description": about, "permission": permission}, prompt, name)
