"""Builds the environment of commands and finds trusted programs on the PATH."""

from __future__ import annotations

import fnmatch
import functools
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from wolo.workspace.root import Workspace, may_be_project

_PASSED = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "LC_*", "TZ", "TMPDIR")

_NEVER_PASSED = (
    *("*KEY*", "*TOKEN*", "*SECRET*", "*PASS*", "*CRED*", "*AUTH*", "*PRIVATE*"),
    # These make a shell or a program run or load something of their choice.
    *("BASH_ENV", "ENV", "BASH_FUNC_*", "SHELLOPTS", "BASHOPTS", "LD_*", "DYLD_*", "GIT_*", "PYTHON*", "NODE_OPTIONS"),
)

# No keyboard: whatever opens an editor or asks a question must end at once, visibly. A commit without a message and `rebase
# --continue` accept the text as it is (`true`); the plan of an interactive rebase does not (`false`: `true` would carry it out
# unread). Vim would wait for ever on a pipe: it quits with an error after its `-c` commands. `CI` is not set: package managers
# refuse to update lock files under it.
_UNATTENDED = {
    "TERM": "dumb",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "MANPAGER": "cat",
    "EDITOR": "false",
    "VISUAL": "false",
    "VIMINIT": "set noswapfile | autocmd VimEnter * cquit",
    "GIT_EDITOR": "true",
    "GIT_SEQUENCE_EDITOR": "false",
    "GIT_TERMINAL_PROMPT": "0",
    "DEBIAN_FRONTEND": "noninteractive",
    "PIP_NO_INPUT": "1",
    "COMPOSER_NO_INTERACTION": "1",
}


def command_environment(environ: Mapping[str, str], also: Iterable[str] = ()) -> dict[str, str]:
    """Selects variables for a command. `also` names more, with `*`; names of secrets and hooks never pass."""
    wanted = (*_PASSED, *also)
    passed = {name: value for name, value in environ.items() if _matches(name, wanted) and not never_passes(name)}
    return {"PATH": "/usr/local/bin:/usr/bin:/bin", **passed, **_UNATTENDED}


def user_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """All variables, without anything that waits for a keyboard; for a command of the user."""
    return {**environ, **_UNATTENDED}


def never_passes(name: str) -> bool:
    """The name looks like a secret or a hook."""
    return _matches(name, _NEVER_PASSED)


@functools.lru_cache(maxsize=1024)
def _matches(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatch.fnmatchcase(name.upper(), pattern.upper()) for pattern in patterns)


def find_program(name: str, workspace: Workspace) -> str | None:
    """Finds a program on the PATH that is not in the workspace, also not through a link.

    Relative directories on the PATH (`.`) are skipped: they are the checkout, or will be after a `cd`.
    """
    checkouts = [folder for folder in (workspace.root, *workspace.extra) if may_be_project(folder)]
    for folder in os.get_exec_path():
        path = f"{folder}/{name}"
        if not folder.startswith("/") or not os.access(path, os.X_OK) or Path(path).is_dir():
            continue
        real = [Path(os.path.realpath(each)) for each in (folder, path)]
        if not any(each.is_relative_to(checkout) for each in real for checkout in checkouts):
            return path
    return None
