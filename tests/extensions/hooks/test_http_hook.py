"""Addresses that a hook may send events to."""

from __future__ import annotations

import asyncio

import pytest

from tests.fakes.search_server import search_server
from wolo.extensions.hooks.definitions import Hook
from wolo.extensions.hooks.http_hook import MOST_BYTES, post
from wolo.tools.tool_values import HookReply


def sent(url: str, *, is_own: bool = False, event: str = "Stop") -> HookReply | str:
    return asyncio.run(post(event, Hook(type="http", url=url), b"{}", 5, is_own=is_own))


@pytest.mark.parametrize("url", ["http://10.0.0.1/", "http://169.254.169.254/latest", "http://router/", "http://[fd00::1]/"])
def test_project_hook_reaches_no_private_network(url: str) -> None:
    answer = sent(url)
    assert isinstance(answer, str)
    assert answer.startswith("was not sent: ")
    assert "only public addresses" in answer


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_local_machine_is_reached_and_redirects_not_followed(host: str) -> None:
    with search_server() as server:
        server.answer = {"decision": "block", "reason": "no"}
        url = server.url.replace("127.0.0.1", host)
        assert sent(url) == HookReply(decision="deny", reason="no")
        server.answer = b""
        assert sent(url) == HookReply()
        server.answer = b"frozen"
        assert sent(url, event="SessionStart") == HookReply(context="frozen")
        server.answer = b"x" * (MOST_BYTES + 1)
        assert sent(url) == f"was answered with more than {MOST_BYTES:,} bytes"
        server.status, server.headers = 302, {"location": "http://10.0.0.1/"}
        server.answer = b""
        assert sent(url) == "was answered with status 302"


def test_a_server_that_is_not_there_is_named() -> None:
    with search_server() as server:
        url = server.url
    answer = sent(url, is_own=True)
    assert isinstance(answer, str)
    assert answer.startswith("failed: ")
    assert "127.0.0.1" in answer
