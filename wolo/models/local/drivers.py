"""The drivers of models that cannot use tools: each is a model client that asks in its own way and makes the calls."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from wolo.models.http.transport import Transport
from wolo.models.local.local_chat import LocalChat, server_of
from wolo.models.local.simple_mode import SimpleMode
from wolo.models.probe_cache import ServerFacts
from wolo.models.protocol import ModelClient
from wolo.models.provider import ModelChoice


def driver_of(
    choice: ModelChoice, facts: ServerFacts, transport: Transport, cwd: Path, open_plain: Callable[[ModelChoice], ModelClient]
) -> ModelClient:
    """Open the driver of `choice.drive`. It does not close the transport. `open_plain` opens a client without a driver."""
    chat = LocalChat(transport, server_of(choice, facts))
    if choice.drive == "constrained":
        from wolo.models.local.constrained_mode import ConstrainedMode  # noqa: PLC0415  # most local models are driven simply

        return ConstrainedMode(chat, choice, cwd, open_plain)
    return SimpleMode(chat, choice, cwd)
