"""Model servers on this machine: found by asking the well-known ports, offered to a person, never used unasked."""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping
from urllib.parse import urlsplit

from msgspec import Struct

from wolo.models.catalog_files import PROVIDERS, in_format, load

CHAT = "openai-chat"
"""All of them list their models where they speak it."""
TIMEOUT_S = 0.5
MAX_BYTES = 1 << 20


class Server(Struct, frozen=True):
    provider: str
    label: str
    base_url: str
    models: tuple[str, ...]
    """As `-m` takes them; empty when the server does not say, or asks for a key."""


def find_servers(environ: Mapping[str, str]) -> list[Server]:
    """Blocks for as long as the slowest of them takes, which is not long."""
    found = []
    for name in PROVIDERS:
        provider = load(name, environ=environ)
        if not (provider.loopback and provider.base_url):
            continue
        if (ids := _list_models(in_format(provider, CHAT).base_url)) is not None:
            models = tuple(f"{name}/{id}" for id in ids)
            found.append(Server(name, provider.label, provider.base_url, models))
    return found


def _list_models(base_url: str) -> list[str] | None:
    """None: nobody there, or nobody who speaks our language."""
    where = urlsplit(base_url)
    connection = http.client.HTTPConnection(where.hostname or "", where.port or 80, timeout=TIMEOUT_S)
    try:
        connection.request("GET", f"{where.path}/models", headers={"accept": "application/json"})
        answer = connection.getresponse()
        body = answer.read(MAX_BYTES)
        return [] if answer.status in (401, 403) else _ids(json.loads(body))
    except (OSError, http.client.HTTPException, ValueError):
        return None
    finally:
        connection.close()


def _ids(page: object) -> list[str] | None:
    listed = page.get("data") if isinstance(page, dict) else None
    if not isinstance(listed, list):
        return None
    return [row["id"] for row in listed if isinstance(row, dict) and isinstance(row.get("id"), str) and row["id"]]
