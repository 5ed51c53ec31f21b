"""Linters by wire format name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from wolo.formats.lint import anthropic, chat, gemini, ollama, responses


class Lint(Protocol):
    def __call__(
        self, body: dict[str, Any], previous: dict[str, Any] | None = None, *, strict_template: bool = False
    ) -> list[str]:
        """Problems a strict server would report. `previous` is the preceding request of the conversation."""


LINTERS: Mapping[str, Lint] = {
    "openai-chat": chat.lint,
    "openai-responses": responses.lint,
    "anthropic": anthropic.lint,
    "ollama": ollama.lint,
    "gemini": gemini.lint,
    "xml": chat.lint_xml,
}
BODY_LIMITS_BYTES: Mapping[str, int] = {"anthropic": 32_000_000}
"""Documented request size limits, in bytes."""
