"""Worktrees of sessions: a checkout on a branch of its own, whose work is merged into the repository it was made from.

Each has a git directory of its own that borrows the origin's objects, so that its agent can commit and never reaches the origin.
Work comes back as a commit on the origin's branch `wolo/NAME`, and from there into the branch that is checked out.
"""

from __future__ import annotations

import re
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from msgspec import Struct

from wolo.errors import UsageError, WoloError
from wolo.operating_system import LOCK_EX, flock, hold_open, os
from wolo.places import Notices, make_private
from wolo.workspace.directory_copy import MAX_BYTES, remove_tree
from wolo.workspace.files.unfinished import write_whole
from wolo.workspace.git import GitFailed, run_git
from wolo.workspace.git_objects import LentCommit, add_words, copy_refs, end_loan, lend_objects, make_git_dir
from wolo.workspace.git_repository import OpenRepository, find_repository, open_repository
from wolo.workspace.root import ORIGIN, folder_name, origin_of, worktree_files

INCLUDE = ".worktreeinclude"
"""In the origin: untracked files that a worktree gets, in the syntax of `.gitignore`."""
_NAME = r"(?a)\w[\w.-]{0,63}"
_BUSY = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply", "index.lock")
_SNAPSHOT = "refs/wolo/snapshot"
_COPIED_SETTINGS = ("user.name", "user.email", "remote.origin.url", "remote.origin.fetch")


class SessionWorktree(Struct, frozen=True):
    place: Path
    """Folder of its record, which agents cannot change."""
    origin: Path
    """Top of the repository that it was made from."""
    base: str
    """The commit that it began at."""

    @property
    def name(self) -> str:
        return self.place.name

    @property
    def branch(self) -> str:
        return f"wolo/{self.name}"

    @property
    def files(self) -> Path:
        return worktree_files(self.place.parent.parent) / self.place.parent.name / self.name

    @property
    def partial(self) -> Path:
        """Files that are being made or removed."""
        return self.files / ".partial"

    @property
    def folder(self) -> Path:
        """The files that the session works on."""
        return self.files / folder_name(self.origin)


class Work(Struct, frozen=True):
    """The state of a worktree, saved as a commit in its origin."""

    commit: str
    num_files: int
    """Changed since the beginning."""
    is_merged: bool
    """Another branch of the origin has all of it."""


def worktrees_of(worktrees: Path, cwd: Path) -> list[SessionWorktree]:
    """Those of the repository around `cwd`, sorted by name. Raises GitFailed, UsageError outside of a repository."""
    folder = _folder_of(worktrees, _top_of(worktrees, cwd))
    return [each for path in sorted(folder.glob("*/base")) if (each := _read(path.parent))]


def find_worktree_named(worktrees: Path, cwd: Path, name: str) -> SessionWorktree:
    """Raises UsageError, GitFailed."""
    each = _read(_folder_of(worktrees, _top_of(worktrees, cwd)) / name) if re.fullmatch(_NAME, name) else None
    if each is None:
        raise UsageError(f"There is no worktree {name!r} of this repository.", hint="`wolo worktree list` shows them.")
    return each


def worktree_around(worktrees: Path, cwd: Path) -> SessionWorktree | None:
    """The worktree of a session that a real path is in."""
    base = worktree_files(worktrees)
    parts = cwd.relative_to(base).parts if cwd.is_relative_to(base) else ()
    each = _read(worktrees.joinpath(*parts[:2])) if len(parts) > 2 else None
    return each if each and cwd.is_relative_to(each.folder) else None


def open_worktree(
    worktrees: Path, cwd: Path, name: str, ref: str, notices: Notices, *, moves_changes: bool = False
) -> SessionWorktree:
    """Makes a worktree, or what is missing of one that was begun or whose files were removed; an empty name is chosen.

    Raises UsageError, GitFailed, OSError.
    """
    if name and not re.fullmatch(_NAME, name):
        raise UsageError(f"A worktree cannot be named {name!r}.", hint="Letters, digits, `.`, `_` and `-`, at most 64.")
    top = _top_of(worktrees, cwd)
    name = name or secrets.token_hex(3)
    place = _folder_of(worktrees, top) / name
    if place.name.endswith((".", ".lock")) or ".." in name:
        raise UsageError(f"git takes no branch of the name {name!r}.", hint="Choose another one.")
    with _lock(place.parent), _open(top) as origin:
        known = _read(place)
        if known and not known.folder.is_dir() and not _commit(origin, f"refs/heads/{known.branch}"):
            known = None  # it was begun, and no more
        if known and (ref or moves_changes):
            raise UsageError(f"There is already a worktree {name}.", hint="Choose another name, or leave the rest out.")
        each = known or _begin(place, origin, ref, moves_changes=moves_changes)
        if each.folder.is_dir():
            return each
        if known:
            notices.add(f"The files of worktree {name} were gone; they are made again from {each.branch}.")
        _make_files(each, origin, notices, moves_changes=moves_changes)
    return each


