"""Locates wolo's folders: the user's platform folders, or all below WOLO_HOME."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from msgspec import Struct, field

from wolo.operating_system import account_home


class Places(Struct, frozen=True):
    config: Path
    """`config.toml`, `permissions.toml`, the user's `AGENTS.md`."""
    data: Path
    """`wolo.db` and `blobs/`: data to back up."""
    cache: Path
    """Model weights and other files that can be downloaded again."""
    state: Path
    """History, locks, logs."""
    users_data: Path | None = None
    """The usual folder of the user, where `data` is another one."""

    @property
    def plugins(self) -> Path:
        return (self.users_data or self.data) / "plugins"

    @property
    def plugin_index(self) -> Path:
        """Lists the installed plugins; exists once there was one."""
        return self.plugins / "installed.json"

    @property
    def worktrees(self) -> Path:
        """Records of the worktrees of sessions; the files are where `worktree_files` says."""
        return (self.users_data or self.data) / "worktrees"

    @property
    def own(self) -> tuple[Path, ...]:
        """Folders that the model cannot change in any mode."""
        folders = (self.config, self.data, self.state, self.cache)
        return folders if self.users_data is None else (*folders, self.users_data)


class Notices:
    """Collects messages for the user, in their order, while files are read.

    Readers get it in place of a second return value: most have nothing to say, and one message may come from deep below.
    """

    def __init__(self) -> None:
        self._texts: list[str] = []

    def add(self, text: str) -> None:
        self._texts.append(text)

    def extend(self, texts: Iterable[str]) -> None:
        self._texts.extend(texts)

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)


class Site(Struct, frozen=True):
    """One start of wolo: where it runs, and with which folders of its own. `find_site` makes it."""

    places: Places
    root: Path
    """Of the project; a real path."""
    cwd: Path
    """As it was named; may lead over a link."""
    environ: Mapping[str, str]
    """As inherited, without stored keys."""
    notices: Notices = field(default_factory=Notices)
    """About everything that is read here; replace it to get those of one step."""

    @property
    def real_cwd(self) -> Path:
        return Path(os.path.realpath(self.cwd))


DATA_VARIABLE = "WOLO_DATA"
"""Names a folder for sessions and undo data instead of the usual one."""


_LIBRARY = "Library/Application Support"
_USUAL = {
    "linux": (".config", ".local/share", ".cache", ".local/state"),
    "darwin": (_LIBRARY, _LIBRARY, "Library/Caches", _LIBRARY),
}
"""Below the home directory, for settings, data, cache and state, where no absolute path is in the XDG variable.

https://specifications.freedesktop.org/basedir/latest/"""


def find_places(environ: Mapping[str, str] | None = None) -> Places:
    env = os.environ if environ is None else environ
    usual = _usual_places(env)
    if data := env.get(DATA_VARIABLE):
        return Places(usual.config, Path(data).expanduser().absolute(), usual.cache, usual.state, usual.data)
    return usual


def _usual_places(env: Mapping[str, str]) -> Places:
    if home := env.get("WOLO_HOME"):
        root = Path(home).expanduser().absolute()
        return Places(root / "config", root / "data", root / "cache", root / "state")
    usual = _USUAL.get(sys.platform)
    if usual is None or hasattr(sys, "getandroidapilevel") or env.get("ANDROID_DATA"):
        from platformdirs import PlatformDirs  # noqa: PLC0415  # costs as much as reading all settings

        dirs = PlatformDirs("wolo", appauthor=False)
        return Places(Path(dirs.user_config_dir), Path(dirs.user_data_dir), Path(dirs.user_cache_dir), Path(dirs.user_state_dir))
    variables = ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME")
    named = (env.get(variable, "") for variable in variables)
    return Places(
        *(Path(name if name.startswith("/") else find_home() / below, "wolo") for name, below in zip(named, usual, strict=True))
    )


def make_private(folder: Path) -> None:
    """Creates the folder and missing parents with mode 0700, whatever the umask. Raises OSError.

    `mkdir` with `parents` would apply the umask to the parents, and the umask must stay for the user's files.
    """
    for missing in reversed([place for place in (folder, *folder.parents) if not place.exists()]):
        missing.mkdir(0o700, exist_ok=True)
        missing.chmod(0o700)
    folder.mkdir(0o700, exist_ok=True)


def settings_folder() -> Path:
    """Folder in which programs named in the user's settings run, so that relative names never mean files of a checkout."""
    config = find_places().config
    return config if config.is_dir() else find_home()


def find_home() -> Path:
    """`/` if no home is known, as in containers for a user without a name."""
    named = os.environ.get("HOME", "")
    if named.startswith("/"):
        return Path(named)
    return Path("/", account_home())


TOOL_PACKAGES = "entry-points"
"""File of the cache that lists installed packages with tools and extensions."""


def package_folders() -> list[str]:
    return [folder for folder in sys.path if folder.endswith("-packages")]


def installation_state() -> str:
    """Changes when a package is installed or removed."""
    state = []
    for folder in package_folders():
        with suppress(OSError):
            state.append(str(os.stat(folder).st_mtime_ns))  # noqa: PTH116  # fast
    return " ".join(state)
