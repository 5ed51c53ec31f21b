"""Skills and commands as people write them."""

from __future__ import annotations

from pathlib import Path


def skill(shelf: Path, name: str, description: str = "Reads PDF files.", body: str = "Run fill.py.", more: str = "") -> Path:
    """Its SKILL.md; `more` are further lines above the text."""
    path = shelf / name / "SKILL.md"
    path.parent.mkdir(parents=True)
    path.write_text(f"---\nname: {name}\ndescription: {description}\n{more}---\n\n{body}\n")
    return path


def command(shelf: Path, name: str, text: str) -> Path:
    path = shelf / f"{name}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path