def save_work(each: SessionWorktree) -> Work:
    """Saves all changes but those of ignored files as a commit on the branch in the origin. Raises GitFailed."""
    with _lock(each.place.parent), _open(each.origin) as origin:
        return _save(each, origin)


def merge_work(each: SessionWorktree) -> str:
    """Merges into the branch that is checked out, keeping its uncommitted changes; returns a sentence.

    Raises WoloError, with nothing changed, when both sides changed the same lines.
    """
    with _lock(each.place.parent), _open(each.origin) as origin:
        work = _save(each, origin)
        repository = origin.repository
        if busy := [name for name in _BUSY if (repository.git_dir / name).exists()]:
            raise WoloError(f"{each.origin} is in the middle of something: {busy[0]} is in its git directory.")
        head = _commit(origin, "HEAD")
        if _is_in(origin, work.commit, head):
            return f"{each.name} is already merged: nothing is new."
        tree, before = _merge_trees(origin, head, work.commit, each), _snapshot(origin)
        after = tree
        if before != origin.read("rev-parse", f"{head}^{{tree}}"):
            # The commit of uncommitted changes that were moved to the worktree, so that they count once in a merge.
            moved = origin.read("log", "--format=%H", "--grep=^Uncommitted changes that wolo/", f"{head}..{work.commit}").split()
            base = moved[-1:]
            after = _merge_trees(origin, _commit_tree(origin, before, "Uncommitted changes", head, *base), work.commit, each)
        top = origin.repository.top
        new = origin.read("diff", "--name-only", "--no-renames", "--diff-filter=A", "-z", before, after).split("\0")
        if taken := [name for name in new if name and os.path.lexists(top / name)]:
            what = "a folder that a file or link of the worktree replaces" if (top / taken[0]).is_dir() else "ignored by git"
            raise WoloError(f"{taken[0]} in {top} would be overwritten: it is {what}.", hint="Move it away first.")
        with tempfile.TemporaryDirectory(prefix="wolo-index-") as folder:
            env = _index_in(origin, Path(folder))
            origin.read("read-tree", before, env=env)
            origin.run("update-index", "-q", "--refresh", "--ignore-submodules", env=env)
            origin.read("read-tree", "-m", "-u", before, after, env=env)
        merged = work.commit
        if not _is_in(origin, head, work.commit):
            merged = _commit_tree(origin, tree, f"Merge branch '{each.branch}'", head, work.commit)
        origin.read("read-tree", tree)
        origin.run("update-index", "-q", "--refresh", "--ignore-submodules")
        origin.read("update-ref", "-m", f"merge {each.branch}", "HEAD", merged, head)
    return f"Merged {each.branch} into {_head_name(repository.git_dir)}: {work.num_files} changed."


