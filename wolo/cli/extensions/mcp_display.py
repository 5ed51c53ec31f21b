"""Shows the configuration of MCP servers without their secrets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from msgspec import to_builtins
from msgspec.structs import replace

from wolo.messages.secret_values import is_secret_name
from wolo.messages.terminal_text import clean_line, escaped_line

if TYPE_CHECKING:
    from wolo.mcp.server import ConfiguredServer, Server

HIDDEN = "(hidden)"
_LONGEST_PLAIN = 20
"""Longer values of variables may be keys."""


def details(configured: ConfiguredServer) -> dict[str, Any]:
    """Everything about one server, as JSON."""
    from wolo.conversation.resources.mcp_servers import last_known, login_state
    from wolo.mcp.server import OAuth

    server, known = configured.server, last_known(configured)
    oauth = {} if server.oauth == OAuth() else {name: value for name, value in to_builtins(server.oauth).items() if value}
    return {
        "name": configured.name,
        "scope": configured.scope,
        "source": clean_line(configured.source),
        "state": known.state,
        "type": "stdio" if server.command else "sse" if server.transport == "sse" else "http",
        "command": escaped_line(server.command),
        "args": list(map(escaped_line, masked_words(server.args))),
        "cwd": escaped_line(server.cwd),
        "url": escaped_line(masked_url(server.url)),
        "env": mask(server.env),
        "headers": {name: _or_hidden(value) for name, value in server.headers.items()},
        "oauth": {
            name: _or_hidden(value) if name in ("client_secret", "private_key", "id_token") else value
            for name, value in oauth.items()
        },
        "login": login_state(configured),
        "enabled": server.enabled,
        "tools": None if known.tools is None else list(known.tools),
        "error": escaped_line(known.why) or None,
    }


def address_of(server: Server) -> str:
    """The command line or the address, in one line."""
    from wolo.mcp.server import describe_server

    without_secrets = replace(server, args=tuple(masked_words(server.args)), url=masked_url(server.url))
    _, shown = next(iter(describe_server(without_secrets)))
    return escaped_line(shown)


def mask(values: Mapping[str, str]) -> dict[str, str]:
    """References and short values with ordinary names are shown."""
    return {
        name: _or_hidden(value) if is_secret_name(name) or len(value) > _LONGEST_PLAIN else escaped_line(value)
        for name, value in values.items()
    }


def masked_words(words: Iterable[str]) -> Iterator[str]:
    """Hides values of options with a secret name, and of headers."""
    is_value = False
    for word in words:
        name, equals, value = word.partition("=")
        if is_value and not word.startswith("-"):
            yield _or_hidden(word)
        elif equals and value and is_secret_name(name):
            yield f"{name}={_or_hidden(value)}"
        elif word.lower().startswith("authorization:") or (
            ":" in word and is_secret_name(word.partition(":")[0]) and " " in word
        ):
            yield f"{word.partition(':')[0]}: {_or_hidden(word.partition(':')[2].strip())}"
        else:
            yield word
        is_value = word.startswith("-") and not equals and is_secret_name(word)


def masked_url(url: str) -> str:
    """Hides a password, and secrets of the query."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return url.partition("?")[0].rpartition("@")[2]
    query = [(name, mask({name: value})[name]) for name, value in parse_qsl(parts.query, keep_blank_values=True)]
    userinfo, at, host = parts.netloc.rpartition("@")
    shown = f"{userinfo.partition(':')[0]}:{HIDDEN}@{host}" if at and ":" in userinfo else parts.netloc
    return parts._replace(netloc=shown, query=urlencode(query, safe="${}()")).geturl()


def _or_hidden(value: str) -> str:
    return escaped_line(value) if "${" in value or value.startswith("$") else HIDDEN
