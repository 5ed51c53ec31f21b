"""Detects how wolo was installed, the commands to update or extend it, and packages that were changed since."""

from __future__ import annotations

import base64
import csv
import hashlib
import json
import re
import shlex
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from msgspec import Struct

from wolo.diagnostics.folder_update import MARK
from wolo.models.local.embedded import ENGINE

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


class Update(Struct, frozen=True):
    way: str
    """How wolo was installed, for the user."""
    steps: tuple[list[str], ...] = ()
    """Commands; none: only the user, or wolo itself, can do it."""
    advice: str = ""
    folder: Path | None = None
    """The self-contained folder, which wolo replaces itself."""

    @property
    def text(self) -> str:
        return self.advice or " && ".join(map(shlex.join, self.steps))


def plan_update(here: Installation) -> Update:
    if (here.prefix / MARK).is_file():
        return Update("a self-contained folder", folder=here.prefix, advice=f"wolo update --yes  # replaces {here.prefix}")
    if (folder := here.folder) is not None:
        pull = ["git", "-C", str(folder), "pull", "--ff-only"]
        if here.origin["dir_info"].get("editable", False):
            return Update("an editable checkout", (pull,))
        return Update("a checkout", (pull, [*_pip(here), "--upgrade", str(folder)]))
    if (here.prefix / "uv-receipt.toml").is_file():
        return Update("uv tool", (["uv", "tool", "upgrade", PACKAGE],))
    if (here.prefix / "pipx_metadata.json").is_file():
        return Update("pipx", (["pipx", "upgrade", PACKAGE],))
    if "Cellar" in here.prefix.parts:
        return Update("Homebrew", (["brew", "upgrade", "wolo"],))
    if here.installer not in ("pip", "uv", "") or here.prefix.is_relative_to("/nix/store"):
        name = here.installer if here.installer not in ("pip", "uv", "") else "nix"
        return Update(name, advice=f"Use the package manager that installed wolo ({name}).")
    return Update(here.installer or "pip", ([*_pip(here), "--upgrade", here.source or PACKAGE],))


def install_command(here: Installation, extras: str) -> list[str]:
    """Adds extras to the installation."""
    requirement = f"{PACKAGE}[{extras}]" + (f" @ {here.source}" if here.source else "")
    if (folder := here.folder) is not None:
        options = ["-e"] if here.origin["dir_info"].get("editable", False) else []
        return [*_pip(here), *options, f"{folder}[{extras}]"]
    if (here.prefix / "uv-receipt.toml").is_file():
        return ["uv", "tool", "install", "--force", requirement]
    if (here.prefix / "pipx_metadata.json").is_file():
        return ["pipx", "install", "--force", requirement]
    return [*_pip(here), requirement]


def _pip(here: Installation) -> list[str]:
    return ["uv", "pip", "install", "--python", here.python] if here.installer == "uv" else [here.python, "-m", "pip", "install"]


_RUNS = ("", ".dll", ".dylib", ".pth", ".py", ".pyd", ".so")
"""Suffixes of files that run. Data may change: administrators add certificates to certifi's."""


def changed_packages() -> list[str]:
    """One sentence for each package that wolo uses and of which code was changed or removed since its installation.

    Compares with the hashes in the RECORD of each package (PEP 376, PEP 627); a package without one is not judged.
    """
    # Wolo, the engine of its embedded model, and all packages that they need
    packages: dict[str, metadata.Distribution] = {}
    names = [PACKAGE, ENGINE]
    while names:
        if (name := re.sub(r"[-_.]+", "-", names.pop()).lower()) in packages:
            continue
        try:
            packages[name] = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue
        needed = [line for line in packages[name].requires or () if "extra ==" not in line]
        names += [re.split(r"[^\w.-]", line, maxsplit=1)[0] for line in needed]
    return [
        f"The package {name} {package.version} was changed after it was installed: {path}. Install it again."
        for name, package in sorted(packages.items())
        if (path := next(_changed_files(package), None))
    ]


def _changed_files(package: metadata.Distribution) -> Iterator[Path]:
    """Reads the RECORD itself, since `package.files` leaves out files that are gone."""
    scripts = {each.name for each in package.entry_points}  # written by the installer, and again when an environment moves
    for name, recorded, *_ in csv.reader((package.read_text("RECORD") or "").splitlines()):
        method, _, value = recorded.partition("=")
        path = Path(str(package.locate_file(name)))
        if method != "sha256" or path.suffix not in _RUNS or path.name in scripts:
            continue
        try:
            with path.open("rb") as opened:
                digest = hashlib.file_digest(opened, "sha256").digest()
        except OSError:
            yield path
            continue
        if base64.urlsafe_b64encode(digest).rstrip(b"=").decode() != value:
            yield path
