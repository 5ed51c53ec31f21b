"""AGENTS.md files: which are read, in which order, and what never gets in."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from wolo.extensions.instructions.file_reading import MAX_BYTES
from wolo.extensions.instructions.instruction_files import Instructions, read_instructions


@pytest.fixture
def root() -> Path:
    return Path.cwd()


@pytest.fixture
def config(isolated: Path) -> Path:
    folder = isolated / "wolo" / "config"
    folder.mkdir(parents=True)
    return folder


def found(root: Path, config: Path, cwd: Path | None = None) -> Instructions:
    return read_instructions(root, cwd or root, config)


def test_user_instructions_come_first_and_nearest_last(root: Path, config: Path) -> None:
    deep = root / "pkg" / "deep"
    deep.mkdir(parents=True)
    (root / "other").mkdir()
    for folder, text in ((config, "own"), (root, "top"), (root / "pkg", "package"), (deep, "deep"), (root / "other", "other")):
        (folder / "AGENTS.md").write_text(text)
    read = found(root, config, root / "pkg")
    assert read.text == (
        "# Instructions from your own AGENTS.md\n\nown\n\n"
        "# Instructions from AGENTS.md\n\ntop\n\n"
        "# Instructions from pkg/AGENTS.md\n\npackage"
    )
    assert read.files == (config / "AGENTS.md", root / "AGENTS.md", root / "pkg" / "AGENTS.md")
    assert read.notices == ()


def test_without_files_there_is_nothing(root: Path, config: Path) -> None:
    assert found(root, config) == Instructions("")
    assert found(root, config / "missing") == Instructions("")


def test_claude_md_serves_without_agents_md(root: Path, config: Path) -> None:
    (root / "CLAUDE.md").write_text("claude")
    assert found(root, config).text.endswith("claude")
    (root / "AGENTS.md").write_text("agents")
    assert found(root, config).files == (root / "AGENTS.md",)
    (root / "AGENTS.md").write_text(" \n")
    assert found(root, config).files == (root / "CLAUDE.md",)


def test_link_out_of_the_project_is_not_followed(root: Path, config: Path, isolated: Path) -> None:
    key = isolated / "id_rsa"
    key.write_text("PRIVATE KEY")
    (root / "AGENTS.md").symlink_to(key)
    read = found(root, config)
    assert read.text == ""
    assert read.notices == (f"{root / 'AGENTS.md'} is not read: it is a link to a file outside {root}.",)
    (isolated / "plain.md").write_text("outside")
    (root / "AGENTS.md").unlink()
    (root / "AGENTS.md").symlink_to(isolated / "plain.md")
    assert (found(root, config).text, len(found(root, config).notices)) == ("", 1)
    (root / ".env").write_text("TOKEN=1")
    (root / "AGENTS.md").unlink()
    (root / "AGENTS.md").symlink_to(".env")
    assert found(root, config).notices == (
        f"{root / 'AGENTS.md'} is not read: it is a link to a file whose name says that it contains secrets.",
    )


def test_link_inside_the_project_is_followed_once(root: Path, config: Path) -> None:
    (root / "CLAUDE.md").write_text("both")
    (root / "AGENTS.md").symlink_to("CLAUDE.md")
    read = found(root, config)
    assert (read.text, read.notices) == ("# Instructions from AGENTS.md\n\nboth", ())
    assert read.remarks == ()


def test_the_users_own_file_may_be_a_link(root: Path, config: Path, isolated: Path) -> None:
    (isolated / "dotfile.md").write_text("mine")
    (config / "AGENTS.md").symlink_to(isolated / "dotfile.md")
    assert found(root, config).text.endswith("mine")


def test_user_file_must_belong_to_the_user(root: Path, config: Path) -> None:
    own = config / "AGENTS.md"
    own.write_text("sneaked in")
    own.chmod(0o666)
    (root / "AGENTS.md").write_text("project")
    (root / "AGENTS.md").chmod(0o666)
    read = found(root, config)
    assert read.text == "# Instructions from AGENTS.md\n\nproject"
    assert read.notices == (f"{own} is not read: every user of this machine can write it.",)
    if os.geteuid() == 0:
        own.chmod(0o644)
        os.chown(own, 12345, 12345)
        assert found(root, config).notices == (f"{own} is not read: it belongs to another user.",)


def test_only_plain_files_are_read(root: Path, config: Path) -> None:
    (root / "AGENTS.md").mkdir()
    os.mkfifo(root / "CLAUDE.md")
    read = found(root, config)
    assert read.text == ""
    assert len(read.notices) == 2
    (root / "AGENTS.md").rmdir()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("AGENTS.md")
        assert found(root, config).text == ""


def test_directories_above_the_root_do_not_count(root: Path, config: Path) -> None:
    (root.parent / "AGENTS.md").write_text("above")
    assert found(root, config).text == ""
    (root / "sub").mkdir()
    (root / "AGENTS.md").write_text("top")
    assert found(root / "sub", config).text == ""


def test_a_working_directory_elsewhere_brings_its_own(root: Path, config: Path, isolated: Path) -> None:
    elsewhere = isolated / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "AGENTS.md").write_text("there")
    assert found(root, config, elsewhere).text == f"# Instructions from {elsewhere}/AGENTS.md\n\nthere"


def test_long_file_is_cut_at_a_line_visibly(root: Path, config: Path) -> None:
    (root / "AGENTS.md").write_text("é" * 30 + "\n" + "line of text\n" * 4000)
    read = found(root, config)
    assert len(read.text.encode()) <= MAX_BYTES + 100
    assert read.text.endswith("line of text")
    assert "longer than 32 KiB" in read.notices[0]
    (root / "AGENTS.md").write_text("x" * (MAX_BYTES + 10))
    assert found(root, config).text.count("x") == MAX_BYTES


def test_invalid_bytes_are_replaced(root: Path, config: Path) -> None:
    (root / "AGENTS.md").write_bytes(b"\xef\xbb\xbfa \xff b\r\nc")
    assert found(root, config).text.endswith("a \ufffd b\nc")


HIDDEN = "\u200b\u200e\u202e\u2066\u2060\ufeff\x1b\x00\x7f\x9b\u00ad\u3164\u2028\U000e0041"


@pytest.mark.parametrize("letter", HIDDEN)
def test_invisible_characters_are_spelled_out(root: Path, config: Path, letter: str) -> None:
    (root / "AGENTS.md").write_text(f"before{letter}after", encoding="utf-8")
    read = found(root, config)
    escape = f"\\x{ord(letter):02x}" if ord(letter) < 0xA0 else f"\\u{{{ord(letter):x}}}"
    assert read.text.endswith(f"before{escape}after")
    assert "invisible characters" in read.notices[0]


def test_joined_emoji_and_scripts_stay_as_they_are(root: Path, config: Path) -> None:
    text = "👩\u200d💻 می\u200cخواهم ✔️ größer\tok"
    (root / "AGENTS.md").write_text(text, encoding="utf-8")
    read = found(root, config)
    assert (read.text, read.notices) == (f"# Instructions from AGENTS.md\n\n{text}", ())


def test_the_same_files_give_the_same_bytes(root: Path, config: Path) -> None:
    (root / "AGENTS.md").write_text("a\r\nb \n\n")
    first = found(root, config)
    os.utime(root / "AGENTS.md", (1, 1))
    assert found(root, config) == first
