"""Finds the search service of the settings and its key."""

from __future__ import annotations

from collections.abc import Mapping

from wolo.config.schema import Config
from wolo.models.address import check_url
from wolo.models.secret_references import resolve_key
from wolo.places import Notices
from wolo.tools.web.search_backends import BACKENDS, SearchService, endpoint


def find_search_service(config: Config, environ: Mapping[str, str], notices: Notices) -> SearchService | None:
    """None, with a notice, if its key or address is missing. Raises ConfigError for an unusable address or reference."""
    settings = config.settings.web_search
    backend = BACKENDS.get(settings.backend)
    if backend is None:
        notices.add("web_search has no effect without web_search.backend: " + ", ".join(BACKENDS) + ".")
        return None
    base = check_url(settings.url, called="web_search.url") if settings.url.strip() else backend.base_url
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
