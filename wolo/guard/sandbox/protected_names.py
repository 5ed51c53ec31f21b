"""Protected names in the directories a command may write to: which are there, which are missing, which must not be trusted."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from wolo.errors import ToolError
from wolo.guard.protected_paths import AT_THE_TOP, RUNS_CODE, fold, is_readable
from wolo.guard.sandbox.mounts import is_below, topmost_missing
from wolo.guard.sandbox.nested_names import Nested, is_protected
from wolo.workspace.root import led_to

_MOST_POINTER_BYTES = 4096
_MOST_SETTINGS_BYTES = 1 << 16


class Names(Struct, frozen=True):
    present: tuple[str, ...] = ()
    """Read-only while a command runs."""
    missing: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    """Those further down that are links: nothing can be mounted on them."""
    below: frozenset[str] = frozenset()
    """All that were found further down."""
    kept_in_place: tuple[str, ...] = ()
    """Folders around repositories further down: were one moved away, another repository could be put where it was."""


def names_in(root: str, home: str, nested: Nested | None = None) -> Names:
    """Of one writable directory; `nested` looks below its top, sooner if it has done so before.

    Raises ToolError for a protected name at the top that is a link: nothing can hold it; and where not all can be found.
    """
    below = (nested or Nested(root)).look()
    goals = [goal for link in below.links if is_below(goal := led_to(link), root) and os.path.lexists(goal)]
    present = [*_at_the_top(root), *below.paths, *goals]
    repositories = [path for path in present if path.endswith("/.git")]
    pointed = [place for path in repositories for place in _git_places(path)]
    there = {fold(path) for path in present}
    wanted = (*AT_THE_TOP, *sorted(RUNS_CODE.difference(map(fold, AT_THE_TOP)))) if root == home else AT_THE_TOP
    named = [path for name in wanted if not os.path.islink(path := f"{root}/{name}")]  # noqa: PTH114  # text all along
    pointed += [path for git in repositories for path in _of_submodules(git)]
    outside_git = (path for path in pointed if not any(is_below(path, each) for each in present))
    awaited = (topmost_missing(path, root) for path in outside_git if is_below(path, root))
    return Names(
        present=tuple(dict.fromkeys([*present, *filter(os.path.lexists, pointed)])),
        missing=tuple(dict.fromkeys([*(path for path in named if fold(path) not in there), *filter(None, awaited)])),
        links=below.links,
        below=frozenset((*below.paths, *below.links)),
        kept_in_place=tuple(dict.fromkeys(folder for path in repositories for folder in folders_between(root, path))),
    )


def folders_between(root: str, path: str) -> Iterator[str]:
    folder = os.path.dirname(path)  # noqa: PTH120  # text all along
    while folder != root:
        yield folder
        folder = os.path.dirname(folder)  # noqa: PTH120  # the same


def _at_the_top(root: str) -> list[str]:
    found = []
    with os.scandir(root) as entries:
        for entry in entries:
            if not is_protected(entry.path):
                continue
            if entry.is_symlink():
                if is_readable(entry.path) and _is_protected_file_of(root, led_to(entry.path)):
                    continue
                raise ToolError(
                    f"sandbox denied: {entry.path} is a link, and the sandbox cannot keep a protected name that is a link "
                    "from being changed. So the command was not run."
                )
            found.append(entry.path)
    return found


def _is_protected_file_of(root: str, path: str) -> bool:
    """`CLAUDE.md` is a link to `AGENTS.md` in many projects: the text is held where it is, the link is not."""
    return is_below(path, root) and is_protected(path) and os.path.isfile(path)  # noqa: PTH113  # text all along


def _git_places(git: str) -> Iterator[str]:
    """Where a `.git` file points, and where that directory shares its settings from."""
    place = git
    if not Path(git).is_dir():
        place = _pointer(git, "gitdir: ")
        if not place:
            return
        yield place
    common = _pointer(f"{place}/commondir", "")
    if common:
        yield common
    yield from _obeyed(common or place, str(Path(git).parent))


def _of_submodules(git: str) -> Iterator[str]:
    """The `.git` of submodules that are not checked out: `git status` of the repository around runs what it says."""
    worktree = os.path.dirname(git)  # noqa: PTH120  # text all along
    try:
        with open(f"{worktree}/.gitmodules", "rb") as opened:
            settings = os.fsdecode(opened.read(_MOST_SETTINGS_BYTES))
    except OSError:
        return
    for named in re.findall(r"(?im)^[ \t]*path[ \t]*=[ \t]*([^\n\0]+)", settings):
        place = led_to(Path(worktree, named.strip().strip('"')))
        if is_below(place, worktree) and Path(place).is_dir():
            yield f"{place}/.git"


def _obeyed(place: str, worktree: str) -> Iterator[str]:
    """Hooks and settings in the workspace that git's own settings point to, also such as are not there yet."""
    try:
        with open(f"{place}/config", "rb") as opened:
            settings = os.fsdecode(opened.read(_MOST_SETTINGS_BYTES))
    except OSError:
        return
    for name, value in re.findall(r"(?im)^[ \t]*(hookspath|path|attributesfile)[ \t]*=[ \t]*([^\n\0]+)", settings):
        base = place if name.lower() == "path" else worktree
        named = re.split(r"[ \t][;#]", value.strip())[0].strip().strip('"')
        goal = led_to(Path(base, os.path.expanduser(named)))  # noqa: PTH111  # text all along
        if not named.startswith("%(") and not is_below(worktree, goal):
            yield goal


def _pointer(file: str, prefix: str) -> str:
    """The existing directory that a small file names; empty when it names none."""
    try:
        if not stat.S_ISREG(os.lstat(file).st_mode):
            return ""
        with open(file, "rb") as opened:
            text = os.fsdecode(opened.read(_MOST_POINTER_BYTES)).strip()
    except OSError:
        return ""
    if not text.startswith(prefix) or "\0" in text:
        return ""
    place = os.path.realpath(Path(file).parent / text.removeprefix(prefix))
    return place if Path(place).is_dir() else ""
