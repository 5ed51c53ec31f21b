"""The walk sees what git sees, follows no link, and ends."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.clock import processor_time_below
from tests.tools.programs import find_ripgrep, needs_ripgrep
from wolo.workspace.walk import WalkLimits, WalkStopped, walk


def put(root: Path, *paths: str) -> None:
    for path in paths:
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("x")


def seen(start: Path, top: Path | None = None) -> list[str]:
    return list(walk(start, WalkLimits(), top=top))


def test_files_are_sorted_by_part_without_git(tmp_path: Path) -> None:
    put(tmp_path, "b.txt", "a/z.txt", "a/b/c.txt", "a-b/x", ".github/ci.yml", ".git/config", "sub/.git")
    assert seen(tmp_path) == [".github/ci.yml", "a/b/c.txt", "a/z.txt", "a-b/x", "b.txt"]


def test_nearest_ignore_file_wins_at_every_level(tmp_path: Path) -> None:
    put(tmp_path, "a.log", "keep.log", "build/x", "src/a.log", "src/build/y", "src/deep/a.log", "src/only.txt")
    (tmp_path / ".gitignore").write_text("*.log\n!keep.log\n/build\n")
    (tmp_path / "src/.gitignore").write_text("!a.log\nonly.txt\n")
    (tmp_path / "src/deep/.gitignore").write_text("a.*\n")
    assert seen(tmp_path) == [
        *(".gitignore", "keep.log", "src/.gitignore", "src/a.log", "src/build/y", "src/deep/.gitignore"),
    ]


def test_lower_start_obeys_the_ignore_files_above(tmp_path: Path) -> None:
    put(tmp_path, "src/a.log", "src/gen/x.py", "src/ok.py")
    (tmp_path / ".gitignore").write_text("*.log\nsrc/gen\n")
    assert seen(tmp_path / "src", tmp_path) == ["ok.py"]


def test_ignored_start_is_walked_anyway(tmp_path: Path) -> None:
    put(tmp_path, "node_modules/pkg/index.js", "node_modules/pkg/a.log")
    (tmp_path / ".gitignore").write_text("node_modules/\n*.log\n")
    assert seen(tmp_path) == [".gitignore"]
    assert seen(tmp_path / "node_modules/pkg", tmp_path) == ["a.log", "index.js"]


def test_a_repository_within_starts_with_a_clean_slate(tmp_path: Path) -> None:
    put(tmp_path, "inner/a.log", "inner/.git/HEAD", "outer.log")
    (tmp_path / ".gitignore").write_text("*.log\n")
    assert seen(tmp_path) == [".gitignore", "inner/a.log"]
    assert seen(tmp_path / "inner", tmp_path) == ["a.log"]


def test_unfollowed_links_show_nothing_outside_and_end_loops(tmp_path: Path) -> None:
    inside, outside = tmp_path / "in", tmp_path / "out"
    put(inside, "a.txt")
    put(outside, "secret.txt")
    (inside / "loop").symlink_to(inside)
    (inside / "away").symlink_to(outside)
    (inside / "file").symlink_to(outside / "secret.txt")
    assert seen(inside) == ["a.txt"]


def test_only_regular_files_count_and_ignore(tmp_path: Path) -> None:
    put(tmp_path, "a.txt", "other/list")
    (tmp_path / "other/list").write_text("*.txt\n")
    os.mkfifo(tmp_path / "pipe")
    os.mkfifo(tmp_path / "other/.gitignore")
    (tmp_path / ".gitignore").symlink_to(tmp_path / "other/list")
    assert seen(tmp_path) == ["a.txt", "other/list"]


def test_a_thousand_nested_folders_are_walked(tmp_path: Path) -> None:
    handle = os.open(tmp_path, os.O_RDONLY)
    for _ in range(1200):
        os.mkdir("d", dir_fd=handle)
        below = os.open("d", os.O_RDONLY, dir_fd=handle)
        os.close(handle)
        handle = below
    os.close(handle)
    bounds = WalkLimits()
    assert list(walk(tmp_path, bounds)) == []
    subprocess.run(["rm", "-rf", str(tmp_path / "d")], check=True)


def test_walk_stops_at_its_bounds_visibly(tmp_path: Path) -> None:
    put(tmp_path, *(f"f{number:04}" for number in range(1000)))
    with pytest.raises(WalkStopped, match="after 500 files"):
        list(walk(tmp_path, WalkLimits(max_entries=500)))
    with pytest.raises(WalkStopped, match="after 0 s"):
        list(walk(tmp_path, WalkLimits(max_s=0)))
    cancelled = WalkLimits()
    cancelled.cancel()
    with pytest.raises(WalkStopped, match="on request"):
        list(walk(tmp_path, cancelled))


@pytest.mark.parametrize(
    "content",
    [
        "".join(f"build-{number}/*.o\n" for number in range(15_000)),
        "".join(f"**/x{number}/**/y*{number}*/**\n" for number in range(8_000)),
        "!*\n*.o\n" * 15_000,
    ],
    ids=["names", "stars", "turns"],
)
def test_large_ignore_file_respects_the_bounds(tmp_path: Path, content: str) -> None:
    put(tmp_path, *(f"a/b/file{number}.c" for number in range(600)))
    (tmp_path / ".gitignore").write_text(content)
    with processor_time_below(4), contextlib.suppress(WalkStopped):
        assert len(list(walk(tmp_path, WalkLimits(max_s=2)))) == 601


def test_long_ignore_file_is_cheap_per_file(tmp_path: Path) -> None:
    put(tmp_path, *(f"src/package{number % 50}/module_{number}.py" for number in range(1500)))
    (tmp_path / ".gitignore").write_text("".join(f"*.{number}\nbuild{number}/\n/dist{number}\n" for number in range(500)))
    with processor_time_below(3):
        assert len(list(walk(tmp_path, WalkLimits()))) == 1501


@pytest.mark.skipif(os.geteuid() == 0, reason="root may open every folder")
def test_a_folder_that_cannot_be_opened_is_counted(tmp_path: Path) -> None:
    put(tmp_path, "shut/a", "open/b")
    (tmp_path / "shut").chmod(0)
    bounds = WalkLimits()
    assert list(walk(tmp_path, bounds)) == ["open/b"]
    assert bounds.num_unreadable == 1
    (tmp_path / "shut").chmod(0o700)


NAMES = st.sampled_from(["a", "b", "ab", "a.b", "b.a", "x y", "[a]", "!a", "#b", "a*b"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
PIECES = st.sampled_from(["a", "b", "*", "**", "?", "[ab]", "[!a]", ".", "\\*", "\\[", "a*", "*b", "!", "#", " "])
LINES = st.builds(
    lambda mark, start, parts, end: mark + start + "/".join(parts) + end,
    st.sampled_from(["", "", "", "!", "\\!", "\\#"]),
    st.sampled_from(["", "", "/", "**/"]),
    st.lists(st.lists(PIECES, min_size=1, max_size=3).map("".join), min_size=1, max_size=3),
    st.sampled_from(["", "", "/", "/**", "/*", " ", "\\ ", "\r"]),
).filter(lambda line: _is_agreed(line))


def _is_agreed(line: str) -> bool:
    """Git and ripgrep disagree on what a mere `!` brings back; git with itself on `a**/b`, which means more after a prefix."""
    return line.strip(" /*\r") != "!" and re.search(r"[^/!]\*\*", line) is None


@st.composite
def trees(draw: st.DrawFn) -> tuple[list[str], dict[str, list[str]]]:
    files = draw(st.lists(PATHS, min_size=1, max_size=12, unique=True))
    folders = sorted({parent.as_posix() for file in files for parent in Path(file).parents})
    ignores = draw(st.dictionaries(st.sampled_from(folders), st.lists(LINES, max_size=5), max_size=3))
    return files, ignores


def plant(root: Path, tree: tuple[list[str], dict[str, list[str]]]) -> None:
    subprocess.run(["rm", "-rf", str(root)], check=True)
    root.mkdir()
    for file in tree[0]:
        path = root / file
        if any(parent.is_file() for parent in path.parents) or path.is_dir():
            continue  # a name cannot be a file and a folder
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    for folder, lines in tree[1].items():
        if (root / folder).is_dir():
            (root / folder / ".gitignore").write_bytes("\n".join(lines).encode())


@given(tree=trees())
def test_the_walk_sees_exactly_what_git_sees(tmp_path: Path, tree: tuple[list[str], dict[str, list[str]]]) -> None:
    root = tmp_path / "tree"
    plant(root, tree)
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    listed = subprocess.run(
        ["git", "-C", str(root), "ls-files", "-o", "--exclude-standard", "-z"], check=True, capture_output=True
    ).stdout
    assert sorted(seen(root)) == sorted(os.fsdecode(name) for name in listed.split(b"\0") if name)


@needs_ripgrep
@given(tree=trees())
def test_the_walk_sees_exactly_what_ripgrep_sees(tmp_path: Path, tree: tuple[list[str], dict[str, list[str]]]) -> None:
    # where ripgrep and git differ, git is right: three stars, and a slash in the place of "any but these"
    assume(not any(re.search(r"\*\*\*|\[[!^]", line) for lines in tree[1].values() for line in lines))
    root = tmp_path / "tree"
    plant(root, tree)
    (root / ".git").mkdir()
    listed = subprocess.run(
        [str(find_ripgrep()), "--no-config", "--files", "--hidden", "--glob=!.git", "--null", "--no-ignore-parent"],
        cwd=root,
        check=False,
        capture_output=True,
    ).stdout
    assert sorted(seen(root)) == sorted(os.fsdecode(name) for name in listed.split(b"\0") if name)
