"""Whatever a sandboxed command does to protected places: they are what they were, or every difference is named as lost."""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.guard.sandbox_setup import land, put_up
from tests.guard.test_sandbox_contract import USERS, both, everyone, need
from wolo.guard.sandbox.profile import profile_for

FILES = (
    *("AGENTS.md", ".vscode/tasks.json", ".git/config", ".git/hooks/pre-commit", ".git/HEAD", ".git/objects/aa"),
    *("sub/AGENTS.md", "sub/deep/.vscode/tasks.json", "repo/.git/config", "repo/.git/HEAD", "repo/.git/objects/aa", "repo/code"),
)
OTHERS = (
    *(
        ".",
        ".git",
        ".vscode",
        ".git/hooks",
        "sub",
        "sub/deep",
        "sub/deep/.vscode",
        "repo",
        "repo/.git",
        ".mcp.json",
        ".wolo",
        "x",
    ),
    *(
        "y",
        "x/.vscode",
        "x/AGENTS.md",
        ".vscode/new",
        ".git/hooks/new",
        "sub/deep/.vscode/objects",
        "sub/deep/.vscode/HEAD",
        "y/.git",
    ),
    "second",
)
DATA_OF_GIT = ("HEAD", "objects")
State = dict[str, tuple[str, int, int, str]]

paths = st.sampled_from((*FILES, *OTHERS))
steps = st.one_of(
    st.builds("echo planted > {}".format, paths),
    st.builds("echo planted >> {}".format, paths),
    st.builds("rm -rf {}".format, paths),
    st.builds("mkdir -p {}".format, paths),
    st.builds("mkfifo {}".format, paths),
    st.builds("chmod {} {}".format, st.sampled_from(("0", "500", "777", "4755")), paths),
    st.builds("mv -T {} {}".format, paths, paths),
    st.builds("mv {} {}".format, paths, paths),
    st.builds("ln -fT {} {}".format, paths, paths),
    st.builds("ln -sfnr {} {}".format, paths, paths),
    st.builds("cp -r {} {}".format, paths, paths),
)


def make_scene(work: Path) -> None:
    for name in FILES:
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text(f"kept {name}\n")
    (work / ".git/hooks/pre-commit").chmod(0o755)
    (work / "second").hardlink_to(work / "sub/AGENTS.md")


def state_of(work: Path) -> State:
    """What a program could act on: everything at and below protected names but git's data and empty folders."""
    found: State = {}
    for folder, folders, files in os.walk(work):
        for name in (*folders, *files):
            path = Path(folder, name)
            parts = path.relative_to(work).parts
            if _is_protected(parts) and not _is_data(parts):
                found[str(path)] = _seen(path)
    return {
        path: seen for path, seen in found.items() if seen[0] != "folder" or any(each.startswith(f"{path}/") for each in found)
    }


def _is_protected(parts: Sequence[str]) -> bool:
    return not {".git", ".vscode", ".mcp.json", ".wolo", "AGENTS.md"}.isdisjoint(parts)


def _is_data(parts: Sequence[str]) -> bool:
    inside = parts[parts.index(".git") + 1 :] if ".git" in parts else ()
    return bool(inside) and inside[0] in DATA_OF_GIT


def _seen(path: Path) -> tuple[str, int, int, str]:
    status = path.lstat()
    if stat.S_ISLNK(status.st_mode):
        return "link", 0, status.st_uid, str(path.readlink())
    if stat.S_ISDIR(status.st_mode):
        return "folder", status.st_mode, status.st_uid, ""
    is_file = stat.S_ISREG(status.st_mode)
    return "file" if is_file else "other", status.st_mode, status.st_uid, path.read_text() if is_file else ""


def untold(folder: Path, backend: str, command: str) -> list[str]:
    """The differences that are not named as lost."""
    work = folder / "work"
    make_scene(work)
    before = state_of(work)
    walls = put_up(backend, profile_for((work,), (folder / "own",), folder / "own", home=folder / "home"))
    try:
        enclosed = walls.wrap(("bash", "--noprofile", "--norc", "-c", command), work)
        subprocess.run(
            enclosed.argv,
            pass_fds=enclosed.pass_fds,
            cwd=work,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=30,
            check=False,
        )
        enclosed.cleanup()
        told = walls.take_restored()
    finally:
        walls.close()
    lost = told.lost if told else ()
    differs = sorted({path for path, _ in {*before.items()} ^ {*state_of(work).items()}})
    return [path for path in differs if not any(path == each or path.startswith(f"{each}/") for each in lost)]


@pytest.mark.sweep(every=2)
@both
@everyone
@settings(max_examples=max(4, settings().max_examples // 6))
@given(commands=st.lists(steps, min_size=1, max_size=6))
@example(commands=["echo planted > .vscode/tasks.json", "mv .vscode x"])
@example(commands=["mv sub x", "mkdir sub", "echo planted > sub/AGENTS.md"])
@example(commands=["mv sub x", "mkdir sub", "mv x sub/x", "echo planted > sub/AGENTS.md"])
@example(commands=["echo planted > sub/AGENTS.md", "mv sub x", "ln -s x sub"])
@example(commands=["echo planted > second"])
@example(commands=["ln .git/config x", "echo planted > x", "mv .git y"])
@example(commands=["echo planted > repo/.git/config", "chmod 0 repo", "chmod 0 ."])
def test_a_sequence_leaves_protected_places_as_they_were(user: str, backend: str, commands: list[str]) -> None:
    need(backend)
    with land(user) as folder:
        found = USERS[user](untold, folder, backend, "; ".join(commands))
    assert found == []
