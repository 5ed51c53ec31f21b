"""Whoever hands a prompt on says where it is from, or mypy complains."""

from __future__ import annotations

from pathlib import Path

import pytest


def test_no_prompt_is_made_without_its_origin(tmp_path: Path) -> None:
    code = (
        "from wolo.conversation.conversation import Conversation\n"
        "from wolo.conversation.prompt_attachments import compose, write_prompt\n"
        "from wolo.messages.message import UserPrompt, user\n"
        "def f(c: Conversation) -> None:\n"
        "    c.prompt(user('x'))\n"
        "    c.steer(user('x'))\n"
        "    UserPrompt(parts=())\n"
        "    write_prompt('x', c, notify=print)\n"
    )
    (tmp_path / "forgot.py").write_text(code)
    mypy = pytest.importorskip("mypy.api")
    root = Path(__file__).parents[2]
    found, _, _ = mypy.run(
        ["--config-file", str(root / "pyproject.toml"), "--cache-dir", str(root / ".mypy_cache"), str(tmp_path / "forgot.py")]
    )
    assert [line.split(":")[1] for line in found.splitlines() if ": error:" in line] == ["5", "6", "7", "8"], found
