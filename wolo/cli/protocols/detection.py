"""Recognises command lines of programs that were written for another agent."""

from __future__ import annotations

import os
from itertools import pairwise

CLAUDE = "claude-stream-json"
CLAUDE_MARK = "CLAUDE_AGENT_SDK_VERSION"
"""Variable that Claude Code's SDKs set for the program they start."""


def speaks_claude(argv: list[str]) -> bool:
    """Claude Code's protocol is chosen by its name, or by stream-json on both sides with a mark of the SDKs."""
    pairs = [(word.partition("=")[0], word.partition("=")[2] if "=" in word else value) for word, value in pairwise((*argv, ""))]
    options = dict(pairs)
    forms = (options.get("--output-format"), options.get("--input-format"))
    if CLAUDE in forms:
        return True
    if forms != ("stream-json", "stream-json"):
        return False
    return options.get("--permission-prompt-tool") == "stdio" or "--sdk-url" in options or CLAUDE_MARK in os.environ
