"""A tool harness whose saved outputs are files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.tools.harness import ToolHarness


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[ToolHarness]:
    harness = ToolHarness(tmp_path)

    def keep(name: str, data: bytes) -> Path:
        (tmp_path / name).write_bytes(data)
        return tmp_path / name

    harness.services = replace(harness.services, save_output=keep)
    yield harness
    harness.services.shell.close()
