"""Defines what the sandbox lets commands see and change, for every backend.

The home directory and folders around the workspace are closed as a whole, except tools and what the workspace refers to: not
every secret in them can be found.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from wolo.guard import protected_paths
from wolo.guard.sandbox.mounts import is_below
from wolo.guard.sandbox.python_launcher import bare_python
from wolo.operating_system import os
from wolo.places import find_home
from wolo.workspace.root import resolve_path

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
VERSION = 8
"""Part of the cache key of probes: bump it when the profile or the names of gaps change."""
IN_HOME = tuple(name.replace("\0", " ") for name in (_BROWSERS_AND_KEYRINGS + _HISTORIES).replace("\\ ", "\0").split())
"""Paths below the home directory, in addition to names in `protected_paths`."""
OF_THE_SYSTEM = ("/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/ssl/private", "/etc/kubernetes")
"""Secrets that root can read."""
_LOOKED_THROUGH = ("", ".config", ".local/share", ".docker")
_MOST_ENTRIES = 2000


class SandboxProfile(Struct, frozen=True, kw_only=True):
    """All paths are absolute and real, and may be missing."""

    home: str
    writable: tuple[str, ...]
    """The workspace and added directories."""
    hidden: tuple[str, ...]
    """Secrets; commands see nothing there."""
    own: tuple[str, ...]
    """Wolo's folders: hidden, and commands cannot create missing ones."""
    shown: tuple[str, ...]
    """Readable inside hidden folders."""
    kept: tuple[str, ...] = ()
    """Writable paths that rules protect from the model."""
    closed: tuple[str, ...] = ()
    """Folders that are empty except for `needed`: the home directory, and those around the workspace."""
    needed: tuple[str, ...] = ()
    """Readable inside closed folders, or inside replaced ones such as `/tmp`."""
    state: Path
    """Storage of the sandbox: private folders, and what was set aside."""
    is_copy: bool = False
    """The writable directories are copies that are thrown away: no name in them is protected."""


def hides(profile: SandboxProfile, path: str) -> bool:
    """Tells whether a command sees nothing there, although the path or its folder exists."""
    real = resolve_path(path)
    if not any(is_below(real, folder) for folder in (*profile.closed, *profile.hidden, *profile.own)):
        return False
    if any(is_below(real, each) for each in (*profile.needed, *profile.shown, *profile.writable)):
        return False
    return os.path.lexists(real) or os.path.isdir(os.path.dirname(real))  # text all along


def profile_for(
    roots: Iterable[Path],
    own: Iterable[Path],
    state: Path,
    *,
    shown: Iterable[Path] = (),
    home: Path | None = None,
    is_trusted: bool = False,
) -> SandboxProfile:
    """`own` are wolo's folders; `shown` the paths in them that the model may read. `is_trusted`: by the user, the workspace."""
    writable = tuple(dict.fromkeys(map(resolve_path, roots)))
    at_home = resolve_path(home or find_home())
    of_tools = _present(at_home, SECRETS_OF_TOOLS)
    secrets = dict.fromkeys(map(resolve_path, [*secrets_in(at_home), *of_tools, *OF_THE_SYSTEM]))
    needed = [path for path in paths_commands_need(writable, at_home, is_trusted=is_trusted) if path not in secrets]
    return SandboxProfile(
        home=at_home,
        writable=writable,
        hidden=tuple(path for path in secrets if path not in writable),
        own=tuple(dict.fromkeys(map(resolve_path, own))),
        shown=tuple(dict.fromkeys(map(resolve_path, shown))),
        closed=tuple(closed_folders(writable, at_home)),
        needed=tuple(needed),
        state=Path(resolve_path(state)),
    )


def secrets_in(home: str) -> list[str]:
    """Existing paths in the home directory that contain passwords, keys, cookies or histories."""
    secrets = _present(home, IN_HOME)
    for folder in _LOOKED_THROUGH:
        try:
            with os.scandir(f"{home}/{folder}" if folder else home) as entries:
                names = [entry.path for entry, _ in zip(entries, range(_MOST_ENTRIES), strict=False)]
        except OSError:
            continue
        secrets += [path for path in names if protected_paths.is_secret(path) or protected_paths.is_secret(f"{path}/")]
    return secrets


