"""Fixtures of the checkpoint tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.workspace.checkpoints.harness import CheckpointHarness


@pytest.fixture
def harness(tmp_path: Path) -> CheckpointHarness:
    return CheckpointHarness(tmp_path)
