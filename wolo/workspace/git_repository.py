"""Opens a repository that is not wolo's own, and reads its state for the first prompt.

Git reads its files, objects and refs, and no setting of it that names a program.
"""

from __future__ import annotations

import os
import re
import stat
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from wolo.errors import ToolError
from wolo.operating_system import hold_open, user_id
from wolo.workspace import git_branch
from wolo.workspace.files.safe_open import open_regular, read_all
from wolo.workspace.git import GitEnd, GitFailed, GitReader, run_git

_LOOK_S = 60.0
_MAX_HEAD_BYTES = 4096
_MAX_SETTINGS_BYTES = 16 << 20
_MAX_SIMPLE_BYTES = 1 << 16
_SIMPLE_CHAR = r"[!$-:<-\[\]-~]"
_SIMPLE_LINE = (
    r"(?a)[ \t]*(?:\[([\w-]+)(?: \"([^\"\\\0]*)\")?\]"
    rf"|([A-Za-z][\w-]*)[ \t]*=[ \t]*({_SIMPLE_CHAR}(?:(?:{_SIMPLE_CHAR}| )*{_SIMPLE_CHAR})?))?[ \t]*"
)
"""A heading, a setting without any of `"#;\\`, or nothing."""
_KEPT = """
core.repositoryformatversion core.filemode core.symlinks core.ignorecase core.precomposeunicode core.protecthfs core.protectntfs
core.autocrlf core.eol core.safecrlf core.checkstat core.trustctime core.sharedrepository core.bigfilethreshold
core.sparsecheckout core.sparsecheckoutcone index.sparse index.version extensions.objectformat extensions.refstorage
apply.whitespace apply.ignorewhitespace merge.conflictstyle
"""
"""Settings that describe files and formats; none of them can name a program or a path."""
_NOT_LINKED = frozenset(("config", "config.worktree", "hooks", "HEAD", "commondir", "gitdir", "worktrees", "modules"))


class Repository(Struct, frozen=True):
    """All paths are real."""

    top: Path
    """The worktree; of a bare repository the repository itself."""
    git_dir: Path
    common: Path
    """Differs from `git_dir` in a linked worktree."""
    is_bare: bool


class OpenRepository(Struct, frozen=True):
    repository: Repository
    view: Path
    """The same repository with settings of wolo's; git may fetch from it."""
    settings: Mapping[str, str]
    """All that the repository has; git does not read them."""

    @property
    def environ(self) -> dict[str, str]:
        """Leads git to the repository."""
        top = {} if self.repository.is_bare else {"GIT_WORK_TREE": str(self.repository.top)}
        return {"GIT_DIR": str(self.repository.git_dir), "GIT_COMMON_DIR": str(self.view), **top}

    def run(self, *words: str, env: Mapping[str, str] | None = None) -> GitEnd:
        """Raises GitFailed."""
        return run_git(*words, cwd=self.repository.top, env={**self.environ, **(env or {})})

    def read(self, *words: str, env: Mapping[str, str] | None = None) -> str:
        """What git prints, without the last line break. Raises GitFailed, also when git fails."""
        done = self.run(*words, env=env)
        if done.exit_code:
            raise GitFailed(f"git {words[0]}: {done.complaint}")
        return done.stdout.rstrip("\n")


def local_path(address: str) -> Path | None:
    """The folder of a repository on this machine; None for an address elsewhere."""
    if address.startswith("file://"):
        parts = urlsplit(address)
        return Path(unquote(parts.path)) if parts.netloc in ("", "localhost") else None
    return Path(address) if address.startswith("/") else None