def patch_of(each: SessionWorktree) -> str:
    """Everything that the worktree changed, for `git apply`. Raises GitFailed."""
    with _lock(each.place.parent), _open(each.origin) as origin:
        commit = _save(each, origin).commit
        words = ("--binary", "--full-index", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color", "--src-prefix=a/")
        done = origin.run("diff", *words, "--dst-prefix=b/", "--ignore-submodules=all", each.base, commit)
        if done.exit_code:
            raise GitFailed(f"git diff: {done.complaint}")
        return done.stdout


def remove_worktree(each: SessionWorktree, *, force: bool) -> str:
    """Returns a sentence. Raises WoloError for work that is in no other branch, unless forced."""
    with _lock(each.place.parent), _open(each.origin) as origin:
        ref = f"refs/heads/{each.branch}"
        if not each.folder.is_dir() and not _commit(origin, ref):  # an earlier removal was killed
            return _remove_rest(each, origin)
        work = _save(each, origin)
        if not work.is_merged and not force:
            raise WoloError(
                f"Worktree {each.name} has changes that are not merged ({work.num_files} files), so it stays.",
                hint=f"`wolo worktree merge {each.name}` merges them; --force removes it all the same.",
            )
        if _head_name(origin.repository.git_dir) == each.branch:
            raise WoloError(
                f"{each.branch} is checked out in {each.origin}, so it stays.", hint="Check out another branch first."
            )
        if each.folder.is_dir():  # at once: half of the files would be work that removes the others
            remove_tree(each.partial)
            each.folder.rename(each.partial)
        origin.read("update-ref", "-d", ref, work.commit)
        removed = _remove_rest(each, origin)
    again = "" if work.is_merged else f" `git branch {each.branch} {work.commit[:12]}` brings its work back."
    return f"{removed}{again}"


def _remove_rest(each: SessionWorktree, origin: OpenRepository) -> str:
    end_loan(origin.repository.common, each.folder)
    remove_tree(each.files)
    remove_tree(each.place)
    return f"Removed worktree {each.name}."


def _begin(place: Path, origin: OpenRepository, ref: str, *, moves_changes: bool) -> SessionWorktree:
    """Notes it on the disk, before anything else is made."""
    commit, branch = _commit(origin, ref or "HEAD"), f"wolo/{place.name}"
    if not commit:
        top = origin.repository.top
        raise UsageError(f"{top} has no branch, tag or commit {ref}." if ref else f"{top} has no commit yet.")
    if _commit(origin, f"refs/heads/{branch}"):
        raise UsageError(
            f"There is already a branch {branch}.", hint=f"Choose another name; `git branch -d {branch}` removes a merged one."
        )
    tip = commit
    if moves_changes and (tree := _snapshot(origin)) != origin.read("rev-parse", f"{commit}^{{tree}}"):
        tip = _commit_tree(origin, tree, f"Uncommitted changes that {branch} began with", commit)
    make_private(place)
    (place / ORIGIN).unlink(missing_ok=True)
    (place / ORIGIN).symlink_to(origin.repository.top)
    write_whole(place / "base", commit.encode())
    origin.read("update-ref", f"refs/heads/{branch}", tip, "")
    return SessionWorktree(place, origin.repository.top, commit)


def _make_files(each: SessionWorktree, origin: OpenRepository, notices: Notices, *, moves_changes: bool) -> None:
    partial, common = each.partial, origin.repository.common
    make_private(each.files)
    remove_tree(partial)
    tip = _commit(origin, f"refs/heads/{each.branch}") or each.base
    start = each.base if moves_changes else tip
    source = LentCommit(common, start, origin.read("rev-parse", "--show-object-format"))
    make_git_dir(partial / ".git", source)
    copy_refs(common, partial / ".git")
    for name in _COPIED_SETTINGS:
        if value := origin.settings.get(name):
            run_git("config", name, value, cwd=partial)
    _run(partial, "update-ref", f"refs/heads/{each.branch}", start)
    (partial / ".git/HEAD").write_text(f"ref: refs/heads/{each.branch}\n")
    _run(partial, "read-tree", "-u", "--reset", tip)
    if tip != start:
        _run(partial, "read-tree", start)  # its files are as in `tip`: uncommitted changes
    _run(partial, "update-index", "-q", "--refresh", may_fail=True)
    _copy_included(origin, partial, notices)
    lend_objects(common, each.folder)
    partial.rename(each.folder)


def _copy_included(origin: OpenRepository, folder: Path, notices: Notices) -> None:
    patterns, num_bytes = origin.repository.top / INCLUDE, 0
    if not patterns.is_file():
        return
    listed = origin.run("ls-files", "--others", "--ignored", f"--exclude-from={patterns}", "-z").stdout
    for name in filter(None, listed.split("\0")):
        source, target = origin.repository.top / name, folder / name
        if name.endswith("/") or os.path.lexists(target) or not (source.is_symlink() or source.is_file()):
            continue
        num_bytes += source.lstat().st_size
        if num_bytes > MAX_BYTES:
            notices.add(f"{INCLUDE} names more than {MAX_BYTES >> 20} MB; {name} and what follows it were not copied.")
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target, follow_symlinks=False)


def _save(each: SessionWorktree, origin: OpenRepository) -> Work:
    tip = _commit(origin, f"refs/heads/{each.branch}")
    if (each.folder / ".git").is_dir():
        with _open(each.folder) as worktree:
            tree, head = _snapshot(worktree), _commit(worktree, "HEAD")
            parents = [commit for commit in (head, tip) if commit]
            if len(parents) == 2 and _is_in(worktree, parents[0], parents[1]):
                parents = parents[1:]
            elif len(parents) == 2 and _is_in(worktree, parents[1], parents[0]):
                parents = parents[:1]
            commit = parents[0]
            if len(parents) == 2 or tree != worktree.read("rev-parse", f"{commit}^{{tree}}"):
                commit = _commit_tree(worktree, tree, f"Work in {each.name}", *parents)
            worktree.read("update-ref", _SNAPSHOT, commit)
            if commit != tip:
                words = ("fetch", "-q", "--no-tags", "--no-write-fetch-head", "--", str(worktree.view))
                origin.read(*words, f"{_SNAPSHOT}:refs/heads/{each.branch}")
        tip = commit
    if not tip:
        raise GitFailed(f"{each.branch} and the files of worktree {each.name} are gone.")
    names = origin.read("diff", "--name-only", "--no-renames", "--ignore-submodules=all", "-z", each.base, tip)
    holders = origin.read("for-each-ref", "--contains", tip, "--format=%(refname)", "refs/heads", "refs/remotes", "refs/tags")
    is_merged = bool({*holders.splitlines()} - {f"refs/heads/{each.branch}"}) or _is_in(origin, tip, _commit(origin, "HEAD"))
    return Work(tip, names.count("\0"), is_merged or tip == each.base)


