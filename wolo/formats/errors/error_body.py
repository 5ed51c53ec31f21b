"""Extract message, code and parameters from any error body."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from wolo.formats.tolerant_json import read_object

_WRAPPINGS = ("error", "errors", "detail")


class ErrorResponse(NamedTuple):
    status: int
    message: str
    code: str
    words: str
    """All text that may contain a known wording: message, code, type, parameters."""
    codes: tuple[str, ...]
    """All possible codes: the error's own, its type, and nested ones."""
    param: str
    body: Mapping[str, Any]
    is_page: bool = False


def parse_error(status: int, body: bytes | str | Mapping[str, Any]) -> ErrorResponse:
    if isinstance(body, Mapping):
        document: Mapping[str, Any] | None = body
        text = ""
    else:
        data = body.encode("utf-8", "replace") if isinstance(body, str) else body
        document = read_object(data)
        text = data.decode("utf-8", "replace").strip()
    if document is None:
        page = html_text(text)
        return ErrorResponse(status, page or text, "", text[:2000], (), "", {}, is_page=page is not None)
    error = _innermost(document)
    message = _first_text(error, "message", "msg", "Message", "detail", "error", "error_msg", "error_message", "title")
    message = _with_upstream(message, error.get("metadata"))
    code, message = _code(error, message)
    codes = tuple(dict.fromkeys([code, *_codes_within(error)]))
    place = error.get("loc")  # Python validators report a path such as `["body", "messages", 4]`
    path = ".".join(str(step) for step in place if step != "body") if isinstance(place, list) else None
    param = str(error.get("param") or "") if path is None else path
    if message and param and param not in message and not error.get("param"):
        message = f"{param}: {message}"
    words = " ".join([message, param, *codes])
    if status in (0, 200, 500) and re.fullmatch(r"[45]\d\d", code):
        status = int(code)
    return ErrorResponse(status, message, code, words, codes, param, document)


def _innermost(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Unwrap the error object; a bare string becomes its message."""
    error: Mapping[str, Any] = document
    for _ in range(5):
        inner = next((error[name] for name in _WRAPPINGS if error.get(name)), None)
        if inner is None and isinstance(error.get("message"), Mapping):
            inner = error["message"]
        if isinstance(inner, list):
            inner = inner[0] if inner else None
        if isinstance(inner, Mapping):
            error = {**{name: value for name, value in error.items() if name not in (*_WRAPPINGS, "message")}, **inner}
        elif isinstance(inner, str):
            return {**error, "message": error.get("message") or inner}
        else:
            break
    return error


def _with_upstream(message: str, metadata: object) -> str:
    if not isinstance(metadata, Mapping):
        return message
    raw, name = metadata.get("raw"), metadata.get("provider_name")
    if isinstance(raw, str) and (within := read_object(raw.encode("utf-8", "replace"))):
        raw = _first_text(_innermost(within), "message", "msg", "error") or raw
    told = raw if isinstance(raw, str) and raw not in message else ""
    who = name if isinstance(name, str) and name not in message else ""
    return ": ".join(filter(None, [f"{message} ({who})" if message and who else message or who, told]))


def _codes_within(error: Mapping[str, Any]) -> Iterator[str]:
    """Types, Azure's inner error, and Google's details."""
    for name in ("type", "status", "__type", "reason"):
        if isinstance(value := error.get(name), str) and value:
            yield value
    inner = error.get("innererror")
    if isinstance(inner, Mapping):
        yield str(inner.get("code") or "")
    for detail in _mappings(error.get("details")):
        yield str(detail.get("reason") or "")
        yield from (str(violation.get("quotaId") or "") for violation in _mappings(detail.get("violations")))


def _mappings(values: object) -> Iterator[Mapping[str, Any]]:
    return (value for value in values if isinstance(value, Mapping)) if isinstance(values, list) else iter(())


def headers_within(body: Mapping[str, Any]) -> dict[str, str]:
    """Upstream provider headers, which routers put in the body."""
    metadata = _innermost(body).get("metadata")
    headers = metadata.get("headers") if isinstance(metadata, Mapping) else None
    return {str(name).lower(): str(value) for name, value in headers.items()} if isinstance(headers, Mapping) else {}


def _first_text(error: Mapping[str, Any], *names: str) -> str:
    return next((value for name in names if isinstance(value := error.get(name), str) and value), "")


def _code(error: Mapping[str, Any], message: str) -> tuple[str, str]:
    """The provider's code as text. GLM's Anthropic endpoint embeds it in the message: `[1313][message][request id]`."""
    if wrapped := re.match(r"\[(\d{3,4})\]\[(.*?)\](?:\[|$)", message, re.DOTALL):
        return wrapped[1], wrapped[2]
    code = next((error[name] for name in ("code", "error_code", "type", "__type") if error.get(name) not in (None, "", 0)), "")
    if isinstance(code, float) and code.is_integer():
        code = int(code)
    return (str(code).strip() if isinstance(code, str | int) and not isinstance(code, bool) else ""), message


_BEGINNING = r"\s*(?:<!--.*?-->\s*)?<(?:!doctype|html|head|body|\?xml|center|h1|title)"
_UNSEEN = r"<(script|style|head)\b.*?</\1\s*>|<!--.*?-->|<[^>]*>?"
_TITLE = r"<title\b[^>]*>(.*?)</title"
_ENTITIES = {"&lt;": "<", "&gt;": ">", "&quot;": '"', "&#39;": "'", "&nbsp;": " ", "&amp;": "&"}
_READ_CHARACTERS = 200_000
_FLAGS = re.IGNORECASE | re.DOTALL


def html_text(text: str) -> str | None:
    """Title and text of a web page without tags; None when it is not one."""
    source = text[:_READ_CHARACTERS].lstrip("\ufeff")
    if not re.match(_BEGINNING, source, _FLAGS):
        return None
    title = re.search(_TITLE, source, _FLAGS)
    words = f"{title[1] if title else ''} {re.sub(_UNSEEN, ' ', source, flags=_FLAGS)}"
    for entity, char in _ENTITIES.items():
        words = words.replace(entity, char)
    return " ".join("".join(char if char.isprintable() else " " for char in words).split())
