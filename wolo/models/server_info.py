"""Look-ups: what a server tells of itself without any model being asked."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from wolo.models.address import under
from wolo.models.format_selection import request_headers
from wolo.models.provider import Choice

TIMEOUT_S = 5.0
MAX_BYTES = 4 << 20
WINDOWS = ("n_ctx", "context_length", "max_model_len", "context_window", "max_context_length", "inputTokenLimit")
"""What servers call a model's window; what one was started with (`n_ctx`) counts more than what the model was made for."""
LEAST, MOST = 256, 100_000_000
"""A number outside of these is no window."""


def ask_window(choice: Choice) -> int | None:
    """Tokens; None: the server does not say. Blocks."""
    return next((window for page in _pages(choice) if (window := _find_window(page))), None)


def served_models(choice: Choice) -> list[str]:
    """The ids of the models that the server lists; empty when it lists none. Blocks."""
    return [row["id"] for row in _rows(choice) if isinstance(row.get("id"), str) and row["id"]]


def _pages(choice: Choice) -> Iterator[Any]:
    """llama.cpp and Ollama tell it beside `/v1`, the others describe the model in their list."""
    if choice.provider.loopback or choice.provider.name == "custom":
        yield _read(choice, _beside(choice, "/props"))
        yield _read(choice, _beside(choice, "/api/show"), {"model": choice.model.id})
    for row in _rows(choice):
        if choice.model.id in (row.get("id"), row.get("name"), row.get("model")):
            yield row


def _rows(choice: Choice) -> list[dict[str, Any]]:
    """Where the address is the host alone, the list is where Chat Completions has it."""
    for path in ("/models", "/v1/models"):
        page = _read(choice, under(choice.base_url, path, choice.provider.query))
        rows = page.get("data") or page.get("models") if isinstance(page, dict) else None
        if isinstance(rows, list):
            return [row for row in rows if isinstance(row, dict)]
    return []


def _beside(choice: Choice, path: str) -> str:
    parts = urlsplit(choice.base_url)
    return under(parts._replace(path=parts.path.rstrip("/").removesuffix("/v1")).geturl(), path, choice.provider.query)


def _read(choice: Choice, url: str, question: Mapping[str, str] | None = None) -> Any:
    """None for whatever is no JSON document."""
    where = urlsplit(url)
    kind = http.client.HTTPSConnection if where.scheme == "https" else http.client.HTTPConnection
    connection = kind(where.hostname or "", where.port, timeout=TIMEOUT_S)
    try:
        headers = {"accept": "application/json", "content-type": "application/json", **request_headers(choice)}
        body = None if question is None else json.dumps(question)
        target = where._replace(scheme="", netloc="").geturl()
        connection.request("GET" if body is None else "POST", target, body, headers)
        answer = connection.getresponse()
        return json.loads(answer.read(MAX_BYTES)) if answer.status == 200 else None
    except (OSError, http.client.HTTPException, ValueError):
        return None
    finally:
        connection.close()


def _find_window(page: Any) -> int | None:
    """The first known name in the page, or in an object inside it."""
    if not isinstance(page, Mapping):
        return None
    for name in WINDOWS:
        value = next((page[key] for key in page if key == name or key.endswith(f".{name}")), None)
        if isinstance(value, int) and not isinstance(value, bool) and LEAST <= value <= MOST:
            return value
    return next((found for inner in page.values() if (found := _find_window(inner))), None)
