"""Finds the search service of the settings and its key."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import closing, suppress
from http.client import HTTPConnection, HTTPException

import msgspec

from wolo.config.schema import Config
from wolo.models.address import check_url
from wolo.models.secret_references import resolve_key
from wolo.places import Notices
from wolo.tools.web.search_backends import BACKENDS, SearchService, endpoint

LOCAL_PORTS = (8888, 8080)
"""Of a SearXNG on this machine: as it starts, and as its image does."""
_ANSWER_S = 0.5
_MOST_BYTES = 2 * 1024 * 1024


def find_search_service(config: Config, environ: Mapping[str, str], notices: Notices) -> SearchService | None:
    """None, with a notice, if its key or address is missing. Raises ConfigError for an unusable address or reference."""
    settings = config.settings.web_search
    backend = BACKENDS.get(settings.backend)
    if backend is None:
        notices.add("web_search has no effect without web_search.backend: " + ", ".join(BACKENDS) + ".")
        return None
    base = check_url(settings.url, called="web_search.url") if settings.url.strip() else backend.base_url
    if not base and settings.backend == "searxng":
        base = _find_searxng()
    if not base:
        notices.add(f"web_search is off: {backend.label} needs web_search.url, the address of your instance.")
        return None
    if settings.api_key.strip():
        key = resolve_key(settings.api_key, environ, setting="web_search.api_key")
    else:
        key = environ.get(backend.key_env, "").strip() if backend.key_env else ""
    if backend.key_env and not key:
        notices.add(f"web_search is off: {backend.label} needs a key. Set web_search.api_key or {backend.key_env}.")
        return None
    return SearchService(backend=backend, url=endpoint(base, backend.path), key=key)


def _find_searxng() -> str:
    """The address of a SearXNG that runs on this machine; empty: there is none."""
    for port in LOCAL_PORTS:
        until, answer = time.monotonic() + _ANSWER_S, b""
        with (
            suppress(OSError, HTTPException, msgspec.DecodeError, RecursionError),
            closing(HTTPConnection("127.0.0.1", port, timeout=_ANSWER_S)) as connection,
        ):
            connection.request("GET", "/config")
            response = connection.getresponse()
            while len(answer) < _MOST_BYTES and time.monotonic() < until and (piece := response.read1(_MOST_BYTES)):
                answer += piece
            facts = msgspec.json.decode(answer)
            if isinstance(facts, dict) and "engines" in facts and "instance_name" in facts:
                return f"http://127.0.0.1:{port}"
    return ""
