"""What the sandbox lets a command see and change: one profile, which each backend puts up as far as it can."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from wolo.guard import protected_paths
from wolo.guard.sandbox.needed import closed_folders, is_hidden, needed_in, secrets_of_tools
from wolo.places import find_home

_BROWSERS_AND_KEYRINGS = """
.mozilla .librewolf .waterfox .zen .thunderbird .config/google-chrome .config/chromium .config/BraveSoftware
.config/microsoft-edge .config/vivaldi .config/opera
.cache/mozilla .cache/google-chrome .cache/chromium snap/firefox snap/chromium .var/app
.local/share/keyrings .local/share/kwalletd .config/1Password .config/Bitwarden .config/keepassxc .config/github-copilot
.claude.json .claude/.credentials.json .codex/auth.json .gemini/oauth_creds.json .bitcoin .ethereum .electrum
Library/Keychains Library/Cookies Library/Application\\ Support/Google Library/Application\\ Support/Firefox
"""
_HISTORIES = """
.bash_history .zsh_history .sh_history .python_history .node_repl_history .psql_history .mysql_history .sqlite_history
.lesshst .viminfo
"""
VERSION = 4
"""Of the profile: a new one must prove itself again."""
IN_HOME = tuple(name.replace("\0", " ") for name in (_BROWSERS_AND_KEYRINGS + _HISTORIES).replace("\\ ", "\0").split())
"""Below the home directory, beside what `protected` knows by name."""
OF_THE_SYSTEM = ("/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/ssl/private", "/etc/kubernetes")
"""Readable for root, and no command's business."""
_LOOKED_THROUGH = ("", ".config", ".local/share", ".docker")
_MOST_ENTRIES = 2000


class Profile(Struct, frozen=True, kw_only=True):
    """All paths are absolute and real; what is named need not be there."""

    home: str
    writable: tuple[str, ...]
    """The workspace and the directories added to it."""
    hidden: tuple[str, ...]
    """Secrets; a command finds nothing there."""
    own: tuple[str, ...]
    """Wolo's places: hidden as well, and not to be made by a command where they are missing."""
    shown: tuple[str, ...]
    """Readable although it lies in something hidden."""
    kept: tuple[str, ...] = ()
    """What rules do not let the model write, where it lies in what is writable."""
    closed: tuple[str, ...] = ()
    """Folders of which nothing is seen but what is needed: the home directory, and those around the workspace."""
    needed: tuple[str, ...] = ()
    """Readable although it lies in one of them, or in a folder that is replaced, such as `/tmp`."""
    state: Path
    """Where wolo keeps what it needs for the walls: the private folder of each conversation, traces of placeholders."""


def hides(profile: Profile, path: str) -> bool:
    """Whether a command finds nothing there, although there is something, or a folder to put something into."""
    real = os.path.realpath(path)
    return is_hidden(real, (*profile.closed, *profile.hidden, *profile.own), (*profile.needed, *profile.shown, *profile.writable))


def profile_for(
    roots: Iterable[Path], own: Iterable[Path], state: Path, *, shown: Iterable[Path] = (), home: Path | None = None
) -> Profile:
    """`own` are wolo's places; `shown` what the model may read in them."""
    writable = tuple(dict.fromkeys(map(os.path.realpath, roots)))
    at_home = os.path.realpath(home or find_home())
    secrets = dict.fromkeys(map(os.path.realpath, [*secrets_in(at_home), *secrets_of_tools(at_home), *OF_THE_SYSTEM]))
    needed = [path for path in needed_in(writable, at_home) if path not in secrets]
    return Profile(
        home=at_home,
        writable=writable,
        hidden=tuple(path for path in secrets if path not in writable),
        own=tuple(dict.fromkeys(map(os.path.realpath, own))),
        shown=tuple(dict.fromkeys(map(os.path.realpath, shown))),
        closed=tuple(closed_folders(writable, at_home)),
        needed=tuple(needed),
        state=Path(os.path.realpath(state)),
    )


def environment(tmp: str, backend: str) -> dict[str, str]:
    """What a command is told besides its environment: where it may write what no one keeps."""
    return {
        "TMPDIR": tmp,
        "XDG_CACHE_HOME": f"{tmp}/.cache",
        "XDG_STATE_HOME": f"{tmp}/.state",
        "npm_config_cache": f"{tmp}/.cache/npm",
        "WOLO_SANDBOX": backend,
    }


def secrets_in(home: str) -> list[str]:
    """Places of the home directory that hold passwords, keys, cookies or what was typed; only such that are there."""
    found = [path for name in IN_HOME if os.path.lexists(path := f"{home}/{name}")]
    for folder in _LOOKED_THROUGH:
        try:
            with os.scandir(f"{home}/{folder}" if folder else home) as entries:
                names = [entry.path for entry, _ in zip(entries, range(_MOST_ENTRIES), strict=False)]
        except OSError:
            continue
        found += [path for path in names if protected_paths.is_secret(path) or protected_paths.is_secret(f"{path}/")]
    return found
