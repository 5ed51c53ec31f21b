"""Chooses the linter of a request by its path."""

from __future__ import annotations

from typing import Any

from wolo.formats.lint.linters import LINTERS

FORMATS = {
    "/chat/completions": "openai-chat",
    "/responses": "openai-responses",
    "/v1/messages": "anthropic",
    "/invoke-with-response-stream": "anthropic",
    ":streamRawPredict": "anthropic",
    "/api/chat": "ollama",
    ":streamGenerateContent": "gemini",
}
"""The end of the path, without its query → the wire format."""


def lint(path: str, body: dict[str, Any], previous: dict[str, Any] | None = None, *, strict_template: bool = False) -> list[str]:
    """An empty list means that every server takes it; a path that no format has is linted as Chat Completions."""
    bare = path.partition("?")[0]
    format = next((format for end, format in FORMATS.items() if bare.endswith(end)), "openai-chat")
    return LINTERS[format](body, previous, strict_template=strict_template)
