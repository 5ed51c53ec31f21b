"""Which lines are notes, and where they go."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from wolo.errors import UsageError
from wolo.frontends.terminal.repl.notes import is_note, keep, place
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
    keep("# first", path)
    keep("#second", path)
    assert path.read_text() == "- first\n- second\n"


def test_a_link_is_not_written_through() -> None:
    Path("target").write_text("mine\n")
    Path("AGENTS.md").symlink_to("target")
    with pytest.raises(UsageError, match=r"AGENTS\.md could not be written: It is a link\."):
        keep("# note", Path("AGENTS.md"))
    assert Path("target").read_text() == "mine\n"


def test_what_is_no_file_is_not_written_to() -> None:
    os.mkfifo("AGENTS.md")
    with pytest.raises(UsageError, match=r"It is no regular file\."):
        keep("# note", Path("AGENTS.md"))


def test_where_a_note_goes() -> None:
    assert place("p", Path("/project")) == Path("/project/AGENTS.md")
    assert place(" Y ", Path("/project")) == find_places().config / "AGENTS.md"
    assert place("", Path("/project")) is None
