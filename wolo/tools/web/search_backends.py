"""Describes web search services: how each is asked, and where its response holds results."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode, urlsplit

import msgspec
from msgspec import Struct

from wolo.models.address import host_of

MOST_RESULTS = 10


class SearchBackend(Struct, frozen=True, kw_only=True):
    label: str
    base_url: str = ""
    """Empty: every installation has its own."""
    path: str
    key_env: str = ""
    """Variable with the API key; empty: works without one."""
    key_header: str = "authorization"
    key_prefix: str = "Bearer "
    is_get: bool = False
    query_field: str = "query"
    count_field: str = ""
    """Empty: the number of results cannot be chosen."""
    more: Mapping[str, Any] = {}
    """Further fields of a request."""
    results: tuple[str, ...] = ("results",)
    """Path to the list of results in the response."""
    url_field: str = "url"
    text_fields: tuple[str, ...] = ("content",)
    """Fields with the excerpt; the first that is not empty counts."""


BACKENDS: Mapping[str, SearchBackend] = {
    "brave": SearchBackend(
        label="Brave Search",
        base_url="https://api.search.brave.com",
        path="/res/v1/web/search",
        key_env="BRAVE_API_KEY",
        key_header="x-subscription-token",
        key_prefix="",
        is_get=True,
        query_field="q",
        count_field="count",
        more={"text_decorations": "false"},
        results=("web", "results"),
        text_fields=("description", "extra_snippets"),
    ),
    "tavily": SearchBackend(
        label="Tavily", base_url="https://api.tavily.com", path="/search", key_env="TAVILY_API_KEY", count_field="max_results"
    ),
    "exa": SearchBackend(
        label="Exa",
        base_url="https://api.exa.ai",
        path="/search",
        key_env="EXA_API_KEY",
        key_header="x-api-key",
        key_prefix="",
        count_field="numResults",
        more={"contents": {"highlights": True}},
        text_fields=("highlights", "summary", "text"),
    ),
    "searxng": SearchBackend(
        label="SearXNG", path="/search", is_get=True, query_field="q", more={"format": "json"}, text_fields=("content",)
    ),
    "zai": SearchBackend(
        label="Z.ai",
        base_url="https://api.z.ai",
        path="/api/paas/v4/web_search",
        key_env="ZAI_API_KEY",
        query_field="search_query",
        count_field="count",
        more={"search_engine": "search-prime"},
        results=("search_result",),
        url_field="link",
    ),
}
"""By the name in `web_search.backend`."""


class SearchResult(Struct, frozen=True):
    title: str
    url: str
    text: str


class SearchAnswer(Struct, frozen=True):
    results: Sequence[SearchResult]
    summary: str = ""
    """An answer in words that rests on the results."""
    metadata: Mapping[str, Any] = {}
    """Of the call: its cost."""
    problem: str = ""
    """Why there is no answer, which cost something all the same."""


class ProviderSearch(Struct, frozen=True, kw_only=True):
    """The search of a model's own provider."""

    label: str
    url: str
    """The base URL of the model."""
    ask: Callable[[str], Awaitable[SearchAnswer]]
    """Raises ToolError."""

    def address(self, query: str) -> str:
        """As of a service."""
        return f"{self.url.rstrip('/')}/?{urlencode({'query': query})}"


class SearchService(Struct, frozen=True, kw_only=True):
    """A backend at its address, with the user's key."""

    backend: SearchBackend
    url: str
    """The address that is asked, without the query."""
    key: str = ""

    @property
    def label(self) -> str:
        return self.backend.label

    @property
    def host(self) -> str:
        return host_of(self.url)

    def address(self, query: str) -> str:
        """The address with the query, as it is judged: also where the query travels in the body."""
        fields = self._fields(query) if self.backend.is_get else {self.backend.query_field: query}
        return f"{self.url}?{urlencode(fields)}"

    def headers(self) -> dict[str, str]:
        headers = {"accept": "application/json", "accept-encoding": "identity"}
        if not self.backend.is_get:
            headers["content-type"] = "application/json"
        if self.key:
            headers[self.backend.key_header] = f"{self.backend.key_prefix}{self.key}"
        return headers

    def body(self, query: str) -> bytes:
        """Empty for a request without a body."""
        return b"" if self.backend.is_get else msgspec.json.encode(self._fields(query))

    def results(self, response: Any) -> list[SearchResult] | None:
        """The results in a decoded response; None: it is not what this service answers."""
        rows = response
        for name in self.backend.results:
            rows = rows.get(name) if isinstance(rows, dict) else None
        if rows is None and isinstance(response, dict) and not response.get("error"):
            return []  # Brave leaves out `web` when nothing was found
        if not isinstance(rows, list):
            return None
        results = [self._result(each) for each in rows if isinstance(each, dict)]
        return [each for each in results if urlsplit(each.url).scheme in ("http", "https")][:MOST_RESULTS]

    def _result(self, row: Mapping[str, Any]) -> SearchResult:
        text = next(filter(None, (_text(row.get(name)) for name in self.backend.text_fields)), "")
        return SearchResult(_text(row.get("title")), _text(row.get(self.backend.url_field)), text)

    def _fields(self, query: str) -> dict[str, Any]:
        count = {self.backend.count_field: MOST_RESULTS} if self.backend.count_field else {}
        return {self.backend.query_field: query, **count, **self.backend.more}


def endpoint(base: str, path: str) -> str:
    """Appends the path to an address that may end with the beginning of it, or all of it."""
    base = base.rstrip("/")
    parts = path.strip("/").split("/")
    for count in range(len(parts), 0, -1):
        if urlsplit(base).path.endswith("/" + "/".join(parts[:count])):
            return "/".join((base, *parts[count:]))
    return base + path


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, Sequence):
        return " … ".join(each.strip() for each in value if isinstance(each, str))
    return ""
