"""Builds the environment of commands and finds trusted programs on the PATH."""

from __future__ import annotations

import fnmatch
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

# Nobody is at the keyboard: whatever opens an editor or asks a question must end at once, and visibly. A commit without a
# message and `rebase --continue` accept the text as it is (`true`); the plan of an interactive rebase does not (`false`:
# `true` would carry it out unread). Vim would wait for ever on a pipe: it leaves once its `-c` commands are done, with an
# error. `CI` is not set: package managers refuse to update their lock files under it.
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
    """`also`: more names, `*` allowed. A name that looks like a secret or a hook does not pass, asked for or not."""
    wanted = (*_PASSED, *also)
    passed = {name: value for name, value in environ.items() if _matches(name, wanted) and not never_passes(name)}
    return {"PATH": "/usr/local/bin:/usr/bin:/bin", **passed, **_UNATTENDED}


def persons_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """For a command of the person's own: all there is, but no keyboard either."""
    return {**environ, **_UNATTENDED}


def never_passes(name: str) -> bool:
    """It looks like a secret or a hook."""
    return _matches(name, _NEVER_PASSED)


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch.fnmatchcase(name.upper(), pattern.upper()) for pattern in patterns)


def find_program(name: str, workspace: Workspace) -> str | None:
    """The first on the PATH that neither lies in the workspace nor leads into it.

    A directory of the PATH that is no full path (`.`) is the checkout itself, or will be after the next `cd`.
    """
    checkouts = [folder for folder in (workspace.root, *workspace.extra) if may_be_project(folder)]
    for folder in os.get_exec_path():
        path = Path(folder, name)
        if not path.is_absolute() or not os.access(path, os.X_OK) or path.is_dir():
            continue
        real = [Path(os.path.realpath(each)) for each in (folder, path)]
        if not any(each.is_relative_to(checkout) for each in real for checkout in checkouts):
            return str(path)
    return None
