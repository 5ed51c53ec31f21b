"""Files that are offered behind an `@`, and images that are dropped."""

from __future__ import annotations

from pathlib import Path

import pytest
from prompt_toolkit.document import Document

from wolo.conversation.prompt_attachments import compose
from wolo.frontends.terminal.composer.completion import FileNames, mention, offers_completions, ranked
from wolo.frontends.terminal.composer.pastes import as_mentions

PNG = b"\x89PNG\r\n\x1a\n"


def test_the_likeliest_name_comes_first() -> None:
    names = ["docs/main.md", "src/main.py", "src/deep/remain.txt", "main.py", "m/a/i/n"]
    assert ranked("main", names) == ["main.py", "src/main.py", "docs/main.md", "src/deep/remain.txt", "m/a/i/n"]
    assert ranked("smp", names) == ["src/main.py"]
    assert ranked("nothing", names) == []


@pytest.mark.parametrize("name", ["plain.py", "two words.py", 'a"b.py', "back\\slash.py", "a@b.py", "log:2-3", "ünï.py"])
def test_what_is_offered_is_what_is_attached(name: str) -> None:
    Path(name).write_text("inside\n")
    assert "inside" in compose(f"see {mention(name)} now", cwd=Path.cwd()).text


def test_files_and_folders_as_git_sees_them() -> None:
    Path(".git").mkdir()
    Path(".gitignore").write_text("build\n")
    for name in ("src/a.py", "build/b.py"):
        Path(name).parent.mkdir()
        Path(name).touch()
    assert set(FileNames().below(Path.cwd())) == {".gitignore", "src/a.py", "src/"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [("@", True), ("see @src", True), ("/he", True), ("me@example", False), ("a /b", False), ("@a done", False)],
)
def test_when_something_is_offered(text: str, expected: bool) -> None:
    assert offers_completions(Document(text)) is expected


def test_only_images_become_attachments() -> None:
    for name in ("a.png", "b c.png"):
        Path(name).write_bytes(PNG)
    Path("notes.txt").write_text("text")
    cwd = Path.cwd()
    assert as_mentions("a.png", cwd) == "@a.png "
    assert as_mentions("a.png b\\ c.png", cwd) == '@a.png @"b c.png" '
    assert as_mentions(f"'{cwd}/b c.png'\n{cwd}/a.png", cwd) == '@"b c.png" @a.png '
    for text in ("notes.txt", "a.png is nice", "missing.png", "", "~nobody/a.png", "file://[", "a\0b", "'", "/" * 5000):
        assert as_mentions(text, cwd) == ""
