"""The default system prompt."""

from __future__ import annotations

import re
from pathlib import Path

NAME = "Wolo"


def default_prompt() -> str:
    return Path(__file__).with_suffix(".md").read_text(encoding="utf-8").strip()


def with_display_name(text: str, display_name: str) -> str:
    """Replace the word "Wolo" by the display name."""
    return re.sub(rf"\b{NAME}\b", lambda _: display_name, text)
