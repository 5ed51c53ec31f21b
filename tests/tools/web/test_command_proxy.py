"""The proxy of sandboxed commands under attack, over real sockets: only allowed hosts are reached, or even looked up."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from tests.tools.web.site import Site, answer
from wolo.tools.web import command_proxy
from wolo.tools.web.address import Domains, is_public
from wolo.tools.web.command_proxy import MOST_HEADERS, CommandNetwork, CommandProxy


@dataclass
class Way:
    """A proxy as a command finds it, and the site behind it."""

    proxy: CommandProxy
    site: Site
    place: tuple[str, int]
    writers: list[asyncio.StreamWriter] = field(default_factory=list)

    async def open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection(*self.place)
        self.writers.append(writer)
        return reader, writer

    async def send(self, data: bytes | str) -> str:
        """All that comes back until the proxy ends the connection."""
        reader, writer = await self.open()
        writer.write(data.encode() if isinstance(data, str) else data)
        return (await reader.read()).decode()

    async def get(self, url: str, *headers: str) -> str:
        return await self.send("\r\n".join((f"GET {url} HTTP/1.1", *headers, "", "")))

    async def tunnel(self, authority: str, *headers: str) -> str:
        """The page of the site through a tunnel, or the proxy's answer."""
        reader, writer = await self.open()
        writer.write("\r\n".join((f"CONNECT {authority} HTTP/1.1", *headers, "", "")).encode())
        head = await reader.readuntil(b"\r\n\r\n")
        if b" 200 " in head:
            writer.write(b"GET / HTTP/1.1\r\nhost: inside\r\n\r\n")
        return (head + await reader.read()).decode()


Ask = Callable[[str, bool], "asyncio.Future[bool]"]


@asynccontextmanager
async def way(
    *allowed: str,
    denied: tuple[str, ...] = (),
    environ: dict[str, str] | None = None,
    open_network: bool = True,
    **options: object,
) -> AsyncIterator[Way]:
    """`{port}` is that of the site, which every name leads to."""
    site = Site({"/": answer("hello from the site")})
    server = await asyncio.start_server(site.serve, "127.0.0.1", 0)
    site.port = server.sockets[0].getsockname()[1]
    domains = Domains([each.format(port=site.port) for each in allowed], denied)
    is_open = (lambda address: address == "127.0.0.1" or is_public(address)) if open_network else is_public
    network = CommandNetwork(domains, {k: v.format(port=site.port) for k, v in (environ or {}).items()}, site.look_up, is_open)
    proxy = CommandProxy(network, **options)  # type: ignore[arg-type]  # of the test
    with socket.socket() as listener:  # as the launcher does
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        with socket.socket(fileno=socket.dup(proxy.fd)) as channel:
            socket.send_fds(channel, [b"l"], [listener.fileno()])
        found = Way(proxy, site, listener.getsockname())
    try:
        yield found
    finally:
        for writer in found.writers:
            writer.close()
        proxy.close()
        await asyncio.sleep(0)
        server.close()


async def test_allowed_host_is_reached_and_recorded() -> None:
    async with way("site.example:{port}") as found:
        port = found.site.port
        page = await found.get(
            f"http://site.example:{port}/", f"Host: site.example:{port}", "Proxy-Authorization: Basic c2VjcmV0"
        )
        assert page.endswith("hello from the site")
        assert (await found.tunnel(f"site.example:{port}")).endswith("hello from the site")
        (record,) = found.proxy.connections
        assert (record["host"], record["port"], record["allowed"]) == ("site.example", port, True)
        assert record["bytes"] > 200
        assert found.proxy.denial() == ""
        assert not any("roxy" in head for head in found.site.heads)


@pytest.mark.parametrize(
    "authority",
    [
        "other.example:{port}",
        "site.example.other.example:{port}",
        "notsite.example:{port}",
        "127.0.0.1:{port}",
        "[::1]:{port}",
        "[::ffff:127.0.0.1]:{port}",
        "[::ffff:7f00:1]:{port}",
        "[fe80::1]:{port}",
        "169.254.169.254:80",
        "10.0.0.1:443",
        "localhost:{port}",
        "site.example:22",
        "93.184.216.34:443",
        "a1b2c3d4e5f6-secret-in-a-name.site.example:443",
        "xn--st-xka.example:{port}",
    ],
)
async def test_other_hosts_are_refused_without_lookup(authority: str) -> None:
    async with way("site.example:{port}", "site.example", open_network=False) as found:
        seen = await found.tunnel(authority.format(port=found.site.port))
        assert seen.startswith("HTTP/1.1 403 ")
        assert "sandbox.allowed_domains" in seen
        assert found.site.looked_up == []
        assert found.site.heads == []
        assert [each["allowed"] for each in found.proxy.connections] == [False]
        assert "sandbox.allowed_domains" in found.proxy.denial()


