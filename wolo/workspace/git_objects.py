"""Makes git directories, copies and borrows objects, without git: it would run what the repository of a stranger configures."""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from wolo.operating_system import os

_BORROWERS = "borrowers"
_REPOSITORY_MODE = "160000 "
_REFS = ("refs", "reftable")
_FILES = ("packed-refs", "shallow")
_MAX_BYTES = 1 << 16
_MOST_LOOKS = 10
_OBJECT = r"[0-9a-f]{2}/[0-9a-f]+|pack/pack-\w+\.\w+"


class LentCommit(Struct, frozen=True):
    """A commit in a repository that lends its objects."""

    lender: Path
    commit: str
    object_format: str
    """`sha1` or `sha256`."""


def make_git_dir(git_dir: Path, source: LentCommit | None = None) -> None:
    """A repository that borrows the objects of `source`, with its commit checked out as no branch; or an empty one."""
    for name in ("objects/info", "refs/heads", "refs/tags", "info"):
        (git_dir / name).mkdir(parents=True)
    settings = "[core]\n\trepositoryformatversion = {}\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n"
    settings += "\tautocrlf = false\n"
    is_new = source is not None and source.object_format != "sha1"
    extensions = f"[extensions]\n\tobjectformat = {source.object_format}\n" if source and is_new else ""
    (git_dir / "config").write_text(settings.format(int(is_new)) + extensions)
    (git_dir / "HEAD").write_text(f"{source.commit}\n" if source else "ref: refs/heads/main\n")
    if source is not None:
        (git_dir / "objects/info/alternates").write_bytes(os.fsencode(source.lender / "objects") + b"\n")
        if (shallow := source.lender / "shallow").exists():
            shutil.copyfile(shallow, git_dir / "shallow")


def add_words(listed: str) -> tuple[str, ...]:
    """Words for git that stage every change but those in inner repositories. `listed` is the output of `ls-files --stage -z`.

    git would start another git there, which reads what the agent configured.
    """
    inner = (entry.partition("\t")[2] for entry in listed.split("\0") if entry.startswith(_REPOSITORY_MODE))
    return ("add", "-A", "--ignore-errors", "--", ".", *(f":(top,exclude,literal){path}" for path in inner))


def lend_objects(repository: Path, borrower: Path) -> None:
    """Notes in `repository` that `borrower`, a worktree, uses its objects. Raises OSError."""
    note = _note(repository, str(borrower))
    note.parent.mkdir(exist_ok=True)
    note.touch()


def end_loan(repository: Path, borrower: Path) -> None:
    _note(repository, str(borrower)).unlink(missing_ok=True)


def lends_objects(objects: str, borrower: str) -> bool:
    """Tells whether the repository itself says so: a line in the borrower's own files could be forged. Paths are real."""
    return os.path.lexists(_note(Path(objects).parent, borrower))


def _note(repository: Path, borrower: str) -> Path:
    return repository / _BORROWERS / hashlib.sha256(os.fsencode(os.path.realpath(borrower))).hexdigest()[:32]


def borrowed_folders(objects: Path) -> tuple[Path, ...]:
    try:
        with open(os.open(objects / "info/alternates", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            lines = file.read(_MAX_BYTES).replace(b"\0", b"").splitlines()
    except OSError:
        return ()
    return tuple(Path(os.path.realpath(objects / os.fsdecode(line))) for line in lines if line and not line.startswith(b"#"))


def copy_objects(source: Path, target: Path) -> None:
    """Adds what is missing; borrowed objects and links are left out. Raises OSError."""
    for _ in range(_MOST_LOOKS):
        names = [path.relative_to(source).as_posix() for path in _files(source)]
        missing = [name for name in names if re.fullmatch(_OBJECT, name) and not (target / name).exists()]
        if not missing:
            return
        # an index is what makes git look into its pack
        for name in sorted(missing, key=lambda name: name.endswith(".idx")):
            with suppress(FileNotFoundError):  # git packs them meanwhile
                _copy(source / name, target / name)


def copy_refs(source: Path, target: Path) -> None:
    """Raises OSError."""
    # in this order: git writes the packed ones before it removes the others
    for path in (*(path for name in _REFS for path in _files(source / name)), *(source / name for name in _FILES)):
        if path.is_file() and not path.is_symlink() and path.suffix != ".lock":
            with suppress(FileNotFoundError):
                _copy(path, target / path.relative_to(source))


def _files(folder: Path) -> Iterator[Path]:
    """Regular files; no link is followed."""
    for place, _, names in os.walk(folder):
        for name in names:
            path = Path(place, name)
            if path.is_file() and not path.is_symlink():
                yield path


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".{target.name}.partial")
    shutil.copyfile(source, partial, follow_symlinks=False)
    partial.replace(target)
