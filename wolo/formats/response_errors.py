"""Errors that servers report in their responses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wolo.errors import ProviderError


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