_TOOLS = """
.asdf .bun .cabal .cargo .conan .conan2 .conda .deno .dotnet .elan .elixir .emscripten .espressif .flutter .fnm .gem .ghcup
.goenv .gradle .gvm .hex .ivy2 .jbang .jenv .julia .juliaup .krew .linuxbrew .luarocks .m2 .mix .nix-defexpr .nix-profile
.nodenv .npm .npm-global .nuget .nvm .opam .perl5 .platformio .pnpm-store .poetry .proto .pub-cache .pyenv .rbenv .roswell
.rustup .rvm .sbt .sdkman .stack .swiftly .swiftpm .tfenv .vcpkg .volta .wasmer .wasmtime .yarn Android/Sdk anaconda3 flutter go
mambaforge micromamba miniconda3 miniforge3 perl5 quicklisp .cache/bazel .cache/ccache .cache/composer .cache/cypress
.cache/Cypress .cache/deno .cache/go-build .cache/huggingface .cache/ms-playwright .cache/node .cache/nix .cache/pip .cache/pnpm
.cache/pre-commit .cache/puppeteer .cache/pypoetry .cache/torch .cache/uv .cache/yarn .keras .matplotlib .nltk_data .terminfo
.fonts .local/bin .local/include .local/lib .local/opt .local/pipx .local/share/coursier .local/share/fnm .local/share/fonts
.local/share/gem .local/share/hatch .local/share/mise .local/share/nvm .local/share/pipx .local/share/pnpm .local/share/pypoetry
.local/share/rtx .local/share/swiftly .local/share/umake .local/share/uv .local/share/virtualenv .local/share/virtualenvs
.local/state/nix .gitconfig .gitignore .gitignore_global .gitattributes .gitmessage .config/git .editorconfig .clang-format
.pylintrc .prettierrc .python-version .node-version .nvmrc .tool-versions .ruby-version .mise.toml .config/mise .config/nix
.config/nixpkgs .config/pip .config/uv .config/ruff .config/black .config/mypy .config/matplotlib .config/fontconfig
.config/flutter .config/yarn .config/pnpm .config/go .config/bundle .config/composer .config/pypoetry
"""
TOOLS = tuple(_TOOLS.split())
"""Programs in the home directory with their libraries, caches, and settings without passwords."""
_SECRETS_OF_TOOLS = """
.cargo/credentials .cargo/credentials.toml .gem/credentials .m2/settings.xml .m2/settings-security.xml .gradle/gradle.properties
.gradle/init.gradle .ivy2/.credentials .sbt/.credentials .sbt/1.0/credentials.sbt .hex/hex.config .nuget/NuGet/NuGet.Config
.config/composer/auth.json .config/pip/pip.conf .config/pypoetry/auth.toml .config/git/credentials .config/bundle/config
.config/uv/credentials.toml .local/share/uv/credentials .conan/.conan.db .conan2/credentials.json .cache/huggingface/token
.cache/huggingface/stored_tokens .platformio/appstate.json .config/mise/age.txt .krew/receipts .pub-cache/credentials.json
.yarn/berry/index.lock .npm/_logs .pip/pip.conf
"""
SECRETS_OF_TOOLS = tuple(_SECRETS_OF_TOOLS.split())
_SHARED = """
/ /bin /boot /dev /etc /lib /lib64 /nix /nix/store /proc /run /sbin /sys /tmp /usr /usr/lib /usr/local /usr/share /var /var/lib
/var/tmp /System /Library /private /private/tmp /private/var
"""
_SYSTEM = frozenset(_SHARED.split())
"""System folders, which contain no other projects."""
_ENVIRONMENTS = (".venv", "venv", "env", ".env", ".direnv/python")
_MOST_BYTES = 4096


