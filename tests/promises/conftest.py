"""The agent of `tests/agent`, for the promises that take a whole turn, and the store of `tests/sessions`."""

from __future__ import annotations

from tests.agent.conftest import harness
from tests.sessions.conftest import store

__all__ = ["harness", "store"]
