"""Programs that some tests compare with, and a loud word when one is missing."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest


def find_ripgrep() -> Path | None:
    beside = Path(sys.executable).with_name("rg")
    if os.access(beside, os.X_OK):
        return beside
    found = shutil.which("rg")
    return Path(found) if found else None


needs_ripgrep = pytest.mark.skipif(
    find_ripgrep() is None, reason="ripgrep is missing: install the package `ripgrep`, or `pip install 'wolo-cli[rg]'`"
)
