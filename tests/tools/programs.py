"""Ripgrep, which some tests compare with."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.components import PACKAGES, find


def find_ripgrep() -> Path | None:
    found = find("rg")
    return Path(found) if found else None


needs_ripgrep = pytest.mark.skipif(
    find_ripgrep() is None and not os.environ.get("CI"),
    reason=f"this test needs rg (install the package `{PACKAGES['rg']}`)",
)
