"""How a Responses answer ended: in order, incomplete, or failed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wolo.errors import ProviderError, Unavailable
from wolo.formats.decoding.finish_reason import settled_finish
from wolo.formats.errors.classify import classify
from wolo.formats.openai_responses.open import text_of
from wolo.messages.message import FinishReason

INCOMPLETE: Mapping[str, FinishReason] = {
    "max_output_tokens": "length",
    "max_tokens": "length",
    "content_filter": "refused",
    "": "length",
}
BROKEN_OFF = ("failed", "cancelled", "queued", "in_progress")
"""What the status of a whole answer says when there is none, or not yet: a server may hand out one that it still works on."""


def finish_of(answer: Mapping[str, Any], *, has_calls: bool, has_open: bool) -> tuple[FinishReason, str]:
    """Our word for it and the provider's; `has_open`: a call in it was never completed."""
    status = text_of(answer, "status")
    if status != "incomplete":
        return ("tool_calls" if has_calls else "stop"), status
    details = answer.get("incomplete_details")
    word = text_of(details, "reason") if isinstance(details, dict) else ""
    reason = settled_finish(word, INCOMPLETE.get(word), has_calls=has_calls)
    return ("length" if reason == "tool_calls" and has_open else reason), word or status


def failure(answer: Mapping[str, Any]) -> ProviderError:
    error = answer.get("error")
    if isinstance(error, dict) and error:
        return classify(200, {}, {"error": error})
    status = text_of(answer, "status") or "failed"
    return Unavailable(f'The provider gave this answer up without a reason ("{status}").', code=status, status=200)
