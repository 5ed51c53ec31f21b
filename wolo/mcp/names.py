"""What a server's tool is called: `mcp__SERVER__TOOL` for models, `SERVER/TOOL` in rules; no two tools ever share a name."""

from __future__ import annotations

import hashlib
import re

BEGINNING = "mcp__"
LONGEST = 64
"""What servers of models take."""
_MARK_LENGTH = 8


def offered_name(server: str, tool: str) -> str:
    """Depends on nothing but the two names, so that it stays the same whoever else is there."""
    name = f"{BEGINNING}{server}__{tool}"
    is_clear = "__" not in server and not server.endswith("_") and tool
    if is_clear and len(name) <= LONGEST and re.fullmatch(r"[A-Za-z0-9_-]+", name):
        return name
    return _marked(name, r"[^A-Za-z0-9_-]+", f"{server}\0{tool}")


def rule_name(server: str, tool: str) -> str:
    """As a rule names it, after `mcp:`. A tool's name is whatever its server says: it must not read as another server's."""
    if re.fullmatch(r"[A-Za-z0-9_.-]+", tool):
        return f"{server}/{tool}"
    return f"{server}/{_marked(tool, r'[^A-Za-z0-9_.-]+', tool)}"


def _marked(name: str, illegal: str, whole: str) -> str:
    """Shortened, and by a mark that only this name has still unlike every other."""
    mark = hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()[:_MARK_LENGTH]
    return f"{re.sub(illegal, '_', name)[: LONGEST - _MARK_LENGTH - 1]}_{mark}"
