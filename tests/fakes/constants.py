"""Other values for constants of the product, in the runs of one test."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

SET = """
import sys
for (module, name), value in {values!r}.items():
    if module in sys.modules:
        setattr(sys.modules[module], name, value)
"""
"""A `sitecustomize.py`: the product has no such switch. A forked run follows it, and has loaded all modules."""


def set_constants(monkeypatch: pytest.MonkeyPatch, folder: Path, values: Mapping[str, float]) -> None:
    """Each by its full name; the folder is made, and must not be in the workspace."""
    folder.mkdir()
    parts = {tuple(name.rsplit(".", 1)): value for name, value in values.items()}
    (folder / "sitecustomize.py").write_text(SET.format(values=parts))
    monkeypatch.setenv("PYTHONPATH", str(folder))
