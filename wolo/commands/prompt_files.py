"""The prompts that commands write for a person; they are shown and sent as any other."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent / "prompts"


def prompt(name: str, wish: str = "", **filled: str) -> str:
    """`wish` is what the person added, in their own words."""
    text = (FOLDER / f"{name}.md").read_text(encoding="utf-8").strip()
    for gap, words in filled.items():
        text = text.replace(f"{{{gap}}}", words)
    return f"{text}\n\n{wish}" if wish else text
