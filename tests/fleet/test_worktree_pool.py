"""Worktrees used again: whatever an attempt did to one, the next sees exactly what git makes."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.fakes.repositories import commit, git, repository
from wolo.fleet import worktree_pool
from wolo.fleet.mirrors import Mirrors
from wolo.fleet.run_folder import RunFolder
from wolo.fleet.worktree_pool import WorktreePool
from wolo.fleet.worktrees import adopt_folder
from wolo.places import find_places
from wolo.workspace.git import Git
from wolo.workspace.git_objects import LentCommit
from wolo.workspace.processes.process_runner import Processes

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere each worktree is new")

FILES = {
    "a.txt": "one\n",
    "run.sh": "#!/bin/sh\ntrue\n",
    "deep/b.txt": "two\n",
    "deep/er/c.txt": "three\n",
    ".gitignore": "*.tmp\n",
    ".gitattributes": "*.crlf text eol=crlf\n",
    "d.crlf": "four\n",
}


class Place:
    """A pool beside a repository, and the attempts that used it."""

    def __init__(self, folder: Path) -> None:
        self.source = repository(folder / "source", FILES)
        (self.source / "link").symlink_to("deep/b.txt")
        commit(self.source, {})
        self.folder = RunFolder(folder / "run")
        self.folder.make()
        self.processes = Processes()
        self.git = Git(self.processes)
        self.pool = WorktreePool(self.folder, self.git)
        self.mirrors = Mirrors(self.folder.mirrors, self.git, find_places())
        self.count = 0

    async def lent(self) -> LentCommit:
        return await self.mirrors.find(str(self.source), "")

    async def make(self, pool: WorktreePool | None = None) -> Path:
        self.count += 1
        folder = self.folder.work(f"t-{self.count}") / "source"
        folder.parent.mkdir(parents=True)
        await (pool or self.pool).check_out(await self.lent(), folder)
        return folder

    async def fresh(self) -> Path:
        return await self.make(WorktreePool(self.folder, self.git))

    def close(self) -> None:
        self.pool.close()
        self.processes.close_all()


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    made = Place(tmp_path)
    yield made
    made.close()


def state_of(folder: Path) -> dict[str, object]:
    """Everything but what no two worktrees share: inodes, times, and the index, which holds them."""
    found: dict[str, object] = {"": stat.filemode(folder.stat().st_mode)}
    for path in sorted(folder.rglob("*")):
        there, name = path.lstat(), str(path.relative_to(folder))
        content = path.readlink() if path.is_symlink() else path.read_bytes() if path.is_file() else b""
        attributes = () if path.is_symlink() else tuple(os.listxattr(path))
        is_index = name == ".git/index"
        found[name] = (stat.filemode(there.st_mode), there.st_nlink, attributes, is_index or content)
    return found


def keep_times(path: Path, change: Callable[[], object]) -> None:
    before = path.stat()
    change()
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def run(folder: Path, command: str) -> None:
    subprocess.run(["sh", "-ec", command], cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def xattr(path: Path) -> None:
    os.setxattr(path, "user.mark", b"1")


EDITS: dict[str, Callable[[Path], object]] = {
    "same size and time": lambda at: keep_times(at / "a.txt", lambda: (at / "a.txt").write_text("two\n")),
    "same size and time by another file": lambda at: run(at, "printf 'two\\n' >x; touch -r a.txt x; mv x a.txt"),
    "new file": lambda at: (at / "new.txt").write_text("n"),
    "ignored file": lambda at: (at / "deep/x.tmp").write_text("t"),
    "file of info/exclude": lambda at: run(at, "echo hidden >.git/info/exclude; echo h >hidden"),
    "mode": lambda at: (at / "a.txt").chmod(0o755),
    "mode ignored by git": lambda at: run(at, "git config core.fileMode false; chmod 600 a.txt; chmod 4755 run.sh"),
    "mode of a folder": lambda at: (at / "deep").chmod(0o700),
    "unreadable folder": lambda at: (at / "deep").chmod(0),
    "mode of the top": lambda at: at.chmod(0o700),
    "file becomes link": lambda at: run(at, "rm a.txt; ln -s /etc/passwd a.txt"),
    "link elsewhere": lambda at: run(at, "ln -sfn /etc/passwd link"),
    "folder becomes link": lambda at: run(at, "mv deep ../moved; ln -s ../moved deep"),
    "file becomes folder": lambda at: run(at, "rm a.txt; mkdir a.txt; echo 1 >a.txt/b"),
    "hard link from outside": lambda at: run(at, "ln a.txt ../outside"),
    "swapped files": lambda at: run(at, "mv a.txt x; mv run.sh a.txt; mv x run.sh"),
    "swapped folders": lambda at: run(at, "mv deep/er x; mv deep y; mkdir deep; mv y deep/er; mv x deep/er/er"),
    "moved there and back": lambda at: run(at, "mv a.txt x; mv x a.txt; mv deep y; mv y deep"),
    "inner repository": lambda at: run(at, "git init -q inner; echo i >inner/i; git -C inner add i"),
    "inner repository with a filter": lambda at: run(at, "git init -q deep; git -C deep config filter.evil.smudge 'echo evil'"),
    "commit": lambda at: run(at, "echo w >a.txt; git -c user.name=T -c user.email=t@e.com commit -qam w; git tag v1"),
    "assume unchanged": lambda at: run(at, "git update-index --assume-unchanged a.txt; echo new >a.txt"),
    "skip worktree": lambda at: run(at, "git update-index --skip-worktree a.txt deep/b.txt; rm a.txt; echo new >deep/b.txt"),
    "sparse": lambda at: run(at, "git sparse-checkout set --no-cone deep/er"),
    "index gone": lambda at: (at / ".git/index").unlink(),
    "index of another": lambda at: run(at, "git rm -rqf .; git commit-tree -m x $(git write-tree) || true"),
    "hooks and settings": lambda at: run(
        at,
        "mkdir -p .git/hooks; printf '#!/bin/sh\\necho x >ran\\n' >.git/hooks/post-checkout; chmod +x .git/hooks/post-checkout; "
        "git config core.hooksPath .git/hooks; git config filter.x.smudge 'echo evil'; echo '* filter=x' >.git/info/attributes",
    ),
    "attributes": lambda at: run(at, "echo '* text eol=crlf' >.gitattributes; rm deep/b.txt"),
    "nested attributes": lambda at: run(at, "echo '* text eol=crlf' >deep/.gitattributes; rm deep/b.txt"),
    "git folder becomes file": lambda at: run(at, "rm -rf .git; echo 'gitdir: /nowhere' >.git"),
    "git folder becomes link": lambda at: run(at, "mv .git ../elsewhere; ln -s ../elsewhere .git"),
    "empty folder": lambda at: (at / "void/er").mkdir(parents=True),
    "folder gone": lambda at: shutil.rmtree(at / "deep"),
    "all gone": lambda at: run(at, "rm -rf deep a.txt run.sh link .g* d.crlf"),
    "pipe": lambda at: os.mkfifo(at / "pipe"),
    "name in no encoding": lambda at: Path(os.fsdecode(os.fsencode(at) + b"/\xff\n")).write_text("x"),
    "attribute of a file": lambda at: xattr(at / "a.txt"),
    "attribute of a folder": lambda at: xattr(at / "deep"),
    "line ends": lambda at: (at / "d.crlf").write_bytes(b"four\n\n"),
    "read-only tree": lambda at: run(at, "mkdir -p ro/d; echo 1 >ro/d/f; chmod 500 ro/d ro"),
    "nothing": lambda at: None,
}


@pytest.mark.sweep(every=3)
@pytest.mark.parametrize("name", EDITS)
async def test_worktree_after_any_edit_equals_new_one(place: Place, name: str) -> None:
    first = await place.make()
    inode = (first / ".gitignore").stat().st_ino
    EDITS[name](first)
    await place.pool.give_back(first, is_clean=True)
    assert not first.exists()
    again = await place.make()
    assert state_of(again) == state_of(await place.fresh())
    assert git(again, "status", "--porcelain", "--ignored") == ""
    git(again, "fsck", "--strict", "--no-dangling")
    is_reused = (again / ".gitignore").stat().st_ino == inode
    assert is_reused or name in ("mode of the top", "all gone", "sparse", "index of another"), "thrown away without need"


@given(st.lists(st.lists(st.sampled_from(sorted(EDITS)), max_size=4), min_size=2, max_size=4))
@example([["skip worktree", "same size and time"], ["same size and time", "inner repository"]])
async def test_chain_of_random_attempts_sees_the_base(tmp_path_factory: pytest.TempPathFactory, chain: list[list[str]]) -> None:
    place = Place(tmp_path_factory.mktemp("chain"))
    expected = state_of(await place.fresh())
    for edits in chain:
        folder = await place.make()
        assert state_of(folder) == expected, edits
        for name in edits:
            try:
                EDITS[name](folder)
            except (OSError, subprocess.CalledProcessError):
                continue  # an edit before it took its place away
        await place.pool.give_back(folder, is_clean=True)
    assert state_of(await place.make()) == expected
    place.close()


async def test_change_while_idle_is_undone(place: Place) -> None:
    first = await place.make()
    await place.pool.give_back(first, is_clean=True)
    (idle,) = place.folder.path.glob("work/.pool-*/*/source")
    keep_times(idle / "a.txt", lambda: (idle / "a.txt").write_text("two\n"))
    again = await place.make()
    assert (again / "a.txt").read_text() == "one\n"


async def test_change_during_restoring_throws_it_away(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    first = await place.make()
    (first / "a.txt").write_text("changed\n")
    await place.pool.give_back(first, is_clean=True)
    original = worktree_pool.check_out

    async def with_intruder(source: LentCommit, folder: Path, git: Git, index: bytes = b"") -> None:
        await original(source, folder, git, index)
        if index:
            (folder / "intruder").touch()

    monkeypatch.setattr(worktree_pool, "check_out", with_intruder)
    again = await place.make()
    assert state_of(again) == state_of(await place.fresh())


async def test_unclean_worktree_is_not_kept(place: Place) -> None:
    first = await place.make()
    await place.pool.give_back(first, is_clean=False)
    assert first.exists(), "it is for the attempt to remove"
    assert not list(place.folder.path.glob("work/.pool-*"))


async def test_other_commit_gets_worktree_of_its_own(place: Place) -> None:
    await place.pool.give_back(await place.make(), is_clean=True)
    commit(place.source, {"a.txt": "newer\n"})
    place.mirrors = Mirrors(place.folder.mirrors, place.git, find_places())
    base = await place.mirrors.find(str(place.source), git(place.source, "rev-parse", "HEAD"))
    folder = place.folder.work("t-x") / "source"
    folder.parent.mkdir(parents=True)
    await place.pool.check_out(base, folder)
    assert (folder / "a.txt").read_text() == "newer\n"


async def test_pool_of_a_living_process_is_no_leftover(place: Place) -> None:
    await place.pool.give_back(await place.make(), is_clean=True)
    (pool,) = place.folder.path.glob("work/.pool-*")
    assert pool not in place.folder.leftovers()
    place.pool.close()
    assert not pool.exists()
    dead = place.folder.path / "work/.pool-dead"
    shutil.copytree(place.source, dead / "1/source")
    (dead / "lock").touch()
    assert dead in place.folder.leftovers()


async def test_most_idle_worktrees_are_bounded(place: Place) -> None:
    made = [await place.make() for _ in range(6)]
    for folder in made:
        await place.pool.give_back(folder, is_clean=True)
    assert len(list(place.folder.path.glob("work/.pool-*/*/source"))) == 4


async def test_only_what_changed_is_written_again(place: Place) -> None:
    commit(place.source, {f"d{number % 30}/f{number}.txt": f"{number}\n" for number in range(600)})
    first = await place.make()
    inodes = {path: path.lstat().st_ino for path in first.rglob("*.txt")}
    (first / "d1/f1.txt").write_text("changed\n")
    await place.pool.give_back(first, is_clean=True)
    again = await place.make()
    changed = [path.name for path in again.rglob("*.txt") if inodes[first / path.relative_to(again)] != path.lstat().st_ino]
    assert changed in (["f1.txt"], []), "the removed inode may be given out again"


async def test_index_of_an_image_is_no_link(place: Place, tmp_path: Path) -> None:
    folder = tmp_path / "attempt/workdir"
    (folder / ".git").mkdir(parents=True)
    (folder / "a.txt").write_text("one\n")
    (tmp_path / "host").write_text("no index\n")
    (folder / ".git/index").symlink_to(tmp_path / "host")
    worktree = await adopt_folder(folder, folder.parent, place.git)
    assert git(folder, "ls-tree", "--name-only", worktree.base) == "a.txt"
