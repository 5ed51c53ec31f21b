"""The agents whose sessions can be looked for on this machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from wolo.sessions.exchange.importers import claude_code, codex, kimi, opencode, pi, vibe
from wolo.sessions.exchange.importers.discovery import Found

Finds = Callable[[Path, Mapping[str, str]], list[Found]]
"""The sessions of a directory, newest first; the environment says where the agent keeps them."""

AGENTS: Mapping[str, Finds] = {
    "claude-code": claude_code.finds,
    "codex": codex.finds,
    "opencode": opencode.finds,
    "kimi": kimi.finds,
    "pi": pi.finds,
    "vibe": vibe.finds,
}
"""By the name of what they write, as `recognise.SHAPES` has it."""