def find_repository(folder: Path) -> Repository | None:
    """The repository around a folder. Raises GitFailed for one that git refuses, or that claims what is not its own."""
    words = ("--is-bare-repository", "--absolute-git-dir", "--git-common-dir")
    asked = run_git("rev-parse", *words, cwd=folder, timeout_s=_LOOK_S)
    if asked.exit_code:
        if "not a git repository" in asked.stderr:
            return None
        raise GitFailed(f"git: {asked.complaint}")
    lines = asked.stdout.splitlines()
    if len(lines) != len(words):
        raise GitFailed(f"The path of the repository around {folder} has a line break in it.")
    is_bare, git_dir, common = lines[0] == "true", Path(os.path.realpath(lines[1])), Path(os.path.realpath(folder / lines[2]))
    real = Path(os.path.realpath(folder))
    top = git_dir if is_bare else next((each for each in (real, *real.parents) if _leads_to(each / ".git", git_dir)), git_dir)
    if common not in (git_dir, git_dir.parent.parent) or (common != git_dir and git_dir.parent.name != "worktrees"):
        raise GitFailed(f"{git_dir} says that it is a part of {common}, which does not know it.")
    if not git_dir.is_relative_to(top):
        # A linked worktree, or a submodule: what a checkout claims could be forged, what the repository says could not.
        named = _line(git_dir / "gitdir")
        if not named and (above := _settings(git_dir / "config", top).get("core.worktree", "")):
            named = f"{above}/.git"
        if not named or os.path.realpath(git_dir / named) != str(top / ".git"):
            raise GitFailed(
                f"{top}/.git says that its repository is {git_dir}, which does not name it back.",
                hint=f"git --git-dir={git_dir} config core.worktree {top}   confirms it.",
            )
    return Repository(top, git_dir, common, is_bare)


@contextmanager
def open_repository(repository: Repository) -> Iterator[OpenRepository]:
    """Raises GitFailed."""
    with tempfile.TemporaryDirectory(prefix="wolo-git-", ignore_cleanup_errors=True) as folder:  # a killed git may still write
        view = Path(folder)
        settings, known = (
            {
                **_settings(repository.common / "config", repository.top),
                **_settings(repository.git_dir / "config.worktree", repository.top),
            },
            _KEPT.split(),
        )
        kept = {name: value for name, value in settings.items() if name in known and re.fullmatch(r"(?a)[\w.-]+", value)}
        lines = [f"[{name.partition('.')[0]}]\n\t{name.partition('.')[2]} = {value}\n" for name, value in kept.items()]
        (view / "config").write_text("".join((*lines, f"[core]\n\tbare = {str(repository.is_bare).lower()}\n")), "utf-8")
        (view / "HEAD").write_bytes(_read(repository.git_dir / "HEAD"))
        with os.scandir(repository.common) as entries:
            for entry in entries:
                if entry.name not in _NOT_LINKED:
                    (view / entry.name).symlink_to(entry.path)
        yield OpenRepository(repository, view, settings)


def _leads_to(link: Path, git_dir: Path) -> bool:
    if link.is_file():
        kind, _, named = _line(link).partition(": ")
        return kind == "gitdir" and os.path.realpath(link.parent / named) == str(git_dir)
    return os.path.realpath(link) == str(git_dir)


def _settings(file: Path, top: Path) -> Mapping[str, str]:
    """The last value of each; names are in lower case. No git of the repository at `top` reads them."""
    if not file.is_file():
        return {}
    if (simple := _simple_settings(_read(file, _MAX_SIMPLE_BYTES))) is not None:
        return simple
    with GitReader(("config", "--file", str(file), "--no-includes", "--null", "--list"), Path("/"), top=top) as reader:
        text, is_whole = reader.read(_MAX_SETTINGS_BYTES, time.monotonic() + _LOOK_S)
    if not is_whole:
        raise GitFailed(f"{file} has too many settings.")
    pairs = (entry.partition("\n") for entry in text.split("\0")[:-1])
    return {name: value if has_value else "true" for name, has_value, value in pairs}


def _simple_settings(data: bytes) -> dict[str, str] | None:
    """Settings that git itself has written, without starting it; None: with quotes, comments or continued lines."""
    section, settings = "", dict[str, str]()
    if len(data) >= _MAX_SIMPLE_BYTES:
        return None
    for line in os.fsdecode(data).split("\n"):
        if (match := re.fullmatch(_SIMPLE_LINE, line)) is None:
            return None
        kind, within, name, value = match.groups()
        if kind is not None:
            section = f"{kind.lower()}.{'' if within is None else within + '.'}"
        elif name is not None and not section:
            return None
        elif name is not None:
            settings[f"{section}{name.lower()}"] = value
    return settings


