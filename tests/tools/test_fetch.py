"""Fetching: what comes back of a page, where a fetch may go, and what it can never be made to do."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.clock import processor_time_below
from tests.tools.harness import ToolHarness
from tests.tools.web.site import Site, answer, moved, site
from wolo.errors import ToolError
from wolo.guard.intents import FetchIntent
from wolo.guard.secrets.redactor import Secrets
from wolo.messages.secret_values import Secret
from wolo.tools.fetch import UNTRUSTED, Fetch
from wolo.tools.tool import CallContext, ToolServices
from wolo.tools.tool_values import CallResult, Fetched
from wolo.tools.toolbox import Toolbox


@pytest.fixture
async def here() -> AsyncIterator[Site]:
    async with site() as running:
        yield running


@pytest.fixture
def services(tmp_path: Path) -> ToolServices:
    def keep(name: str, data: bytes) -> Path:
        file = tmp_path / name
        file.write_bytes(data)
        return file

    return replace(ToolHarness(tmp_path).services, save_output=keep)


async def fetch(tool: Fetch, services: ToolServices, url: str, **arguments: Any) -> CallResult:
    _, args = Toolbox((tool,)).decode("fetch", {"url": url, **arguments})
    tool.intents(args, services)  # type: ignore[arg-type]  # the toolbox made them
    return await tool.run(args, CallContext(services))  # type: ignore[arg-type]  # the same


async def test_page_comes_as_markdown_with_source_and_kind(here: Site, services: ToolServices) -> None:
    here.pages["/a?b=c"] = answer("<title>The title</title><h1>One</h1><p>Two <a href='/x'>three</a>.<script>evil()</script>")
    result = await fetch(here.tool(), services, here.url("/a?b=c#part"))
    url = here.url("/a?b=c")
    assert result.text == (
        f"[{url} · 200 OK · html · 89 bytes]\n[Title: The title]\n[{UNTRUSTED}]\n\n# One\n\nTwo [three]({here.url('/x')})."
    )
    assert (result.view, result.is_error) == (Fetched(url, 200, 89), False)


async def test_nothing_unneeded_is_sent_to_the_page(here: Site, services: ToolServices) -> None:
    here.pages["/"] = moved("/next", "302 Found\r\nset-cookie: a=b")
    here.pages["/next"] = answer("<p>x")
    await fetch(here.tool(), services, here.url("/"))
    for head in here.heads:
        names = {line.partition(":")[0].lower() for line in head.split("\r\n")[1:] if line}
        assert names == {"host", "accept", "accept-encoding", "user-agent"}
        assert f"\r\nhost: site.example:{here.port}\r\n" in head.lower()
        assert "wolo/" in head


@pytest.mark.parametrize("kind", ["application/json", "text/plain", "application/vnd.api+json", "text/css", "application/toml"])
async def test_text_comes_as_it_is(here: Site, services: ToolServices, kind: str) -> None:
    here.pages["/"] = answer('{"a": "<b>1</b>"}\r\nx', kind=kind)
    assert (await fetch(here.tool(), services, here.url())).text.endswith(']\n\n{"a": "<b>1</b>"}\nx')


async def test_html_comes_unchanged_on_request(here: Site, services: ToolServices) -> None:
    here.pages["/"] = answer("<p>x</p><script>y()</script>")
    assert (await fetch(here.tool(), services, here.url(), raw=True)).text.endswith("\n\n<p>x</p><script>y()</script>")


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("application/pdf", b"%PDF-1.7"),
        ("image/png", b"\x89PNG"),
        ("application/zip", b"PK"),
        ("application/octet-stream", b"a\0b"),
        ("", b"\0\0"),
        ("text/plain", b"a\0b"),
        ("video/mp4; x=y", b"x"),
    ],
)
async def test_non_text_content_is_refused_in_sentence(here: Site, services: ToolServices, kind: str, body: bytes) -> None:
    here.pages["/"] = answer(body, kind=kind)
    with pytest.raises(ToolError, match=r"is not text: [a-z/-]+4?, \d bytes\."):
        await fetch(here.tool(), services, here.url())


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("é".encode(), "text/plain; charset=utf-8"),
        (b"\xe9", "text/plain; charset=ISO-8859-1"),
        (b"\xe9", "text/plain; charset=no-such-thing"),
        (b"\xe9", 'text/plain; charset="latin1"'),
        (b"\xe9", "text/plain"),
        ("\ufeffé".encode(), "text/plain; charset=latin1"),
        ("\ufeffé".encode("utf-16-le"), "text/plain"),
        (b'<meta charset="windows-1252">\xe9', "text/html"),
        (b"<meta http-equiv=content-type content='text/html; charset=iso-8859-15'>\xe9", "text/html"),
        (b'<?xml version="1.0" encoding="latin1"?><p>\xe9', "application/xhtml+xml"),
        ("é".encode(), "text/plain; charset=zlib_codec"),
        ("é".encode(), "text/plain; charset=unicode_escape"),
    ],
)
async def test_any_charset_is_read(here: Site, services: ToolServices, body: bytes, kind: str) -> None:
    here.pages["/"] = answer(body, kind=kind)
    assert (await fetch(here.tool(), services, here.url())).text.endswith("\n\né")


async def test_packed_pages_are_unpacked(here: Site, services: ToolServices) -> None:
    for encoding, packed in (
        ("gzip", gzip.compress(b"x" * 100)),
        ("deflate", zlib.compress(b"x" * 100)),
        ("identity", b"x" * 100),
    ):
        here.pages["/"] = answer(packed, kind="text/plain", content_encoding=encoding)
        assert (await fetch(here.tool(), services, here.url())).text.endswith("\n\n" + "x" * 100)
    here.pages["/"] = answer(b"x", kind="text/plain", content_encoding="br")
    with pytest.raises(ToolError, match="unrequested encoding: br"):
        await fetch(here.tool(), services, here.url())
    here.pages["/"] = answer(b"no gzip", kind="text/plain", content_encoding="gzip")
    with pytest.raises(ToolError):
        await fetch(here.tool(), services, here.url())


async def test_a_bomb_is_stopped_early(here: Site, services: ToolServices) -> None:
    here.pages["/"] = answer(gzip.compress(b"x\n" * 50_000_000, 1), kind="text/plain", content_encoding="gzip")
    with processor_time_below(10):
        result = await fetch(here.tool(), services, here.url())
    assert "Truncated" in result.text
    assert isinstance(result.view, Fetched)
    assert result.view.size_bytes == 5 * 1024 * 1024


async def test_a_page_without_end_is_stopped(here: Site, services: ToolServices) -> None:
    async def endless(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n")
        while True:
            writer.write(b"line\n" * 10_000)
            await writer.drain()

    here.pages["/"] = endless
    assert "Truncated" in (await fetch(here.tool(), services, here.url())).text


async def test_long_page_gives_both_ends_and_its_file(here: Site, services: ToolServices, tmp_path: Path) -> None:
    here.pages["/"] = answer("".join(f"<p>line {n}</p>" for n in range(20_000)))
    result = await fetch(here.tool(), services, here.url())
    assert len(result.text) < 40_000
    assert "line 1\n" in result.text
    assert "line 19999\n" in result.text
    whole = tmp_path / "site.example.md"
    assert f"{whole} — page it with read" in result.text
    assert "line 10000\n" in whole.read_text()


@pytest.mark.parametrize("status", ["404 Not Found", "500 Internal Server Error", "403 Forbidden"])
async def test_error_page_text_is_a_result(here: Site, services: ToolServices, status: str) -> None:
    here.pages["/"] = answer("<h1>Sorry</h1>", status=status)
    result = await fetch(here.tool(), services, here.url())
    assert result.is_error
    assert f"· {status} · html" in result.text
    assert result.text.endswith("# Sorry")


async def test_an_empty_page_says_so(here: Site, services: ToolServices) -> None:
    here.pages["/"] = answer("")
    assert (await fetch(here.tool(), services, here.url())).text.endswith("(nothing to read)")


async def test_redirects_on_one_server_follow_five_times(here: Site, services: ToolServices) -> None:
    here.pages |= {
        f"/{n}": moved(f"/{n + 1}", status) for n, status in enumerate(("301 M", "302 F", "303 S", "307 T", "308 P", "302 F"))
    }
    here.pages["/6"] = answer("<p>here</p>")
    assert (await fetch(here.tool(), services, here.url("/1"))).text.endswith("here")
    with pytest.raises(ToolError, match="redirects more than 5 times"):
        await fetch(here.tool(), services, here.url("/0"))
    here.pages["/loop"] = moved("/loop")
    with pytest.raises(ToolError, match="redirects more than 5 times"):
        await fetch(here.tool(), services, here.url("/loop"))


async def test_redirect_to_another_host_is_named_unfollowed(here: Site, services: ToolServices) -> None:
    for other in (
        here.url("/there", "other.example"),
        f"http://site.example:{here.port + 1}/",
        "https://site.example/",
        "//evil.example/x",
    ):
        here.pages["/"] = moved(other)
        here.looked_up.clear()
        result = await fetch(here.tool(), services, here.url())
        assert "redirects to another server, which was not contacted: http" in result.text
        assert other.partition("//")[2] in result.text
        assert set(here.looked_up) == {"site.example"}


async def test_redirect_the_gate_allows_is_followed_alone(here: Site, services: ToolServices) -> None:
    asked: list[str] = []
    allowed = replace(services, may_fetch=lambda url: asked.append(url) is None and "other.example" in url)
    here.pages |= {"/": moved(here.url("/there", "other.example")), "/there": moved(here.url("/third", "third.example"))}
    result = await fetch(here.tool(), allowed, here.url())
    assert f"not contacted: {here.url('/third', 'third.example')}" in result.text
    assert asked == [here.url("/there", "other.example"), here.url("/third", "third.example")]
    assert here.looked_up == ["site.example", "other.example"]


@pytest.mark.parametrize(
    "location",
    [
        "ftp://x.example/",
        "javascript:alert(1)",
        "file:///etc/passwd",
        "http://u:p@site.example/",
        "http://[::1",
        "http://0x7f.1/",
    ],
)
async def test_redirect_to_forbidden_kinds_is_an_error(here: Site, services: ToolServices, location: str) -> None:
    here.pages["/"] = moved(location)
    with pytest.raises(ToolError):
        await fetch(here.tool(), replace(services, may_fetch=lambda url: True), here.url())


@pytest.mark.parametrize(
    "to", ["http://10.0.0.1/", "http://169.254.169.254/latest/meta-data/", "http://inside.example/", "http://[::1]/"]
)
async def test_redirect_into_private_networks_is_always_refused(here: Site, services: ToolServices, to: str) -> None:
    here.names["inside.example"] = ("192.168.1.1",)
    here.pages["/"] = moved(to)
    with pytest.raises(ToolError, match="only public addresses can be fetched"):
        await fetch(here.tool(), replace(services, may_fetch=lambda url: True), here.url())


async def test_name_is_looked_up_and_checked_once(here: Site, services: ToolServices) -> None:
    """A name server that says something else the second time changes nothing."""
    here.pages["/"] = answer("<p>first</p>")
    answers = iter((("127.0.0.1",), ("10.0.0.1",)))

    async def rebinding(host: str, port: int) -> Any:
        return next(answers)

    here.look_up = rebinding  # type: ignore[method-assign]  # a name server with a mind of its own
    tool = here.tool()
    assert (await fetch(tool, services, here.url())).text.endswith("first")
    with pytest.raises(ToolError, match="private network"):
        await fetch(tool, services, here.url())


async def test_one_private_address_among_public_is_refused(here: Site, services: ToolServices) -> None:
    here.names["mixed.example"] = ("127.0.0.1", "10.1.2.3")
    with pytest.raises(ToolError, match=r"mixed\.example is in a private network"):
        await fetch(here.tool(), services, here.url(host="mixed.example"))
    assert here.heads == []


async def test_nothing_here_is_reachable_without_test_network(here: Site, services: ToolServices) -> None:
    """The same page, fetched as it is fetched in earnest."""
    here.pages["/"] = answer("<p>x</p>")
    assert (await fetch(here.tool(), services, here.url(host="127.0.0.1"))).text.endswith("x")
    for host in ("127.0.0.1", "localhost", "127.0.0.1.", "LOCALHOST.", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0"):
        with pytest.raises(ToolError, match="only public addresses"):
            await fetch(Fetch(environ={}), services, here.url(host=host))
    assert len(here.heads) == 1


async def test_no_environment_lifts_that(here: Site, services: ToolServices, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_PROXY", "no_proxy", "WOLO_FETCH_PRIVATE", "WOLO_MODE"):
        monkeypatch.setenv(name, "*")
    with pytest.raises(ToolError, match="only public addresses"):
        await fetch(Fetch(), services, here.url(host="127.0.0.1"))


async def test_unknown_names_and_closed_ports_are_sentences(here: Site, services: ToolServices) -> None:
    with pytest.raises(ToolError, match=r"The host name unknown\.example:\d+ cannot be resolved"):
        await fetch(here.tool(), services, here.url(host="unknown.example"))
    with pytest.raises(ToolError, match=r"Nothing listens at site\.example:9"):
        await fetch(here.tool(), services, "http://site.example:9/")


async def test_next_address_is_tried_after_silence(here: Site, services: ToolServices) -> None:
    here.pages["/"] = answer("<p>x</p>")
    here.names["two.example"] = ("127.0.0.1", "127.0.0.1")
    assert (await fetch(here.tool(), services, here.url(host="two.example"))).text.endswith("x")


async def test_silent_server_is_left_after_a_while(here: Site, services: ToolServices, monkeypatch: pytest.MonkeyPatch) -> None:
    async def silent(writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(60)

    here.pages["/"] = silent
    monkeypatch.setattr("wolo.tools.fetch.NETWORK_S", 0.3)
    with pytest.raises(ToolError, match="took more than"):
        await fetch(here.tool(), services, here.url())


async def test_drops_do_not_extend_the_time_limit(here: Site, services: ToolServices, monkeypatch: pytest.MonkeyPatch) -> None:
    async def dripping(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n")
        while True:
            writer.write(b"x")
            await asyncio.sleep(0.02)

    here.pages["/"] = dripping
    monkeypatch.setattr("wolo.tools.fetch.NETWORK_S", 0.5)
    with pytest.raises(ToolError, match="took more than"):
        await fetch(here.tool(), services, here.url())


async def test_a_fetch_can_be_cancelled_at_once(here: Site, services: ToolServices) -> None:
    reached = asyncio.Event()

    async def silent(writer: asyncio.StreamWriter) -> None:
        reached.set()
        await asyncio.Event().wait()

    here.pages["/"] = silent
    task = asyncio.ensure_future(fetch(here.tool(), services, here.url()))
    await reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_look_up_that_hangs_holds_nobody(here: Site, services: ToolServices) -> None:
    reached = asyncio.Event()

    async def hanging(host: str, port: int) -> Any:
        reached.set()
        await asyncio.Event().wait()

    here.look_up = hanging  # type: ignore[method-assign]  # a name server that is gone
    task = asyncio.ensure_future(fetch(here.tool(), services, here.url()))
    await reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_broken_content_shows_as_far_as_received(here: Site, services: ToolServices) -> None:
    async def broken(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 1000\r\n\r\nsome of it")

    here.pages["/"] = broken
    result = await fetch(here.tool(), services, here.url())
    assert "Truncated" in result.text
    assert result.text.endswith("some of it")


@pytest.mark.parametrize(
    "head",
    [
        b"rubbish\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 100_000 + b"\r\n",
        b"HTTP/1.1 200 OK\r\nx: " + b"y" * 2_000_000 + b"\r\n\r\n",
        b"",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
    ],
)
async def test_non_http_answer_is_a_sentence(here: Site, services: ToolServices, head: bytes) -> None:
    here.pages["/"] = head or answer()[:0]
    with pytest.raises(ToolError) as failed:
        await fetch(here.tool(), services, here.url())
    assert "site.example" in failed.value.message


async def test_escapes_in_a_page_do_not_get_far(here: Site, services: ToolServices) -> None:
    here.pages["/"] = answer("<p>a\x1b]0;title\x07b\x1b[2J</p>", status="200 \x1b[2JOK")
    assert "\x1b" not in (await fetch(here.tool(), services, here.url())).text


@pytest.mark.parametrize(
    ("given", "judged"),
    [
        ("https://Docs.Python.org./3/?q=ü#x", "https://docs.python.org/3/?q=%C3%BC"),
        ("http://example.org:80", "http://example.org/"),
        ("https://example.org:8443/a b".replace(" ", "%20"), "https://example.org:8443/a%20b"),
        ("https://bücher.example/", "https://xn--bcher-kva.example/"),
        ("https://ｅｘａｍｐｌｅ。org/", "https://example.org/"),
        ("  https://[2606:4700:0:0::1111]/x\n", "https://[2606:4700::1111]/x"),
    ],
)
async def test_guard_judges_the_address_in_one_spelling(services: ToolServices, given: str, judged: str) -> None:
    tool, args = Toolbox().decode("fetch", {"url": given})
    assert tool.intents(args, services) == (FetchIntent(judged),)


@pytest.mark.parametrize(
    "arguments",
    [
        {"uri": "https://a.org", "prompt": "what is it?"},
        {"url": "https://a.org", "format": "markdown", "timeout": 30},
        {"url": "https://a.org", "description": "look", "raw": False},
    ],
)
async def test_other_agents_spellings_are_understood(services: ToolServices, arguments: dict[str, Any]) -> None:
    tool, args = Toolbox().decode("fetch", arguments)
    assert tool.intents(args, services) == (FetchIntent("https://a.org/"),)


async def test_overlong_page_ends_in_no_half_secret(here: Site, services: ToolServices, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wolo.tools.web.download.MOST_BYTES", 2000)
    services = replace(services, secrets=Secrets([Secret("PASSWORD", "kD9vvQz81xwLm")]))
    for kind in ("text/plain", "text/html"):
        for begin in range(1986, 2000, 4):
            here.pages["/"] = answer("a " * (begin // 2) + "kD9vvQz81xwLm" + "b" * 9000, kind=kind)
            assert "D9vv" not in (await fetch(here.tool(), services, here.url("/"))).text
