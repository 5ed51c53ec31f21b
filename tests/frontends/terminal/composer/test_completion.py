"""Files that are offered behind an `@`, and images that are dropped."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from prompt_toolkit.document import Document

from wolo.conversation.prompt_attachments import compose
from wolo.frontends.file_names import FileNames, NameIndex
from wolo.frontends.terminal.composer.completion import mention, offers_completions
from wolo.frontends.terminal.composer.pastes import as_mentions

PNG = b"\x89PNG\r\n\x1a\n"


def test_the_likeliest_name_comes_first() -> None:
    names = ["docs/main.md", "src/main.py", "src/deep/remain.txt", "main.py", "m/a/i/n"]
    index = NameIndex(names)
    assert index.best("main") == ["main.py", "src/main.py", "docs/main.md", "src/deep/remain.txt", "m/a/i/n"]
    assert index.best("smp") == ["src/main.py"]
    assert index.best("nothing") == []


def test_typing_and_deleting_match_a_new_index() -> None:
    names = [f"{folder}/{name}-[x].py" for folder in ("src", "Docs", "tests") for name in ("main", "Straße", "^caret", "a\nb")]
    index = NameIndex(names)
    for typed in ("s", "sr", "src", "sr", "srcM", "d", "do", "", "STRASSE", "straß", "^", "^c", "-[", "-[x]", "\n", "."):
        assert index.best(typed) == NameIndex(names).best(typed)


def test_added_letters_search_only_the_last_matches() -> None:
    index = NameIndex([*(f"other{n}" for n in range(1_000)), "main.py", "remain.txt"])
    counts = []
    for typed in ("ma", "mai"):
        calls: list[str] = []
        sys.setprofile(lambda frame, event, called, calls=calls: calls.append(called.__name__) if event == "c_call" else None)
        index.best(typed)
        sys.setprofile(None)
        counts.append(calls.count("match"))
    assert counts == [1_002, 2]


def test_repeated_letters_do_not_backtrack() -> None:
    assert NameIndex(["a" * 10_000]).best("a" * 40 + "b") == []


@pytest.mark.parametrize("name", ["plain.py", "two words.py", 'a"b.py', "back\\slash.py", "a@b.py", "log:2-3", "ünï.py"])
def test_every_offer_is_attachable(name: str) -> None:
    Path(name).write_text("inside\n")
    assert "inside" in compose(f"see {mention(name)} now", cwd=Path.cwd(), origin="keyboard").text


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
