"""Submitted lines that are notes, and where they are sent."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from wolo.errors import UsageError
from wolo.frontends.terminal.repl.submissions import append_note, is_note, note_path
from wolo.places import find_places


@pytest.mark.parametrize("line", ["#always use tabs", "# remember this", "## so too", "#ü"])
def test_notes(line: str) -> None:
    assert is_note(line)


@pytest.mark.parametrize(
    "line", ["#", "##", "# ", "#12 is broken", "##3", "#!/bin/sh\nexit", "# A title\n\nand text", "no # note", ""]
)
def test_prompts(line: str) -> None:
    assert not is_note(line)


def test_a_note_is_an_item_at_the_end() -> None:
    path = Path("AGENTS.md")
    append_note("# first", path)
    append_note("#second", path)
    assert path.read_text() == "- first\n- second\n"


def test_a_link_is_not_written_through() -> None:
    Path("target").write_text("mine\n")
    Path("AGENTS.md").symlink_to("target")
    with pytest.raises(UsageError, match=r"Cannot write AGENTS\.md: it is a symbolic link\."):
        append_note("# note", Path("AGENTS.md"))
    assert Path("target").read_text() == "mine\n"


def test_special_file_is_not_written() -> None:
    os.mkfifo("AGENTS.md")
    with pytest.raises(UsageError, match=r"not a regular file\."):
        append_note("# note", Path("AGENTS.md"))


def test_note_goes_to_its_place() -> None:
    assert note_path("p", Path("/project")) == Path("/project/AGENTS.md")
    assert note_path(" Y ", Path("/project")) == find_places().config / "AGENTS.md"
    assert note_path("", Path("/project")) is None
