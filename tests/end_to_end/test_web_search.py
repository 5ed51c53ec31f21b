"""Searching the web from outside: when it is offered, who may, and that the key stays here."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.command import run_wolo
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import call, text
from tests.fakes.search_server import SearchServer, search_server

KEY = "brave-key-0123456789"
ASKS = {"query": "how to"}


@pytest.fixture
def server() -> Iterator[SearchServer]:
    with search_server() as running:
        running.answer = {"web": {"results": [{"title": "T", "url": "https://a.example/", "description": f"It knows {KEY}."}]}}
        yield running


def test_search_is_judged_as_fetch_with_private_key(
    provider: ProviderServer, server: SearchServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BRAVE_API_KEY", KEY)
    settings = ("--set", "web_search.backend=brave", "--set", f"web_search.url={server.url}")
    provider.script(call("web_search", ASKS), text("Denied."))
    done = run_wolo("--json", *settings, *provider.flags, "go")
    assert (done.exit_code, server.asked) == (4, [])
    provider.script(call("web_search", ASKS), text("Found."))
    done = run_wolo("--json", *settings, "--allow", f"fetch:{server.url.removeprefix('http://')}", *provider.flags, "go")
    assert (done.exit_code, done.json["result"]) == (0, "Found.")
    assert "https://a.example/" in provider.requests[-1].results[0]
    assert server.asked[0][2]["x-subscription-token"] == KEY
    written = b"".join(file.read_bytes() for file in Path(os.environ["WOLO_HOME"]).rglob("*") if file.is_file())
    assert KEY.encode() not in written
    assert KEY not in done.stdout + done.stderr + str(provider.requests[-1].body)


def test_it_is_offered_only_with_a_service(provider: ProviderServer, server: SearchServer) -> None:
    provider.script(text("No."))
    done = run_wolo("-p", *provider.flags, "go")
    assert '"web_search"' not in str(provider.requests[-1].body).replace("'", '"')
    assert "web_search" not in done.stderr
    provider.script(text("No."))
    done = run_wolo("-p", "--set", "web_search.backend=tavily", *provider.flags, "go")
    assert "TAVILY_API_KEY" in done.stderr
    assert '"web_search"' not in str(provider.requests[-1].body).replace("'", '"')


def test_a_saved_key_is_used(provider: ProviderServer, server: SearchServer) -> None:
    done = run_wolo("auth", "login", "Brave", "--no-keyring", stdin=f"{KEY}\n")
    assert done.exit_code == 0, done.stderr
    assert "tried at the first search" in done.stderr
    provider.script(call("web_search", ASKS), text("Found."))
    settings = ("--set", "web_search.backend=brave", "--set", f"web_search.url={server.url}")
    done = run_wolo("-p", *settings, "--yolo", *provider.flags, "go")
    assert (done.exit_code, done.stderr) == (0, "")
    assert server.asked[0][2]["x-subscription-token"] == KEY
    assert KEY not in provider.requests[-1].results[0]
    assert "brave" in run_wolo("auth", "status").stdout
    assert run_wolo("auth", "logout", "brave").exit_code == 0
