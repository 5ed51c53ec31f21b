"""Git started in repositories of strangers: nothing of theirs runs, and nothing of others is theirs."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.fakes.hostile_repositories import hostile_repository, left
from tests.fakes.repositories import commit, files, git, repository
from tests.workspace.living import gone
from wolo.workspace import git_objects
from wolo.workspace.git import GitFailed, run_git
from wolo.workspace.git_objects import borrowed_folders, copy_objects, copy_refs, lend_objects, lends_objects
from wolo.workspace.git_repository import _settings, _simple_settings, find_repository, open_repository

MERGED = "diff --git a/a.txt b/a.txt\nindex {} 100644\n--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-{}\n+{}\n"


def test_nothing_that_a_repository_configures_is_run(tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    source = hostile_repository(tmp_path / "source", ran)
    before, after = (_blob(source, text) for text in ("one\n", "two\n"))
    files(
        tmp_path,
        {
            "p.diff": MERGED.format(f"{before}..{after}", "one", "two"),
            "gone.diff": MERGED.format("1" * 40 + "..2222222", "x", "y"),
        },
    )
    found = find_repository(source / "sub/..")
    assert found is not None
    with open_repository(found) as opened:
        assert opened.run("rev-parse", "HEAD").exit_code == 0
        assert opened.run("rev-parse", "-q", "--verify", "1" * 40 + "^{commit}").exit_code
        assert "a.txt" not in opened.run("status", "--porcelain", "--ignore-submodules=all").stdout
        assert opened.run("apply", "--check", str(tmp_path / "p.diff")).exit_code == 0
        assert opened.run("update-index", "-q", "--refresh", "--ignore-submodules").exit_code == 0
        assert opened.run("apply", "--3way", str(tmp_path / "p.diff")).exit_code == 0
        assert opened.run("apply", "--3way", str(tmp_path / "gone.diff")).exit_code
        assert opened.run("diff", "--no-ext-diff").exit_code == 0
        assert run_git("fetch", "-q", "--", str(opened.view), "HEAD", cwd=repository(tmp_path / "other", {})).exit_code == 0
    assert (source / "a.txt").read_text() == "two\n"
    assert left(ran) == []
    subprocess.run(["git", "status"], cwd=source, capture_output=True, check=False)
    assert left(ran), "the traps are alive"


def _blob(folder: Path, text: str) -> str:
    done = subprocess.run(
        ["git", "hash-object", "-w", "--stdin"], cwd=folder, input=text, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_repository_line_ends_and_modes_hold(tmp_path: Path) -> None:
    source = repository(tmp_path / "source", {})
    git(source, "config", "core.autocrlf", "true")
    git(source, "config", "core.fileMode", "false")
    commit(source, {"a.txt": "one\r\n"})
    (source / "a.txt").chmod(0o755)
    os.utime(source / "a.txt", (1, 1))
    found = find_repository(source)
    assert found is not None
    with open_repository(found) as opened:
        assert opened.run("status", "--porcelain").stdout == ""


def test_worktrees_submodules_and_inner_repositories_are_opened(tmp_path: Path) -> None:
    main = repository(tmp_path / "main", {"a.txt": "one\n"})
    git(main, "worktree", "add", "-q", str(tmp_path / "linked"))
    git(
        main,
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "--quiet",
        "add",
        str(repository(tmp_path / "i", {"b": "b"})),
        "sub",
    )
    git(tmp_path, "clone", "-q", "--bare", str(main), str(tmp_path / "inner/.bare"))
    files(tmp_path / "inner", {".git": "gitdir: ./.bare\n"})
    git(tmp_path / "inner", "config", "core.bare", "false")
    for folder in (tmp_path / "linked", main / "sub", tmp_path / "inner"):
        found = find_repository(folder)
        assert found is not None
        with open_repository(found) as opened:
            assert opened.run("rev-parse", "HEAD").stdout.strip() == git(folder, "rev-parse", "HEAD")
            assert found.top == folder
    bare = find_repository(tmp_path / "inner/.bare")
    assert bare is not None
    assert find_repository(tmp_path / "i/..") is None


@pytest.mark.parametrize("forgery", ["gitdir", "commondir", "worktree of its own", "link"])
def test_a_repository_that_claims_another_is_refused(tmp_path: Path, forgery: str) -> None:
    private, work = repository(tmp_path / "private", {"secret": "sesame"}) / ".git", tmp_path / "a/work"
    match forgery:
        case "gitdir":
            files(work, {".git": f"gitdir: {private}\n"})
        case "link":
            work.mkdir(parents=True)
            (work / ".git").symlink_to(private)
        case "commondir":
            repository(work, {})
            files(work / ".git", {"commondir": f"{private}\n"})
        case _:
            files(work, {".git": "gitdir: ./x\n", "x/HEAD": "ref: refs/heads/main\n", "x/commondir": f"{private}\n"})
            files(work, {"x/gitdir": f"{work}/.git\n"})
    with pytest.raises(GitFailed, match="does not"):
        find_repository(work)


def test_program_environment_and_relative_folders_are_unused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = repository(tmp_path / "source", {"git": f"#!/bin/sh\ntouch {tmp_path}/ran\n"})
    monkeypatch.chdir(source)
    monkeypatch.setenv("PATH", f".{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "alias.rev-list")
    assert run_git("rev-parse", "HEAD", cwd=source).stdout.strip()
    assert not (tmp_path / "ran").exists()


def test_git_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    source = repository(tmp_path / "source", {})
    (source / ".git/config").unlink()
    os.mkfifo(source / ".git/config")
    with pytest.raises(GitFailed, match="took longer than 1 s"):
        run_git("rev-parse", "HEAD", cwd=source, timeout_s=1)


def test_git_leftovers_are_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "git"
    program.write_text("#!/bin/sh\nsetsid sleep 4217.25 >/dev/null 2>&1 </dev/null &\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert run_git("gc", cwd=tmp_path / "work").exit_code == 0
    assert gone("4217.25")


@pytest.mark.parametrize("place", ["tools", "outside"])
def test_git_of_the_repository_never_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    work, outside = tmp_path / "work", tmp_path / "outside"
    (work / "tools").mkdir()
    program = work / "tools" / "git"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    program.chmod(0o755)
    outside.symlink_to(work / "tools")
    folder = work / "tools" if place == "tools" else outside
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    assert run_git("version", cwd=work).stdout.startswith("git version")
    assert not (tmp_path / "ran").exists()


def test_objects_are_copied_without_those_of_others(tmp_path: Path) -> None:
    other = repository(tmp_path / "other", {"secret": "sesame"})
    git(tmp_path, "clone", "-q", "--shared", str(other), str(tmp_path / "mine"))
    mine = tmp_path / "mine/.git/objects"
    made = commit(tmp_path / "mine", {"own": "own"})
    (mine / "ab").symlink_to(other / ".git/objects")
    assert borrowed_folders(mine) == (other / ".git/objects",)
    copy_objects(mine, tmp_path / "copy")
    assert (tmp_path / "copy" / made[:2] / made[2:]).exists()
    assert not (tmp_path / "copy/info").exists()
    assert not (tmp_path / "copy/ab").exists()


def test_objects_that_git_packs_meanwhile_are_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = repository(tmp_path / "source", {"a": "one", "b": "two"})
    git(tmp_path, "init", "-q", "mirror")
    mirror = tmp_path / "mirror"
    copy = git_objects._copy

    def copy_after_gc(path: Path, place: Path) -> None:
        git(source, "gc", "-q", "--prune=now")
        copy(path, place)

    monkeypatch.setattr(git_objects, "_copy", copy_after_gc)
    copy_refs(source / ".git", mirror / ".git")
    later = commit(source, {"c": "three"})
    copy_objects(source / ".git/objects", mirror / ".git/objects")
    assert git(mirror, "rev-parse", "main^{commit}", f"{later}^{{tree}}") == git(source, "rev-parse", "main~", "main^{tree}")


def test_objects_are_lent_by_the_lender_only(tmp_path: Path) -> None:
    lender, worktree = tmp_path / "mirror.git", tmp_path / "worktree"
    lender.mkdir()
    assert not lends_objects(str(lender / "objects"), str(worktree))
    lend_objects(lender, worktree)
    assert lends_objects(str(lender / "objects"), str(worktree))
    assert not lends_objects(str(lender / "objects"), str(tmp_path))


@pytest.mark.parametrize(
    ("text", "is_simple"),
    [
        ('[core]\n\tbare = false\n\tAutoCRLF = input\n[branch "Feature/X"]\n\tremote = origin\n\tmerge = refs/heads/x\n', True),
        ("[core]\n\tx = 1\n\tx = 2 3\n\n[a.b]\n", False),
        ('[remote "o"]\n\turl = git@a.example:b/c.git\n\tfetch = +refs/heads/*:refs/remotes/o/*\n[core]\n', True),
        ('[core]\n\tname = "a # b"\n', False),
        ("[core]\n\tname = a ; comment\n", False),
        ("[core]\n\tname = a\\\n\tautocrlf = true\n", False),
        ("[core] bare = true\n", False),
        ("[core]\n\tbare\n", False),
        ("[core]\n# autocrlf = true\n", False),
        ("", True),
    ],
)
def test_simple_settings_are_as_git_reads_them(tmp_path: Path, text: str, is_simple: bool) -> None:
    (tmp_path / "config").write_text(text)
    words = ("config", "--file", str(tmp_path / "config"), "--null", "--list")
    listed = run_git(*words, cwd=tmp_path).stdout.split("\0")[:-1]
    expected = {name: value if has_value else "true" for name, has_value, value in (each.partition("\n") for each in listed)}
    assert (_simple_settings(text.encode()) is not None) == is_simple
    assert _settings(tmp_path / "config", tmp_path) == expected