@pytest.mark.parametrize(
    "authority",
    [
        "2130706433:80",
        "0x7f000001:80",
        "0177.0.0.1:80",
        "127.1:80",
        "site.example",
        "site.example:0",
        "site.example:99999",
        "user@site.example:80",
        "site.example:80/x",
        "site.example..:80",
        "[fe80::1%25eth0]:80",
        "site.example:80:80",
        "[site.example]:80",
        "bücher.example:80",
        "site%2eexample:80",
        "",
    ],
)
async def test_odd_spellings_are_refused_without_lookup(authority: str) -> None:
    async with way("*") as found:
        assert (await found.tunnel(authority)).startswith("HTTP/1.1 400 ")
        assert found.site.looked_up == found.site.heads == []


@pytest.mark.parametrize("authority", ["SITE.Example:{port}", "site.example.:{port}"])
async def test_spellings_of_one_name_are_that_name(authority: str) -> None:
    async with way("site.example:{port}") as found:
        assert (await found.tunnel(authority.format(port=found.site.port))).endswith("hello from the site")
        assert found.site.looked_up == ["site.example"]
    async with way("*", denied=("site.example",)) as found:
        assert (await found.tunnel(authority.format(port=found.site.port))).startswith("HTTP/1.1 403 ")


async def test_wildcard_takes_whole_labels_and_deny_wins() -> None:
    async with way("*.example.org:{port}", denied=("bad.example.org",)) as found:
        port = found.site.port
        assert (await found.tunnel(f"a.b.example.org:{port}")).endswith("hello from the site")
        for name in ("example.org", "badexample.org", "bad.example.org"):
            assert (await found.tunnel(f"{name}:{port}")).startswith("HTTP/1.1 403 ")
        assert "bad.example.org" in found.proxy.denial()
        assert "sandbox.denied_domains has it" in found.proxy.denial()


@pytest.mark.parametrize(
    "address",
    ["169.254.169.254", "127.0.0.1", "10.1.2.3", "192.168.0.1", "100.100.100.200", "::1", "fd00:ec2::254", "::ffff:10.0.0.1"],
)
async def test_name_that_leads_inside_is_refused(address: str) -> None:
    async with way("*", open_network=False) as found:
        found.site.names["site.example"] = ("93.184.216.34", address)
        for seen in (await found.tunnel("site.example:443"), await found.get("http://site.example/")):
            assert seen.startswith("HTTP/1.1 403 ")
            assert address in seen
        assert all(not each["allowed"] for each in found.proxy.connections)
        assert found.site.heads == []


async def test_inner_address_must_be_named_itself() -> None:
    async with way("site.example:{port}", "127.0.0.1", open_network=False) as found:
        assert (await found.tunnel(f"site.example:{found.site.port}")).endswith("hello from the site")
    async with way("*", open_network=False) as found:
        assert (await found.tunnel(f"127.0.0.1:{found.site.port}")).startswith("HTTP/1.1 403 ")
    async with way("127.0.0.1:{port}", open_network=False) as found:
        assert (await found.tunnel(f"127.0.0.1:{found.site.port}")).endswith("hello from the site")


async def test_host_header_must_be_that_of_the_request() -> None:
    async with way("site.example:{port}") as found:
        port = found.site.port
        for header in (
            "Host: other.example",
            f"Host: site.example:{port}\r\nHost: other.example",
            "Host: site.example:1",
            "Host: ",
        ):
            assert (await found.get(f"http://site.example:{port}/", header)).startswith("HTTP/1.1 400 ")
            assert (await found.tunnel(f"site.example:{port}", header)).startswith("HTTP/1.1 400 ")
        assert found.site.heads == []


@pytest.mark.parametrize(
    "headers",
    [
        "Content-Length: 3\r\nContent-Length: 4",
        "Content-Length: 3, 3",
        "Content-Length: +3",
        "Content-Length : 3",
        "Transfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 3",
        "X: 1\r\n continued: yes",
        "X: 1\nHost: other.example",
        "X: 1\rY: 2",
        "X: \x00",
        "no colon",
        ": empty",
    ],
)
async def test_smuggling_is_refused(headers: str) -> None:
    async with way("site.example:{port}") as found:
        seen = await found.get(f"http://site.example:{found.site.port}/", headers)
        assert seen.startswith(("HTTP/1.1 400 ", "HTTP/1.1 411 "))
        assert found.site.heads == []


async def test_second_request_never_reaches_the_server() -> None:
    async with way("site.example:{port}") as found:
        port = found.site.port
        headers = "Content-Length: 3\r\nConnection: keep-alive, X-Hop\r\nX-Hop: 1"
        first = f"POST http://site.example:{port}/ HTTP/1.1\r\n{headers}\r\n\r\nabc"
        await found.send(f"{first}GET http://site.example:{port}/second HTTP/1.1\r\nHost: other.example\r\n\r\n")
        (head,) = found.site.heads
        assert "other.example" not in head
        assert "second" not in head
        assert "x-hop" not in head.lower()
        assert "connection: close" in head


async def test_huge_heads_are_refused() -> None:
    async with way("site.example:{port}") as found:
        url = f"http://site.example:{found.site.port}/"
        many = [f"X-{number}: 1" for number in range(MOST_HEADERS + 1)]
        assert (await found.get(url, *many)).startswith("HTTP/1.1 431 ")
        assert (await found.get(url, "X: " + "a" * 100_000)).startswith("HTTP/1.1 431 ")


