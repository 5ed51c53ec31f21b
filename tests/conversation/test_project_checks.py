"""The finish check of a conversation: who is asked, and which commands it names."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.provider_server import KEY, ProviderServer
from wolo.conversation.factory import open_conversation
from wolo.conversation.project_checks import MOST_CHARS, find_checks
from wolo.conversation.resources.startup import StartOptions


@pytest.mark.parametrize(("drive", "asks"), [("native", True), ("written", True), ("constrained", False), ("simple", False)])
async def test_driven_model_is_not_asked(provider: ProviderServer, drive: str, asks: bool) -> None:
    given: dict[str, Any] = {"base_url": provider.base_url, "api_key": KEY, "model": "custom/m", "no_session": True}
    conversation = await open_conversation(StartOptions(flags={**given, "drive": drive}, attended=False))
    try:
        finish = conversation.agent.services.finish
        assert finish is not None
        assert (finish().asks, finish().shows) == (asks, True)
    finally:
        await conversation.close()


@pytest.mark.parametrize(
    ("files", "checks"),
    [
        ({"Makefile": "build: x\n\tcc\ntest:\n\tx\nCHECK := 1\n"}, ("make test", "make build")),
        ({"AGENTS.md": "`make lint` and `git status`, `python3 -m pytest -q`\n"}, ("make lint", "python3 -m pytest -q")),
        ({"CLAUDE.md": "```\n$ make test  # all\n```\n"}, ("make test",)),
        ({"AGENTS.md": f"`make test {'x' * MOST_CHARS}`\n"}, ()),
        ({"AGENTS.md": "`make test && rm -r x`, `make test > x`, `make test $(x)`\n"}, ()),
        ({"AGENTS.md": "`no-such-runner test`, `bin/pytest`\n"}, ()),
        ({"pyproject.toml": "[tool.pytest\n"}, ()),
        ({"package.json": "[1]"}, ()),
        ({"package.json": "[" * 100_000}, ()),
    ],
    ids=["targets", "spans", "block", "too long", "shell syntax", "no such program", "broken toml", "no table", "deep"],
)
def test_projects_files_name_its_checks(tmp_path: Path, files: dict[str, str], checks: tuple[str, ...]) -> None:
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    assert find_checks(tmp_path) == checks


def test_pipes_and_links_of_projects_are_skipped(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "Makefile")
    secret = tmp_path.parent / "secret"
    secret.write_text("`make test`\n")
    (tmp_path / "AGENTS.md").symlink_to(secret)
    assert find_checks(tmp_path) == ()
