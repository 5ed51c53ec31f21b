"""The agent of `tests/agent`, for the promises that take a whole turn."""

from __future__ import annotations

from tests.agent.conftest import stage

__all__ = ["stage"]