@pytest.mark.parametrize(
    "first",
    [
        "GET / HTTP/1.1",
        "GET https://site.example/ HTTP/1.1",
        "GET ftp://a/ HTTP/1.1",
        "\x16\x03\x01",
        "GET  http://a/ HTTP/1.1",
        "GET http://a/ HTTP/2",
    ],
)
async def test_other_requests_are_refused(first: str) -> None:
    async with way("*") as found:
        assert (await found.send(f"{first}\r\n\r\n")).startswith("HTTP/1.1 400 ")


async def test_slow_head_ends_at_its_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command_proxy, "HEAD_S", 0.05)
    async with way("*") as found:
        assert await found.send("GET http://site.example/") == ""


async def test_flood_of_connections_leaves_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command_proxy, "MOST_AT_ONCE", 4)
    async with way("site.example:{port}") as found:
        idle = [await found.open() for _ in range(4)]
        for _ in range(20):
            reader, _ = await found.open()
            assert await reader.read() == b""
        for _, writer in idle:
            writer.close()
            await writer.wait_closed()
        while found.proxy._tasks:  # until the proxy has seen it
            await asyncio.sleep(0)
        assert (await found.tunnel(f"site.example:{found.site.port}")).endswith("hello from the site")


async def test_flood_of_names_keeps_the_record_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command_proxy, "MOST_HOSTS", 10)
    async with way() as found:
        answers = [await found.tunnel(f"n{number}.example:443") for number in range(15)]
        assert [seen.split()[1] for seen in answers] == ["403"] * 10 + ["429"] * 5
        assert len(found.proxy.connections) == 10
        assert "4 other hosts" in found.proxy.denial()


async def test_user_is_asked_once_for_a_host() -> None:
    asked: list[str] = []
    may_answer = asyncio.Event()

    async def ask(host: str, may_ask: bool) -> bool:
        asked.append(host)
        await may_answer.wait()
        return host.startswith("good")

    async with way(ask=ask) as found:
        port = found.site.port
        waiting = [asyncio.create_task(found.tunnel(f"good.example:{port}")) for _ in range(3)]
        _, impatient = await found.open()
        impatient.write(f"CONNECT good.example:{port} HTTP/1.1\r\n\r\n".encode())
        while not found.proxy.is_asking:
            await asyncio.sleep(0)
        impatient.close()
        assert found.site.looked_up == []
        may_answer.set()
        assert all(page.endswith("hello from the site") for page in await asyncio.gather(*waiting))
        assert (await found.tunnel(f"bad.example:{port}")).startswith("HTTP/1.1 403 ")
        assert asked == [f"good.example:{port}", f"bad.example:{port}"]
        assert "the user did not allow it" in found.proxy.denial()
        assert not found.proxy.is_asking


async def test_user_is_not_flooded_with_questions() -> None:
    asked: list[str] = []

    async def ask(host: str, may_ask: bool) -> bool:
        asked.append(host)
        return False

    async with way(ask=ask, denied=("never.example",), open_network=False) as found:
        for host in ("never.example", "10.0.0.1", "169.254.169.254", *(f"n{number}.example" for number in range(30))):
            assert (await found.tunnel(f"{host}:443")).startswith("HTTP/1.1 403 ")
    assert asked == [f"n{number}.example" for number in range(command_proxy.MOST_QUESTIONS)]


async def test_own_proxy_of_the_user_is_used() -> None:
    async with way("site.example", environ={"http_proxy": "http://me:pass@127.0.0.1:{port}"}) as found:
        found.site.pages["http://site.example/x?y"] = answer("by the other proxy")
        assert (await found.get("http://site.example/x?y")).endswith("by the other proxy")
        (head,) = found.site.heads
        assert "proxy-authorization: Basic bWU6cGFzcw==" in head
        assert (await found.get("http://other.example/")).startswith("HTTP/1.1 403 ")
        found.site.names["site.example"] = ("169.254.169.254",)
        assert (await found.get("http://site.example/")).startswith("HTTP/1.1 403 ")
        assert len(found.site.heads) == 1


@pytest.mark.parametrize("reply", [b"HTTP/1.1 407 Denied\r\n\r\n", b"nonsense\r\n\r\n", b"", b"SSH-2.0 200 x\r\n\r\n"])
async def test_lying_proxy_is_one_sentence(reply: bytes) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(reply)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with way("site.example", environ={"https_proxy": f"http://127.0.0.1:{port}"}) as found:
        seen = await found.tunnel("site.example:443")
        assert seen.startswith("HTTP/1.1 502 ")
        assert f"wolo: site.example:443 cannot be reached: the proxy http://127.0.0.1:{port} " in seen
    server.close()


async def test_unknown_name_is_one_sentence() -> None:
    async with way("*") as found:
        seen = await found.tunnel("unknown.example:443")
        assert seen.startswith("HTTP/1.1 502 ")
        assert "unknown.example:443 cannot be reached" in seen