def _snapshot(repository: OpenRepository) -> str:
    """The tree of all files that are not ignored."""
    with tempfile.TemporaryDirectory(prefix="wolo-index-") as folder:
        env = _index_in(repository, Path(folder))
        done = repository.run(*add_words(repository.read("ls-files", "--stage", "-z", env=env)), env=env)
        if done.exit_code:
            raise GitFailed(f"git add: {done.complaint}")
        return repository.read("write-tree", env=env)


def _index_in(repository: OpenRepository, folder: Path) -> dict[str, str]:
    if (index := repository.repository.git_dir / "index").is_file():
        shutil.copy2(index, folder / "index")  # with its time: git reads again what is not older
    return {"GIT_INDEX_FILE": str(folder / "index")}


def _merge_trees(origin: OpenRepository, ours: str, theirs: str, each: SessionWorktree) -> str:
    done = origin.run("merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", ours, theirs)
    tree, *names = done.stdout.split("\0")
    if done.exit_code == 1:
        conflicts = ", ".join(dict.fromkeys(filter(None, names)))
        raise WoloError(
            f"{each.branch} and {each.origin} change the same lines of {conflicts}; nothing was changed.",
            hint=f"`git merge {each.branch}` there marks them, or let the session in the worktree solve them.",
        )
    if done.exit_code:
        raise GitFailed(f"git merge-tree: {done.complaint}", hint="Merging needs git 2.38 or later.")
    return tree


def _commit_tree(repository: OpenRepository, tree: str, message: str, *parents: str) -> str:
    name, email = repository.settings.get("user.name", ""), repository.settings.get("user.email", "")
    if not (name and email) and repository.run("var", "GIT_COMMITTER_IDENT").exit_code:
        name, email = name or "wolo", email or "wolo@localhost"
    values = {"NAME": name, "EMAIL": email}
    env = {f"GIT_{who}_{key}": value for who in ("AUTHOR", "COMMITTER") for key, value in values.items() if value}
    words = [word for parent in dict.fromkeys(parents) for word in ("-p", parent)]
    return repository.read("commit-tree", tree, *words, "-m", message, env=env)


def _commit(repository: OpenRepository, ref: str) -> str:
    return repository.run("rev-parse", "-q", "--verify", "--end-of-options", f"{ref}^{{commit}}").stdout.strip()


def _is_in(repository: OpenRepository, commit: str, other: str) -> bool:
    return repository.run("merge-base", "--is-ancestor", commit, other).exit_code == 0


def _head_name(git_dir: Path) -> str:
    return (git_dir / "HEAD").read_text("utf-8", "replace").strip().removeprefix("ref: refs/heads/")


def _run(folder: Path, *words: str, may_fail: bool = False) -> None:
    """In a repository that was just made."""
    done = run_git(*words, cwd=folder)
    if done.exit_code and not may_fail:
        raise GitFailed(f"git {words[0]}: {done.complaint}")


def _top_of(worktrees: Path, cwd: Path) -> Path:
    if (repository := find_repository(cwd)) is None or repository.is_bare:
        raise UsageError(f"{cwd} is in no worktree of a git repository.", hint="`git init` and a first commit make one.")
    return origin_of(worktrees, repository.top)


@contextmanager
def _open(top: Path) -> Iterator[OpenRepository]:
    repository = find_repository(top) if top.is_dir() else None
    if repository is None:
        raise GitFailed(f"The repository {top} is gone.")
    with open_repository(repository) as opened:
        yield opened


def _folder_of(worktrees: Path, top: Path) -> Path:
    return worktrees / f"{top.name[:40]}-{sha256(os.fsencode(top)).hexdigest()[:12]}"


def _read(place: Path) -> SessionWorktree | None:
    try:
        return SessionWorktree(
            place, Path(os.readlink(place / ORIGIN)), (place / "base").read_text("ascii").strip()
        )  # a link of wolo's
    except (OSError, UnicodeDecodeError):
        return None


@contextmanager
def _lock(folder: Path) -> Iterator[None]:
    """Of all worktrees of one repository."""
    make_private(folder)
    with hold_open(os.open(folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)) as descriptor:
        flock(descriptor, LOCK_EX)
        yield
