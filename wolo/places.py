"""Where things lie: the directories of the user, and WOLO_HOME that puts them all under one roof."""

from __future__ import annotations

import os
import pwd
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Places:
    config: Path
    """`config.toml`, `permissions.toml`, the user's own `AGENTS.md`."""
    data: Path
    """`wolo.db` and `blobs/`: what must survive."""
    cache: Path
    """Weights and anything that can be fetched again."""
    state: Path
    """History, locks, logs."""

    @property
    def own(self) -> tuple[Path, ...]:
        """All of them: the model changes nothing there in any mode."""
        return (self.config, self.data, self.state, self.cache)


def find_places(environ: dict[str, str] | None = None) -> Places:
    env = os.environ if environ is None else environ
    if home := env.get("WOLO_HOME"):
        root = Path(home).expanduser().absolute()
        return Places(root / "config", root / "data", root / "cache", root / "state")
    from platformdirs import PlatformDirs  # noqa: PLC0415  # not needed when WOLO_HOME is set

    dirs = PlatformDirs("wolo", appauthor=False)
    try:
        return Places(Path(dirs.user_config_dir), Path(dirs.user_data_dir), Path(dirs.user_cache_dir), Path(dirs.user_state_dir))
    except RuntimeError:  # nobody knows a home of this user
        root = find_home()
        return Places(root / ".config/wolo", root / ".local/share/wolo", root / ".cache/wolo", root / ".local/state/wolo")


def make_private(folder: Path) -> None:
    """Makes it and all that is missing above it for the owner alone, whatever the umask says. Raises OSError.

    The umask stays: it is the one of the user's own files. `mkdir` with `parents` would give it the folders above.
    """
    for missing in reversed([place for place in (folder, *folder.parents) if not place.exists()]):
        missing.mkdir(0o700, exist_ok=True)
        missing.chmod(0o700)
    folder.mkdir(0o700, exist_ok=True)


def settings_folder() -> Path:
    """Where a program runs that the user's settings name: a relative name is a file there, and never one of a checkout."""
    config = find_places().config
    return config if config.is_dir() else find_home()


def find_home() -> Path:
    """`/` where nobody knows one: so containers have it for a user without a name."""
    named = os.environ.get("HOME", "")
    if named.startswith("/"):
        return Path(named)
    try:
        return Path("/", pwd.getpwuid(os.geteuid()).pw_dir)
    except KeyError:
        return Path("/")
