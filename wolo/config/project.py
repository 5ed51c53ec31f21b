"""Finds files of a project that would change how wolo works, and reads them once its folder is trusted."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from wolo.config.dotted_keys import Key
from wolo.config.files import OTHERS_WRITE
from wolo.errors import ConfigError, ToolError
from wolo.foreign_places import PERMISSION_RULES, UNREAD, Place, first_names, paths_of, present
from wolo.operating_system import file_mode, user_id
from wolo.places import find_home
from wolo.workspace.files.safe_open import open_regular, read_all
from wolo.workspace.root import may_be_project

MAX_BYTES = 256 * 1024
_MOST_NAMED = 6


class Kind(Struct, frozen=True):
    name: str
    """Shown to the user."""
    places: tuple[str, ...]
    """Locations in any folder from the root to the working directory."""
    own: tuple[str, ...] = ()
    """The user's locations, below the home directory."""


def _kind(name: str) -> Kind:
    return Kind(name, paths_of(name), paths_of(name, is_users=True))


SETTINGS, HOOKS, MCP_SERVERS = _kind("settings"), _kind("hooks"), _kind("MCP servers")
SKILLS, COMMANDS, AGENTS, TOOLS = _kind("skills"), _kind("commands"), _kind("agents"), _kind("tools")
CODEX_PROMPTS = ".codex/prompts"
"""Codex calls these `/prompts:NAME`."""
EXTENSIONS, OUTPUT_STYLES, RULES = _kind("extensions"), _kind("output-styles"), _kind(PERMISSION_RULES)
KINDS = (SETTINGS, HOOKS, MCP_SERVERS, RULES, SKILLS, COMMANDS, AGENTS, TOOLS, EXTENSIONS, OUTPUT_STYLES)


class ProjectFile(Struct, frozen=True):
    kind: str
    """Several, joined by `and`, for a file that holds them all."""
    path: Path
    """The file or folder itself, or a link on the way to it."""


def find(root: Path, cwd: Path) -> tuple[ProjectFile, ...]:
    """Takes real paths. Finds by name only; opens, lists and follows nothing below the folders themselves."""
    kinds: dict[Path, dict[str, None]] = {}
    for folder in folders(root, cwd):
        names = first_names(folder)
        for kind in KINDS if names else ():
            for place in present(kind.places, names):
                if path := _find_path(folder, place):
                    kinds.setdefault(path, {})[kind.name if path == folder / place else "a link"] = None
    return tuple(ProjectFile(" and ".join(names), path) for path, names in kinds.items())


def find_unread(root: Path, cwd: Path) -> list[tuple[Path, Place]]:
    """Files of other agents that nothing reads, by name only."""
    unread = []
    for folder, is_users in (*((each, False) for each in folders(root, cwd)), (find_home(), True)):
        names = first_names(folder)
        unread += [
            (folder / path, place)
            for path, place in UNREAD
            if place.is_users is is_users and path.partition("/")[0] in names and os.path.lexists(f"{folder}/{path}")
        ]
    return unread


def folders(root: Path, cwd: Path) -> list[Path]:
    """Folders that may contain project files, from the root to `cwd`, the nearest last."""
    if not cwd.is_relative_to(root):
        return []
    depth = len(cwd.parts) - len(root.parts)
    return [folder for folder in reversed((cwd, *cwd.parents[:depth])) if may_be_project(folder)]


def settings_files(root: Path, cwd: Path) -> list[Path]:
    """For trusted projects: follows links; `read_file` checks their targets."""
    files = (folder / place for folder in folders(root, cwd) for place in SETTINGS.places)
    return [path for path in files if _mode_of(path) is not None]


def name_files(brought: Sequence[ProjectFile], root: Path) -> str:
    """Names relative to the root, in one line."""
    names = [on_one_line(each.path.relative_to(root)) for each in brought]
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def on_one_line(path: Path) -> str:
    """Escapes line breaks in names."""
    shown = str(path)
    return shown if shown.isprintable() else shown.encode("unicode_escape", "backslashreplace").decode()


def read_file(path: Path, root: Path, most_bytes: int = MAX_BYTES) -> bytes:
    """For trusted projects. Raises ConfigError unless it is a regular file inside the project that no other user may write."""
    real = Path(os.path.realpath(path))
    if not real.is_relative_to(root):
        raise ConfigError(f"{path} is not read: it is a link to a file outside {root}.", hint="Put the file itself there.")
    try:
        handle = open_regular(real)
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}.") from error
    except ToolError as error:
        raise ConfigError(f"{path} is not read: it is not a regular file.", hint=error.message) from error
    try:
        status = os.fstat(handle)
        if status.st_uid not in (user_id(), 0):
            raise ConfigError(f"{path} is not read: it belongs to another user.", hint=f"To own it: chown {user_id()} '{path}'")
        if file_mode(status) & OTHERS_WRITE:
            raise ConfigError(
                f"{path} is not read: every user of this machine can write it.",
                hint=f"If no one has tampered with it: chmod o-w '{path}'",
            )
        if status.st_size > most_bytes:
            raise ConfigError(f"{path} is not read: it is larger than {most_bytes // 1024} KiB.")
        return read_all(handle, most_bytes)
    finally:
        os.close(handle)


def _find_path(folder: Path, place: str) -> Path | None:
    path = folder
    for name in place.split("/"):
        path /= name
        if (mode := _mode_of(path)) is None:
            return None
        if stat.S_ISLNK(mode):
            break
    return path


def _mode_of(path: Path) -> int | None:
    """None if it does not exist. An inaccessible path may exist, and reading it reports the reason."""
    try:
        return path.lstat().st_mode
    except PermissionError:
        return 0
    except OSError:
        return None


def _earlier_in(*words: str) -> Callable[[Any, Any], Any]:
    """Returns the stricter of two words, ordered from strict to loose."""
    return lambda held, wanted: min(held, wanted, key=words.index)


def _lower(held: float | None, limit: float | None) -> float | None:
    return min((each for each in (held, limit) if each is not None), default=None)


STRICTER: Mapping[Key, Callable[[Any, Any], Any]] = {
    ("mode",): _earlier_in("plan", "ask", "edit", "auto", "yolo"),
    ("sandbox", "backend"): _earlier_in("required", "auto", "off"),
    ("limits", "max_turns"): _lower,
    ("limits", "max_cost"): _lower,
    ("limits", "max_tokens"): _lower,
    ("limits", "max_seconds"): _lower,
    ("limits", "max_answer_bytes"): _lower,
    ("tasks", "timeout_s"): _lower,
    ("tasks", "max_turns"): _lower,
    ("shell", "inherit"): _earlier_in("none", "core", "all"),
    ("shell", "hide"): lambda held, more: (*held, *more),
    ("sandbox", "denied_domains"): lambda held, more: (*held, *more),
}
"""Returns the stricter of the current and the project's value."""
MORE_RULES = (("permissions", "deny"), ("permissions", "ask"))
"""Settings to which a project may add rules."""
