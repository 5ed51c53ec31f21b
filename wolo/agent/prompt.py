"""The system prompt: our prose, the few facts that hold for the whole session, and the user's instructions.

Nothing in it may change while a session lives (no clock, no git status, no listing): providers cache what stays the same.
"""

from __future__ import annotations

import os
from pathlib import Path

from wolo.formats.default_prompt import NAME, default_prompt, renamed


def build_system_prompt(
    cwd: Path,
    *,
    instructions: str = "",
    skills: str = "",
    display_name: str = NAME,
    replacement: str | None = None,
    appendix: str = "",
) -> str:
    """`replacement` stands in for our prose; facts, instructions, `skills` (a list) and the appendix follow it all the same."""
    prose = renamed(default_prompt() if replacement is None else replacement.strip(), display_name)
    return "\n\n".join(part for part in (prose, _facts(cwd), instructions.strip(), _about(skills), appendix.strip()) if part)


def _facts(cwd: Path) -> str:
    system = os.uname()
    place = "".join(letter if letter.isprintable() or _is_blank(letter) else "\ufffd" for letter in str(cwd))
    return f"# Here\n\nWorking directory: {place}\nSystem: {system.sysname} {system.machine}"


def _is_blank(letter: str) -> bool:
    """Space within a line. The name of a directory may hold line breaks: it must not be able to say anything else here."""
    return letter.isspace() and letter.splitlines() == [letter]


def _about(skills: str) -> str:
    if not skills:
        return ""
    prose = (Path(__file__).parent / "prompts" / "skills.md").read_text(encoding="utf-8").strip()
    return f"{prose}\n\n{skills}"
