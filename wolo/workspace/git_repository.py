"""Opens a repository that is not wolo's own: git reads its files, objects and refs, and no setting of it that names a program."""

from __future__ import annotations

import os
import re
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from wolo.errors import ToolError
from wolo.operating_system import hold_open
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