def closed_folders(roots: Sequence[str], home: str) -> list[str]:
    """Real paths. Folders that are part of a writable directory stay open."""
    others = [home, resolve_path("/home"), *(os.path.dirname(root) for root in roots)]  # text all along
    wanted = (folder for folder in others if folder not in _SYSTEM and Path(folder).is_dir())
    return [folder for folder in dict.fromkeys(wanted) if not any(is_below(folder, root) for root in roots)]


def paths_commands_need(roots: Sequence[str], home: str, *, is_trusted: bool = False) -> list[str]:
    """Paths that commands need inside closed folders and folders for temporary files."""
    shared = _SYSTEM - {"/usr/local"} | {home, f"{home}/.local", f"{home}/.config", f"{home}/.cache"}
    programs: list[str] = []
    for folder in (resolve_path(folder) for folder in os.get_exec_path() if folder.startswith("/")):
        above = os.path.dirname(folder)  # text all along
        programs.append(folder if above in shared else above)  # the folder above contains the libraries
    python = bare_python()
    pythons = [resolve_path(place) for place in (sys.base_prefix, sys.prefix)]
    if python:
        pythons.append(resolve_path(Path(python).parent.parent))
    environments = [f"{root}/{name}" for root in roots for name in _ENVIRONMENTS]
    environments += [os.path.dirname(folder) for folder in os.get_exec_path()]  # the same
    pointed = (
        *filter(None, map(_python_of, environments)),
        *(path for root in roots for path in _repositories(root, is_trusted)),
    )
    others = (path for path in (*programs, *pythons, *pointed) if os.path.lexists(path))
    needs = dict.fromkeys((*_present(home, TOOLS), *others))
    return [path for path in needs if not is_below(home, resolve_path(path))]


def _present(home: str, names: Sequence[str]) -> list[str]:
    """Full paths of the names that exist. One listing in place of a look for each."""
    try:
        first = {*os.listdir(home)}  # at every start
    except OSError:  # it may be entered and not listed
        first = {name.partition("/")[0] for name in names}
    return [path for name in names if name.partition("/")[0] in first and os.path.lexists(path := f"{home}/{name}")]


def _python_of(environment: str) -> str:
    """The base Python of a virtual environment; empty if it is not one."""
    found = re.search(r"(?m)^home\s*=\s*(/.+)$", _read(f"{environment}/pyvenv.cfg"))
    folder = resolve_path(found[1].strip()) if found else ""
    is_python = os.path.basename(folder) == "bin" and os.access(f"{folder}/python3", os.X_OK)  # the same
    return os.path.dirname(folder) if is_python else ""  # the same


def _repositories(root: str, is_trusted: bool) -> Iterator[str]:
    """Repositories that a worktree belongs to, or that share objects with it."""
    place = f"{root}/.git"
    pointer = _read(place)
    if pointer.startswith("gitdir: "):
        place = resolve_path(Path(root, pointer.removeprefix("gitdir: ").strip()))
        # The repository itself must name the worktree: what a checkout claims could be forged.
        named = _read(f"{place}/gitdir").strip()
        if not named and (match := re.search(r"(?m)^\s*worktree\s*=\s*(\S.*)$", _read(f"{place}/config"))):
            named = f"{match[1].strip()}/.git"
        if not named or resolve_path(Path(place, named)) != f"{root}/.git":
            return
        common = _read(f"{place}/commondir").strip()
        if common:
            common = resolve_path(Path(place, common))
            # A folder that the workspace brings could name any repository as its own.
            if os.path.dirname(place) != f"{common}/worktrees":  # the same
                return
        place = common or place
        yield place
    if not os.path.lexists(f"{place}/objects/info/alternates"):
        return
    from wolo.workspace.git_objects import borrowed_folders, lends_objects  # noqa: PLC0415  # few repositories borrow

    for other in map(str, borrowed_folders(Path(place, "objects"))):
        if os.path.basename(other) == "objects" and (is_trusted or lends_objects(other, root)):  # the same
            yield other


def _read(path: str) -> str:
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            return os.fsdecode(file.read(_MOST_BYTES)).replace("\0", "")
    except OSError:
        return ""
