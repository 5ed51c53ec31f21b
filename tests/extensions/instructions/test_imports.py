"""`@path` imports and rules: what they add, and what they never reach."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from wolo.extensions.instructions.file_reading import MAX_BYTES
from wolo.extensions.instructions.imports import imports_of
from wolo.extensions.instructions.instruction_files import Instructions, byte_limit, read_instructions
from wolo.extensions.instructions.nested_files import NestedFiles
from wolo.places import Notices, find_home


@pytest.fixture
def root() -> Path:
    return Path.cwd()


@pytest.fixture
def config(isolated: Path) -> Path:
    folder = isolated / "wolo" / "config"
    folder.mkdir(parents=True)
    return folder


def put(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def read(root: Path, config: Path, is_readable: Callable[[Path], bool] = lambda path: True, limit: int = 9_999) -> Instructions:
    return read_instructions(root, root, config, is_readable=is_readable, limit=limit)


@pytest.mark.parametrize(
    ("text", "targets"),
    [
        ("See @docs/a.md, and (@b.txt).", ["docs/a.md", "b.txt"]),
        ("@./a.md\n- @../b.md\n@~/c.md", ["./a.md", "../b.md", "~/c.md"]),
        ("mail me@example.org about `@a.md` and ``a ` @b.md``", []),
        ("```\n@a.md\n```\n@b.md\n~~~~ md\n@c.md\n```\n@d.md\n~~~~\n", ["b.md"]),
        ("```\n@a.md", []),
        ("<!-- @a.md\n\n@b.md --> @c.md", ["c.md"]),
        ("an ` alone\n\n@a.md\n\nand another `", ["a.md"]),
        (r"@my\ notes.md", ["my notes.md"]),
        ("@a.md @a.md", ["a.md"]),
    ],
)
def test_only_prose_imports(text: str, targets: list[str]) -> None:
    assert imports_of(text) == targets


def test_imports_follow_their_file_relatively_and_once(root: Path, config: Path) -> None:
    put(root / "AGENTS.md", "top @docs/a.md end")
    put(root / "docs/a.md", "a @b.md @../AGENTS.md")
    put(root / "docs/b.md", "b @a.md")
    found = read(root, config)
    assert found.text == (
        "# Instructions from AGENTS.md\n\ntop @docs/a.md end\n\n"
        "# Instructions from docs/a.md (imported by AGENTS.md)\n\na @b.md @../AGENTS.md\n\n"
        "# Instructions from docs/b.md (imported by docs/a.md)\n\nb @a.md"
    )
    assert found.notices == ()


def test_five_levels_are_followed(root: Path, config: Path) -> None:
    put(root / "AGENTS.md", "@1.md")
    for level in range(1, 9):
        put(root / f"{level}.md", f"level {level} @{level + 1}.md")
    found = read(root, config)
    assert [path.name for path in found.files] == ["AGENTS.md", *(f"{level}.md" for level in range(1, 6))]
    assert found.notices == (f"{root / '5.md'}: @6.md is not imported: more than 5 levels.",)


def test_a_project_imports_from_its_workspace_only(root: Path, config: Path, isolated: Path) -> None:
    put(isolated / "outside.md", "OUTSIDE")
    put(find_home() / "mine.md", "MINE")
    (root / "link.md").symlink_to(isolated / "outside.md")
    (root / "folder").symlink_to(isolated)
    put(root / ".env", "TOKEN=1")
    put(root / "hidden.md", "HIDDEN")
    (root / "binary.md").write_bytes(b"a\0b")
    os.mkfifo(root / "pipe.md")
    put(
        root / "AGENTS.md",
        f"@../outside.md @{isolated}/outside.md @~/mine.md @link.md @folder/outside.md @.env @hidden.md @binary.md"
        " @pipe.md @gone.md @someone @scope/package",
    )
    found = read(root, config, lambda path: path.name != "hidden.md")
    assert found.files == (root / "AGENTS.md",)
    assert len(found.notices) == 10
    for why in ("inside", "it is a link", "secrets", "a rule denies", "not text", "not a regular file", "does not exist"):
        assert any(why in notice for notice in found.notices), why


def test_denied_file_is_not_read(root: Path, config: Path) -> None:
    put(root / "AGENTS.md", "denied")
    put(root / "CLAUDE.local.md", "local")
    put(root / "sub/AGENTS.md", "nested")
    found = read(root, config, lambda path: path.name != "AGENTS.md")
    assert found.files == (root / "CLAUDE.local.md",)
    assert found.notices == (f"{root / 'AGENTS.md'} is not read: a rule denies it.",)
    assert NestedFiles((root,), root, lambda path: False, 9_999).for_files([root / "sub/x.py"], Notices()) == []


def test_the_users_own_file_imports_from_anywhere(root: Path, config: Path, isolated: Path) -> None:
    put(find_home() / "mine.md", "MINE")
    put(isolated / "other.md", "OTHER")
    put(config / "AGENTS.md", f"@~/mine.md @{isolated}/other.md")
    found = read(root, config)
    assert [path.name for path in found.files] == ["AGENTS.md", "mine.md", "other.md"]


def test_each_directory_gives_its_first_file_and_additions(root: Path, config: Path) -> None:
    names = ["GEMINI.md", ".claude/CLAUDE.md", "CLAUDE.md", "AGENTS.md", "AGENTS.override.md"]
    for name in names:
        put(root / name, name)
        assert read(root, config).files == (root / name,)
    put(root / "CLAUDE.local.md", "local")
    put(root / ".claude/rules/b.md", "b")
    put(root / ".claude/rules/a/deep.md", "deep")
    put(root / ".claude/rules/typed.md", '---\npaths: "src/**/*.{ts,tsx}"\n---\ntyped')
    put(root / ".claude/rules/bad.md", "---\npaths: [\n---\nbad")
    found = read(root, config)
    assert [path.relative_to(root).as_posix() for path in found.files] == [
        *("AGENTS.override.md", "CLAUDE.local.md", ".claude/rules/a/deep.md", ".claude/rules/b.md")
    ]
    assert len(found.notices) == 1
    assert "bad.md" in found.notices[0]


def test_foreign_agent_files_serve_users_without_own_ones(root: Path, config: Path) -> None:
    put(find_home() / ".codex/AGENTS.md", "codex")
    assert read(root, config).text == "# Instructions from your own ~/.codex/AGENTS.md\n\ncodex"
    put(find_home() / ".claude/CLAUDE.md", "claude")
    assert read(root, config).text == "# Instructions from your own ~/.claude/CLAUDE.md\n\nclaude"
    put(config / "AGENTS.md", "own")
    assert read(root, config).text == "# Instructions from your own AGENTS.md\n\nown"


def test_other_encodings_are_read_and_named(root: Path, config: Path) -> None:
    for encoding, label in (("utf-16", "UTF-16 LE"), ("latin-1", "Latin-1")):
        (root / "AGENTS.md").write_bytes("Grüße\r\nan alle".encode(encoding))
        found = read(root, config)
        assert found.text.endswith("\n\nGrüße\nan alle")
        assert found.notices == (f"{root / 'AGENTS.md'} is not UTF-8; it is read as {label}.",)
    (root / "AGENTS.md").write_text("x" + "ü" * MAX_BYTES)
    assert read(root, config, limit=99_999).text.endswith("x" + "ü" * (MAX_BYTES // 2 - 1))


def test_notes_import_nothing(root: Path, config: Path) -> None:
    note = put(config / "memory/notes.md", "- See @other.md")
    put(config / "memory/other.md", "other")
    assert read_instructions(root, root, config, notes=[note]).files == (note,)


def test_excess_is_cut_from_the_most_general_onwards(root: Path, config: Path) -> None:
    put(config / "AGENTS.md", "own\n" * 500)
    put(root / "AGENTS.md", "near\n" * 200)
    found = read(root, config, limit=1_600)
    assert found.text.count("near") == 200
    assert 100 < found.text.count("own\n") < 200
    assert "is cut at" in found.notices[0]
    assert "left out" in read(root, config, limit=1_100).notices[0]
    assert byte_limit(4_096) == 4_096


def test_touched_file_brings_folders_and_matching_rules(root: Path) -> None:
    for name in ("AGENTS.md", "pkg/CLAUDE.md", "pkg/deep/AGENTS.md", "other/AGENTS.md"):
        put(root / name, name)
    put(root / "pkg/deep/AGENTS.md", "deep @more.md")
    put(root / "pkg/deep/more.md", "more")
    put(root / ".claude/rules/ts.md", '---\npaths:\n  - "pkg/**/*.ts"\n---\nfor ts')
    nested = NestedFiles((root,), root, lambda path: True, 9_999)
    notices = Notices()
    names = [each.name for each in nested.for_files([root / "pkg/deep/x.ts"], notices)]
    assert names == [".claude/rules/ts.md", "pkg/CLAUDE.md", "pkg/deep/AGENTS.md", "pkg/deep/more.md"]
    assert [each.name for each in nested.for_files([root / "pkg/x.py"], notices)] == ["pkg/CLAUDE.md"]
    put(root / "AGENTS.md", "long\n" * 9_999)
    assert nested.for_files([root / "x.py", Path("/etc/passwd")], notices) == []
    assert list(notices) == []  # the start told of the root


def test_a_folder_that_gets_instructions_later_is_read(root: Path) -> None:
    (root / "pkg").mkdir()
    os.utime(root / "pkg", (0, 0))
    nested = NestedFiles((root,), root, lambda path: True, 9_999)
    assert nested.for_files([root / "pkg/x.py"], Notices()) == []
    put(root / "pkg/AGENTS.md", "late")
    assert [each.text for each in nested.for_files([root / "pkg/x.py"], Notices())] == ["late"]
    put(root / "pkg/AGENTS.md", "later")
    assert [each.text for each in nested.for_files([root / "pkg/x.py"], Notices())] == ["later"]
