"""The branch as a person sees it, also in a worktree, and nothing at all of what is not git's own."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests import components
from wolo.workspace.git_branch import MAX_BYTES, current_branch


def git(*args: str, cwd: Path | None = None) -> None:
    person = ("-c", "user.name=A", "-c", "user.email=a@b")
    subprocess.run([components.require("git"), *person, *args], check=True, capture_output=True, cwd=cwd)


def repository(folder: str = "repo", branch: str = "feature/größe") -> Path:
    git("init", "-q", "-b", branch, folder)
    git("commit", "-q", "--allow-empty", "-m", "one", cwd=Path(folder))
    return Path(folder).resolve()


def with_head(head: str | bytes) -> Path:
    Path(".git").mkdir(exist_ok=True)
    Path(".git/HEAD").write_bytes(head if isinstance(head, bytes) else head.encode())
    return Path.cwd()


def test_branch_is_named_from_anywhere_in_repository() -> None:
    root = repository()
    (root / "a" / "b").mkdir(parents=True)
    assert (current_branch(root), current_branch(root / "a" / "b"), current_branch(root.parent)) == (
        "feature/größe",
        "feature/größe",
        "",
    )


def test_commit_without_branch_is_named_by_its_beginning() -> None:
    root = repository()
    git("checkout", "-q", "--detach", cwd=root)
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=root, capture_output=True, text=True, check=True).stdout
    assert current_branch(root) == head[:7]


def test_a_worktree_names_its_own_branch() -> None:
    root = repository(branch="main")
    git("worktree", "add", "-q", "-b", "side", "../tree", cwd=root)
    assert (current_branch(root), current_branch(Path("tree").resolve())) == ("main", "side")


def test_worktree_and_repository_name_each_other() -> None:
    root = repository(branch="main")
    git("worktree", "add", "-q", "-b", "side", "../tree", cwd=root)
    Path("tree/.git").write_text("gitdir: ../repo/.git/worktrees/tree\n")
    (root / ".git/worktrees/tree/gitdir").write_text("../../../../tree/.git\n")
    assert current_branch(Path("tree").resolve()) == "side"


def test_worktree_unknown_to_its_repository_names_nothing(isolated: Path) -> None:
    """Neither a foreign repository's branch nor a file that only looks like HEAD is shown."""
    root = repository(branch="private-name")
    git("worktree", "add", "-q", "-b", "side-name", "../tree", cwd=root)
    elsewhere = isolated / "elsewhere" / "worktrees" / "x"
    elsewhere.mkdir(parents=True)
    (elsewhere / "HEAD").write_text("ref: refs/heads/secret\n")
    fake = Path("fake")
    fake.mkdir()
    for named in (root / ".git", root / ".git" / "worktrees" / "tree", elsewhere, "../repo/.git", "/", "", "\0", "x" * 5000):
        (fake / ".git").write_text(f"gitdir: {named}\n")
        assert current_branch(fake.resolve()) == ""


@pytest.mark.parametrize(
    "head",
    [
        "",
        "main",
        "ref: refs/tags/v1\n",
        "ref: ../../etc/passwd\n",
        "ref: refs/heads/.invalid\n",
        "ref: refs/heads/a\x1b[2Jb\n",
        "ref: refs/heads/a\u202eb\n",
        "ref: refs/heads/" + "x" * MAX_BYTES,
        b"ref: refs/heads/\x9b5n\n",
        b"\xff\xfe\x00",
        "0" * 39,
        "0" * 41,
        "z" * 40,
    ],
)
def test_malformed_head_names_nothing(head: str | bytes) -> None:
    name = current_branch(with_head(head))
    assert name in ("", "\ufffd5n")


def test_plain_linkless_file_alone_is_read(isolated: Path) -> None:
    (isolated / "key").write_text("ref: refs/heads/key\n")
    root = with_head("")
    head = root / ".git" / "HEAD"
    head.unlink()
    head.symlink_to(isolated / "key")
    assert current_branch(root) == ""
    head.unlink()
    os.mkfifo(head)
    assert current_branch(root) == ""
    head.unlink()
    head.symlink_to("/dev/zero")
    assert current_branch(root) == ""
    head.unlink()
    head.mkdir()
    assert current_branch(root) == ""
    head.rmdir()
    (root / ".git").rename("real-git")
    (root / "real-git" / "HEAD").write_text("ref: refs/heads/main\n")
    (root / ".git").symlink_to("real-git")
    assert current_branch(root) == ""


def test_repository_in_home_is_not_inspected(isolated: Path) -> None:
    home = isolated / "home"
    (home / ".git").mkdir()
    (home / ".git" / "HEAD").write_text("ref: refs/heads/dotfiles\n")
    (home / "src").mkdir()
    assert (current_branch(home), current_branch(home / "src")) == ("", "")
