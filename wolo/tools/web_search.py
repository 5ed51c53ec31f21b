"""The `web_search` tool: asks the search service of the settings."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Mapping, Sequence
from html import unescape
from typing import Annotated, ClassVar

import msgspec
from msgspec import Meta, Struct

from wolo.errors import ConfigError, ToolError
from wolo.guard.intents import FetchIntent, Intent
from wolo.messages.parts import ToolKind
from wolo.tools.clipping import clean, clip
from wolo.tools.fetch import UNTRUSTED
from wolo.tools.tool import CallContext, ToolServices
from wolo.tools.tool_values import CallResult, Listing
from wolo.tools.web.search_backends import MOST_RESULTS, ProviderSearch, SearchAnswer, SearchService

NETWORK_S = 25.0
"""Timeout for the whole request."""
PROVIDER_S = 120.0
"""The same for a provider, whose model searches more than once and writes an answer."""
MOST_BYTES = 2 * 1024 * 1024
MOST_QUERY = 400
"""Characters; the services accept about as many."""
_MOST_TITLE, _MOST_URL, _MOST_TEXT = 200, 500, 600
_TAGS = r"</?[a-zA-Z][^<>]{0,200}>"
"""Services mark the words of the query with HTML."""


class WebSearchArgs(Struct, frozen=True):
    query: Annotated[str, Meta(description=f"{MOST_QUERY} characters at most")]


class WebSearch:
    """Search the web. Returns titles, addresses and excerpts; read a page with `fetch`."""

    name: ClassVar[str] = "web_search"
    Args: ClassVar[type[Struct]] = WebSearchArgs
    aliases: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("q", "search_query", "search", "keywords", "objective"), "query"),
        **dict.fromkeys(("count", "num_results", "numResults", "max_results", "limit", "recency", "allowed_domains"), ""),
    }
    reads_only: ClassVar[bool] = True
    kind: ClassVar[ToolKind] = "search"

    def intents(self, args: WebSearchArgs, services: ToolServices) -> Sequence[Intent]:
        """The query counts as part of the address, because the service receives it."""
        return (FetchIntent(_service(services).address(_check_query(args.query))),) if services.web_search else ()

    async def run(self, args: WebSearchArgs, call: CallContext) -> CallResult:
        query = _check_query(args.query)
        if recorded := call.services.recorded_result(call.call_id):
            return recorded
        service = _service(call.services)
        limit_s = NETWORK_S if isinstance(service, SearchService) else PROVIDER_S
        try:
            async with asyncio.timeout(limit_s):
                answer = await (_search(service, query) if isinstance(service, SearchService) else service.ask(query))
        except TimeoutError as error:
            raise ToolError(f"{service.label} did not answer within {limit_s:.0f} s; the search was stopped.") from error
        if answer.problem:
            return CallResult(answer.problem, is_error=True, metadata=answer.metadata)
        results = answer.results[:MOST_RESULTS]
        titles = tuple(f"{_line(each.title, _MOST_TITLE)} — {_line(each.url, _MOST_URL)}" for each in results)
        view = Listing(query, titles, len(results))
        if not (results or answer.summary):
            return CallResult(f"[{service.label} found nothing. Try other words.]", view, metadata=answer.metadata)
        rows: list[str] = []
        for number, each in enumerate(results, start=1):
            title = f"{number}. {_line(each.title, _MOST_TITLE) or '(no title)'}"
            rows.append("\n   ".join(filter(None, (title, _line(each.url, _MOST_URL), _line(each.text, _MOST_TEXT)))))
        count = f"{len(results)} result{'' if len(results) == 1 else 's'}"
        summary = (clip(b"".join(clean(answer.summary.encode()))).text.strip(), "") if answer.summary else ()
        text = "\n".join((f"[{service.label}, {count}]", f"[{UNTRUSTED}]", "", *summary, *rows))
        return CallResult(text, view, metadata=answer.metadata)


async def _search(service: SearchService, query: str) -> SearchAnswer:
    """Raises ToolError."""
    status, headers, data = await _ask(service, query)
    if status != 200:
        raise ToolError(_refusal(service, status, headers))
    try:
        results = service.results(msgspec.json.decode(data))
    except (msgspec.DecodeError, ValueError):
        results = None
    if results is None:
        raise ToolError(f"The response of {service.host} is not a list of search results in JSON.{_hint(service, 'json')}")
    return SearchAnswer(results)


def _service(services: ToolServices) -> SearchService | ProviderSearch:
    if services.web_search is None:
        raise ToolError("There is no search service; the user can set web_search.backend.")
    return services.web_search


def _check_query(text: str) -> str:
    if not (query := " ".join(text.split())):
        raise ToolError("`query` is empty.")
    if len(query) > MOST_QUERY:
        raise ToolError(f"`query` has {len(query)} characters; at most {MOST_QUERY} can be searched for. Shorten it.")
    return query


async def _ask(service: SearchService, query: str) -> tuple[int, Mapping[str, str], bytes]:
    """Returns status, headers and body. Redirects are not followed: the key is for this address only."""
    import httpx2  # noqa: PLC0415  # 60 ms, at the first search

    from wolo.models.address import proxy_for  # noqa: PLC0415  # as above
    from wolo.models.http.network_errors import describe_network_error  # noqa: PLC0415  # as above
    from wolo.models.http.proxied_connection import network_failure  # noqa: PLC0415  # as above
    from wolo.models.http.tls import ssl_context  # noqa: PLC0415  # as above
    from wolo.models.http.transport import HttpCall  # noqa: PLC0415  # as above

    proxy = ""
    try:
        proxy = proxy_for(service.url, os.environ)
        is_secure = service.url.startswith("https:") or proxy.startswith("https:")
        engine = httpx2.AsyncHTTPTransport(
            verify=ssl_context(os.environ) if is_secure else False, trust_env=False, proxy=proxy or None
        )
        async with httpx2.AsyncClient(transport=engine, timeout=None, follow_redirects=False) as client:
            request = client.build_request(
                "GET" if service.backend.is_get else "POST",
                service.address(query) if service.backend.is_get else service.url,
                headers=service.headers(),
                content=service.body(query) or None,
            )
            response = await client.send(request, stream=True)
            try:
                taken = bytearray()
                async for piece in response.aiter_raw(64 * 1024):
                    taken += piece
                    if len(taken) > MOST_BYTES:
                        raise ToolError(f"The response is larger than {MOST_BYTES >> 20} MiB; it was not read.")
                return response.status_code, response.headers, bytes(taken)
            finally:
                await response.aclose()
    except (ToolError, TimeoutError):
        raise
    except ConfigError as error:
        raise ToolError(error.message) from error
    except Exception as error:
        described = describe_network_error(network_failure(error), HttpCall(service.url, b""), proxy=proxy, answering=False)
        raise ToolError(described.message) from error


def _refusal(service: SearchService, status: int, headers: Mapping[str, str]) -> str:
    name = service.backend.label
    if status in (401, 403):
        return f"{name} refused the request ({status}).{_hint(service, 'key')}"
    if status in (402, 432, 433):
        return f"{name} refused the search ({status}): the credit of this key is used up. The user can add more."
    if status == 429:
        wait = headers.get("retry-after", "").strip()
        when = f"Try again in {wait} s" if re.fullmatch(r"\d{1,6}", wait) else "Try again in a while"
        return f"{name} limits the number of searches (429). {when}, or go on without."
    if 300 <= status < 400:
        return f"{service.host} redirects elsewhere, which was not followed ({status}). The user can correct web_search.url."
    if status == 404:
        return f"There is no search at {service.url} (404). The user can correct web_search.url."
    if status >= 500:
        return f"{name} failed ({status}). Try again later, or go on without."
    return f"{name} did not accept the search ({status})."


def _hint(service: SearchService, lacking: str) -> str:
    if service.backend.label == "SearXNG":
        return " The instance must allow the format `json` (search.formats in its settings.yml)."
    if lacking == "json":
        return " The user can check web_search.url."
    return " The user can check the key: web_search.api_key" + (
        f" or {service.backend.key_env}." if service.backend.key_env else "."
    )


def _line(text: str, most: int) -> str:
    """One line without markup and control characters."""
    plain = b"".join(clean(unescape(re.sub(_TAGS, "", text)).encode(errors="replace"))).decode()
    line = " ".join(plain.split())
    return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"
