"""Finish reasons, and the errors that responses report, or that end early or cannot be read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from wolo.errors import BadAnswer, ContextOverflow, ProviderError, Unavailable
from wolo.messages.message import FinishReason

_WORDS: dict[str, FinishReason] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "refused",
    "sensitive": "refused",
    "pause_turn": "paused",
    "model_context_window_exceeded": "overflow",
    "model_length": "length",
    "network_error": "error",
    "insufficient_system_resource": "error",
    "error": "error",
}
_HINTS: tuple[tuple[FinishReason, tuple[str, ...]], ...] = (
    ("refused", ("filter", "safety", "sensitive", "refus", "block", "prohibit", "moderat", "policy", "recitation")),
    ("overflow", ("context",)),
    ("length", ("length", "max_tokens", "max_output", "token_limit", "truncat")),
    (
        "error",
        ("error", "fail", "abort", "insufficient", "timeout", "timed_out", "overload", "unavailable", "cancel", "interrupt"),
    ),
    ("tool_calls", ("tool", "function_call")),
)
"""Fallback by substring for unknown finish reasons; the first match wins."""


def normalize_finish(word: str) -> FinishReason:
    """Unknown words count as a normal stop."""
    plain = word.strip().lower().replace("-", "_").replace(" ", "_")
    if (known := _WORDS.get(plain)) is not None:
        return known
    return next((reason for reason, hints in _HINTS if any(hint in plain for hint in hints)), "stop")


def resolve_finish(word: str, reason: FinishReason | None = None, *, has_calls: bool, explanation: str = "") -> FinishReason:
    """Resolve the server's finish word; `reason` if the format knows it already.

    Raises Unavailable when the response was aborted (`explanation`: by the server), ContextOverflow when it exceeded the
    window.
    """
    reason = reason or normalize_finish(word)
    if reason == "error":
        told = f": {explanation}" if explanation else "."
        raise Unavailable(f'The provider aborted the response with "{word}"{told}', code=word, status=200)
    if reason == "overflow":
        raise ContextOverflow("The conversation no longer fits the model's window.", code=word, status=200)
    return "tool_calls" if reason == "stop" and has_calls else reason


def ended_early_error(skipped: int = 0, where: str = "before the answer was complete") -> Unavailable:
    """`skipped` counts unreadable payloads."""
    unread = f"; {skipped} chunks were not valid JSON" if skipped else ""
    return Unavailable(f"The stream ended early: the provider closed it {where}{unread}.")


SHOWN_CHARACTERS = 200


def no_message_error() -> BadAnswer:
    return BadAnswer("The server's response contains no message.", hint="Check the base URL and the model name.", status=200)


def bad_body_error(body: bytes) -> ProviderError:
    text = body.decode("utf-8", "replace").strip()
    try:
        json.loads(text, strict=False)
    except json.JSONDecodeError as error:
        if text and (error.pos >= len(text) or error.msg.startswith("Unterminated")):
            return Unavailable("The server's response ends in the middle of its JSON.", status=200)
        what = "more than one JSON document" if error.msg.startswith("Extra data") else "no JSON"
    except (ValueError, RecursionError):
        what = "JSON that cannot be read"
    else:
        what = "no JSON object"
    beginning = " ".join(text[:SHOWN_CHARACTERS].split())
    return BadAnswer(f"The server's answer is {what}: {beginning}", hint="Check the base URL and its API.", status=200)


def response_error(
    status: int, headers: Mapping[str, str], body: bytes | Mapping[str, Any], *, provider_hint: str = ""
) -> ProviderError:
    """The error that a response reports, classified. Never raises."""
    from wolo.formats.errors.classify import classify  # noqa: PLC0415  # its tables are for failed requests only

    return classify(status, headers, body, provider_hint=provider_hint)


def is_error(body: Mapping[str, Any]) -> bool:
    """Check whether an unexpected object is an error."""
    if (
        body.get("error")
        or body.get("errors")
        or body.get("detail")
        or body.get("object") == "error"
        or body.get("type") == "error"
    ):
        return True
    return body.get("success") is False or ("code" in body and bool(body.get("message") or body.get("msg")))
