"""Looks up model servers: those on this machine, their models and context windows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from wolo.models.address import join_url
from wolo.models.catalog_files import PROVIDERS, in_format, load
from wolo.models.headers import request_headers
from wolo.models.provider import ModelChoice

LOOKUP_S = 5.0
MOST_BYTES = 4 << 20
WINDOWS = ("n_ctx", "context_length", "max_model_len", "context_window", "max_context_length", "inputTokenLimit")
"""Names servers use for the context window; the configured one (`n_ctx`) comes first."""
LEAST, MOST = 256, 100_000_000
"""Plausible window sizes."""


def ask_window(choice: ModelChoice) -> int | None:
    """Context window in tokens; None: not reported. Blocks."""
    if choice.provider.loopback or choice.provider.name == "custom":
        # llama.cpp and Ollama report the window outside `/v1`, others in the model list.
        parts = urlsplit(choice.base_url)
        root = parts._replace(path=parts.path.rstrip("/").removesuffix("/v1")).geturl()
        for path, question in (("/props", None), ("/api/show", {"model": choice.model.id})):
            page = _read(choice, join_url(root, path, choice.provider.query), question)
            if window := _find_window(page):
                return window
    for row in _rows(choice):
        is_asked = choice.model.id in (row.get("id"), row.get("name"), row.get("model"))
        if is_asked and (window := _find_window(row)):
            return window
    return None


def served_models(choice: ModelChoice) -> list[str]:
    """Model ids listed by the server; empty if none. Blocks."""
    return [row["id"] for row in _rows(choice) if isinstance(row.get("id"), str) and row["id"]]


def _rows(choice: ModelChoice) -> list[dict[str, Any]]:
    """For a base URL without path, the list is where Chat Completions has it."""
    for path in ("/models", "/v1/models"):
        page = _read(choice, join_url(choice.base_url, path, choice.provider.query))
        rows = page.get("data") or page.get("models") if isinstance(page, dict) else None
        if isinstance(rows, list):
            return [row for row in rows if isinstance(row, dict)]
    return []


def _read(choice: ModelChoice, url: str, question: Mapping[str, str] | None = None) -> Any:
    import http.client  # noqa: PLC0415  # loads the email package, which a prompt does not wait for

    where = urlsplit(url)
    kind = http.client.HTTPSConnection if where.scheme == "https" else http.client.HTTPConnection
    connection = kind(where.hostname or "", where.port, timeout=LOOKUP_S)
    try:
        headers = {"accept": "application/json", "content-type": "application/json", **request_headers(choice)}
        body = None if question is None else json.dumps(question)
        target = where._replace(scheme="", netloc="").geturl()
        connection.request("GET" if body is None else "POST", target, body, headers)
        answer = connection.getresponse()
        return json.loads(answer.read(MOST_BYTES)) if answer.status == 200 else None
    except (OSError, http.client.HTTPException, ValueError):
        return None
    finally:
        connection.close()


def _find_window(page: Any) -> int | None:
    """First known name, also in nested objects."""
    if not isinstance(page, Mapping):
        return None
    for name in WINDOWS:
        value = next((page[key] for key in page if key == name or key.endswith(f".{name}")), None)
        if isinstance(value, int) and not isinstance(value, bool) and LEAST <= value <= MOST:
            return value
    return next((found for inner in page.values() if (found := _find_window(inner))), None)


CHAT = "openai-chat"
"""All local servers list their models in this format."""
TIMEOUT_S = 0.5
MAX_BYTES = 1 << 20


class ModelServer(Struct, frozen=True):
    provider: str
    label: str
    base_url: str
    models: tuple[str, ...]
    """As accepted by `-m`; empty if not listed or a key is required."""


def find_servers(environ: Mapping[str, str]) -> list[ModelServer]:
    """Blocks until every server answered or timed out."""
    servers = []
    for name in PROVIDERS:
        provider = load(name, environ=environ)
        if not (provider.loopback and provider.base_url):
            continue
        if (ids := _list_models(in_format(provider, CHAT).base_url)) is not None:
            models = tuple(f"{name}/{id}" for id in ids)
            servers.append(ModelServer(name, provider.label, provider.base_url, models))
    return servers


def _list_models(base_url: str) -> list[str] | None:
    import http.client  # noqa: PLC0415  # as above

    where = urlsplit(base_url)
    connection = http.client.HTTPConnection(where.hostname or "", where.port or 80, timeout=TIMEOUT_S)
    try:
        connection.request("GET", f"{where.path}/models", headers={"accept": "application/json"})
        answer = connection.getresponse()
        body = answer.read(MAX_BYTES)
        if answer.status in (401, 403):
            return []
        page = json.loads(body)
        rows = page.get("data") if isinstance(page, dict) else None
        if not isinstance(rows, list):
            return None
        return [row["id"] for row in rows if isinstance(row, dict) and isinstance(row.get("id"), str) and row["id"]]
    except (OSError, http.client.HTTPException, ValueError):
        return None
    finally:
        connection.close()