def _line(path: Path) -> str:
    return os.fsdecode(_read(path)).partition("\n")[0].strip() if path.is_file() else ""


def _read(path: Path, most_bytes: int = _MAX_HEAD_BYTES) -> bytes:
    try:
        with hold_open(open_regular(path)) as handle:
            return read_all(handle, most_bytes)
    except (OSError, ToolError) as error:
        raise GitFailed(f"Cannot read {path}: {error}.") from error


MOST_COMMITS = 3
_MOST_STATUS_BYTES = 1 << 20
"""About 8,000 changed files; then git is stopped."""
_MOST_LOG_BYTES = 1 << 16
_STATUS = ["status", "--porcelain=v2", "-z", "--no-renames", "--untracked-files=normal", "--ignore-submodules=all"]
_LOG = f"log --max-count={MOST_COMMITS} --no-show-signature --no-color --no-decorate -z --format=%s HEAD".split()
_COUNT = ("rev-list", "--count", "--left-right")


class TreeState(Struct, frozen=True, kw_only=True):
    """As git has it; names and subjects may hold anything."""

    ahead: int = 0
    """Commits that the upstream branch lacks; `behind`: those that it has in addition."""
    behind: int = 0
    changed: tuple[str, ...] = ()
    """Paths of files that are not as in the last commit, from the top of the worktree."""
    is_whole: bool = True
    """False: more files are changed."""
    subjects: tuple[str, ...] = ()
    """Of the last commits, newest first."""


def find_own_repository(cwd: Path) -> Repository | None:
    """The one around a real path, if the user, root or the owner of the path has made it and it borrows no objects."""
    if (worktree := git_branch.find_worktree(cwd)) is None:
        return None
    top, git_dir = worktree
    common = git_dir if git_dir == top / ".git" else git_dir.parent.parent
    made = (top / ".git").lstat()
    is_own = made.st_uid in (user_id(), 0, cwd.stat().st_uid) and not stat.S_ISLNK(made.st_mode)
    borrows = os.path.lexists(common / "objects" / "info" / "alternates")
    return Repository(top, git_dir, common, False) if is_own and not borrows else None


def read_tree_state(repository: Repository, branch: str, timeout_s: float) -> TreeState:
    """Runs a few gits at once, which are killed after the time. Raises GitFailed and OSError."""
    end_at = time.monotonic() + timeout_s
    with open_repository(repository) as opened, ExitStack() as stack:
        remote, merged = (opened.settings.get(f"branch.{branch}.{key}", "") for key in ("remote", "merge"))
        short = merged.removeprefix("refs/heads/")
        upstream = "" if not merged else merged if remote == "." else f"refs/remotes/{remote}/{short}"
        counting = [*_COUNT, f"HEAD...{upstream}", "--"] if upstream else []
        status, log, count = (
            stack.enter_context(GitReader(words, repository.top, opened.environ)) if words else None
            for words in (_STATUS, _LOG, counting)
        )
        assert status is not None
        changed, is_whole = status.read(_MOST_STATUS_BYTES, end_at)
        subjects, counts = _read_output(log, end_at), _read_output(count, end_at)
    ahead, _, behind = counts.strip().partition("\t")
    return TreeState(
        ahead=int(ahead or 0),
        behind=int(behind or 0),
        changed=tuple(_paths(changed)),
        is_whole=is_whole,
        subjects=tuple(subjects.split("\0")[:-1]),
    )


def _read_output(reader: GitReader | None, end_at: float) -> str:
    """Empty if git fails: there is no commit yet, or no such branch."""
    try:
        return reader.read(_MOST_LOG_BYTES, end_at)[0] if reader else ""
    except GitFailed:
        return ""


def _paths(listed: str) -> Iterator[str]:
    """Paths of `git status --porcelain=v2 -z`; the last entry may be cut."""
    num_fields = {"1": 7, "u": 9, "?": 0}
    for entry in listed.split("\0")[:-1]:
        kind, _, rest = entry.partition(" ")
        if kind in num_fields:
            yield rest.split(" ", num_fields[kind])[-1]
