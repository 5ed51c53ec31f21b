"""Finds installed packages whose files are no longer those that were installed."""

from __future__ import annotations

import base64
import csv
import hashlib
import re
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from wolo.diagnostics.installation import PACKAGE
from wolo.models.local.embedded import ENGINE

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
        name = re.sub(r"[-_.]+", "-", names.pop()).lower()
        if name in packages:
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
