"""Detects how wolo was installed, and the commands to update or extend it."""

from __future__ import annotations

import json
import shlex
import sys
from importlib import metadata
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from msgspec import Struct

PACKAGE = "wolo-cli"
EMBEDDED_EXTRA = "local"
"""The engine of the embedded model."""


class Installation(Struct, frozen=True):
    prefix: Path
    python: str
    installer: str = ""
    """From INSTALLER of the package metadata."""
    origin: dict[str, Any] = {}
    """From direct_url.json of the package metadata; empty: installed from an index."""

    @property
    def folder(self) -> Path | None:
        """The source checkout."""
        address = str(self.origin.get("url", ""))
        is_local = "dir_info" in self.origin and address.startswith("file:")
        return Path(url2pathname(urlsplit(address).path)) if is_local else None

    @property
    def source(self) -> str:
        version_control = self.origin.get("vcs_info")
        is_cloned = isinstance(version_control, dict)
        return f"{version_control.get('vcs', 'git')}+{self.origin['url']}" if is_cloned else ""  # type: ignore[union-attr]  # is_cloned


def this_installation() -> Installation:
    try:
        package = metadata.distribution(PACKAGE)
    except metadata.PackageNotFoundError:
        return Installation(Path(sys.prefix), sys.executable)
    try:
        origin = json.loads(package.read_text("direct_url.json") or "{}")
    except ValueError:
        origin = {}
    installer = (package.read_text("INSTALLER") or "").strip()
    return Installation(Path(sys.prefix), sys.executable, installer, origin if isinstance(origin, dict) else {})


def update_command(here: Installation) -> str:
    """A sentence if no command can do it."""
    if (folder := here.folder) is not None:
        pull = shlex.join(["git", "-C", str(folder), "pull"])
        is_editable = here.origin["dir_info"].get("editable", False)
        return pull if is_editable else f"{pull} && {shlex.join([*_pip(here), '--upgrade', str(folder)])}"
    if (here.prefix / "uv-receipt.toml").is_file():
        return f"uv tool upgrade {PACKAGE}"
    if (here.prefix / "pipx_metadata.json").is_file():
        return f"pipx upgrade {PACKAGE}"
    if here.installer not in ("pip", "uv", ""):
        return f"Use the package manager that installed wolo ({here.installer})."
    return shlex.join([*_pip(here), "--upgrade", here.source or PACKAGE])


def install_command(here: Installation, extras: str) -> list[str]:
    """Adds extras to the installation."""
    wanted = f"{PACKAGE}[{extras}]" + (f" @ {here.source}" if here.source else "")
    if (folder := here.folder) is not None:
        options = ["-e"] if here.origin["dir_info"].get("editable", False) else []
        return [*_pip(here), *options, f"{folder}[{extras}]"]
    if (here.prefix / "uv-receipt.toml").is_file():
        return ["uv", "tool", "install", "--force", wanted]
    if (here.prefix / "pipx_metadata.json").is_file():
        return ["pipx", "install", "--force", wanted]
    return [*_pip(here), wanted]


def _pip(here: Installation) -> list[str]:
    return ["uv", "pip", "install", "--python", here.python] if here.installer == "uv" else [here.python, "-m", "pip", "install"]
