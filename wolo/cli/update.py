"""`wolo update`: prints the command that updates this installation of wolo."""

from __future__ import annotations

import json
import shlex
import sys
from importlib import metadata
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from wolo import __version__
from wolo.frontends.streams import say, tell

PACKAGE = "wolo-cli"


def update() -> None:
    """Print the command that updates wolo.

    It depends on how wolo was installed; nothing is changed.
    """
    say(f"This is wolo {__version__}. To update it, run:")
    tell(update_command(Path(sys.prefix), sys.executable, *_installed_by()))


def update_command(prefix: Path, python: str, installer: str, origin: dict[str, Any]) -> str:
    """`installer` and `origin` are what INSTALLER and direct_url.json of the installed package say."""
    address = str(origin.get("url", ""))
    if "dir_info" in origin and address.startswith("file:"):
        return _from_folder(
            Path(url2pathname(urlsplit(address).path)), python, is_editable=origin["dir_info"].get("editable", False)
        )
    if (prefix / "uv-receipt.toml").is_file():
        return f"uv tool upgrade {PACKAGE}"
    if (prefix / "pipx_metadata.json").is_file():
        return f"pipx upgrade {PACKAGE}"
    version_control = origin.get("vcs_info")
    wanted = f"{version_control.get('vcs', 'git')}+{address}" if isinstance(version_control, dict) else PACKAGE
    if installer == "uv":
        return shlex.join(["uv", "pip", "install", "--python", python, "--upgrade", wanted])
    if installer not in ("pip", ""):
        return f"Use the package manager that installed wolo ({installer})."
    return shlex.join([python, "-m", "pip", "install", "--upgrade", wanted])


def _from_folder(folder: Path, python: str, *, is_editable: bool) -> str:
    pull = shlex.join(["git", "-C", str(folder), "pull"])
    if is_editable:
        return pull
    return f"{pull} && {shlex.join([python, '-m', 'pip', 'install', '--upgrade', str(folder)])}"


def _installed_by() -> tuple[str, dict[str, Any]]:
    try:
        package = metadata.distribution(PACKAGE)
    except metadata.PackageNotFoundError:
        return "", {}
    try:
        origin = json.loads(package.read_text("direct_url.json") or "{}")
    except ValueError:
        origin = {}
    return (package.read_text("INSTALLER") or "").strip(), origin if isinstance(origin, dict) else {}
