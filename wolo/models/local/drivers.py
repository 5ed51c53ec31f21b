"""The drivers of models that cannot use tools: each is a model client that asks in its own way and makes the calls."""

from __future__ import annotations

from pathlib import Path

from wolo.models.http.transport import Transport
from wolo.models.local.local_chat import LocalChat, server_of
from wolo.models.local.simple_mode import SimpleMode
from wolo.models.probe_cache import ServerFacts
from wolo.models.protocol import ModelClient
from wolo.models.provider import Choice


def driver_of(choice: Choice, facts: ServerFacts, transport: Transport, cwd: Path) -> ModelClient:
    """Open the driver of `choice.drive`. It does not close the transport."""
    return SimpleMode(LocalChat(transport, server_of(choice, facts)), choice, cwd)
