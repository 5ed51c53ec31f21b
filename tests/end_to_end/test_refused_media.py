"""An image that a server refuses does not cost the session: it stays in the store, and is left out of what is sent."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.fakes import replies_anthropic, replies_gemini, replies_ollama, replies_responses
from tests.fakes.command import run_wolo
from tests.fakes.provider_server import KEY, Asked, ProviderServer
from tests.fakes.replies import Reply, call, error, text
from wolo.formats.errors.classify import classify

PNG = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAIAAAD91JpzAAAAEElEQVR4nGP4z8AARAwQCgAf7gP9i18U1AAAAABJRU5ErkJggg==")
SENT = base64.b64encode(PNG)[:40]

REFUSALS: Mapping[str, Any] = {
    "openai-chat": {"error": {"message": "Invalid content type. image_url is only supported by certain models."}},
    "xml": {"error": {"message": "image input is not supported - hint: you may need to provide the mmproj"}},
    "openai-responses": {"error": {"message": "Invalid value: 'input_image'.", "param": "input[0].content[1]"}},
    "ollama": {"error": "this model is missing data required for image input"},
    "anthropic": {"type": "error", "error": {"type": "invalid_request_error", "message": "messages.0: Could not process image"}},
    "gemini": {"error": {"code": 400, "message": "Unable to process input image.", "status": "INVALID_ARGUMENT"}},
}
ANSWERS: Mapping[str, Reply] = {
    "openai-chat": text("fine"),
    "xml": text("fine"),
    "openai-responses": replies_responses.answer(replies_responses.message("fine")),
    "ollama": replies_ollama.text("fine"),
    "anthropic": replies_anthropic.text("fine"),
    "gemini": replies_gemini.text("fine"),
}


def blind(format: str) -> Any:
    return lambda asked: error(400, REFUSALS[format]) if SENT in asked.body else ANSWERS[format]


@pytest.mark.sweep(every=2)
@pytest.mark.parametrize("format", REFUSALS)
def test_a_session_with_a_refused_image_goes_on(provider: ProviderServer, format: str) -> None:
    Path("dot.png").write_bytes(PNG)
    provider.otherwise = blind(format)
    provider.linted = False  # the prefix changes, as it must
    base = provider.base_url if format in ("openai-chat", "xml", "openai-responses") else provider.origin
    flags = ("-p", "--api", format, "--base-url", base, "--api-key", KEY, "-m", "custom/m")
    refused = run_wolo(*flags, "--no-session", "-f", "dot.png", "look")
    assert (refused.stdout, refused.exit_code) == ("", 1)
    assert "--ignore-unsupported sends the prompt without dot.png." in refused.stderr
    flags += ("-s", "mine")
    first = run_wolo(*flags, "--ignore-unsupported", "-f", "dot.png", "look")
    assert (first.stdout, first.exit_code) == ("fine\n", 0), first.stderr
    assert "refuses images; they are omitted from now on: dot.png." in first.stderr
    assert run_wolo(*flags, "and now?").stdout == "fine\n"
    assert [SENT in asked.body for asked in provider.requests] == [True, True, False, True, False]
    assert b"image, not sent" in provider.requests[-1].body


def test_refused_tool_image_is_omitted_for_the_run(provider: ProviderServer) -> None:
    Path("dot.png").write_bytes(PNG)
    provider.linted = False

    def first(asked: Asked) -> Reply:
        provider.otherwise = blind("openai-chat")
        return call("read", {"path": "dot.png"})

    provider.otherwise = first
    assert run_wolo("-p", *provider.flags, "look").stdout == "fine\n"
    assert [SENT in asked.body for asked in provider.requests] == [False, True, False]


def test_a_server_that_keeps_refusing_is_believed(provider: ProviderServer) -> None:
    Path("dot.png").write_bytes(PNG)
    provider.linted = False
    provider.otherwise = error(400, REFUSALS["openai-chat"])
    failed = run_wolo("-p", *provider.flags, "--ignore-unsupported", "-f", "dot.png", "look")
    assert failed.exit_code == 1
    assert len(provider.requests) == 2


@pytest.mark.parametrize(
    ("status", "message", "field"),
    [
        (500, "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj", "images"),
        (404, "No endpoints found that support image input", "images"),
        (415, "Audio is not supported by this model: audio input is not supported", "audio"),
        (422, "messages[1].content[1]: unknown variant `input_audio`", "audio"),
        (400, "Invalid PDF: the document could not be opened", "files"),
        (400, "The temperature must be between 0 and 1", "temperature"),
        (401, "The key may not be used for images", None),
        (429, "Too many images per minute", None),
        (503, "The image service is down", None),
    ],
)
def test_refusal_names_what_must_not_be_resent(status: int, message: str, field: str | None) -> None:
    assert classify(status, {}, json.dumps({"error": {"message": message}}).encode()).field == field
