"""The way to a page: certificates, proxies, and addresses that were checked and then used."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.components import require
from tests.tools.harness import ToolHarness
from tests.tools.web.site import Site, answer, moved, site
from wolo.errors import ToolError
from wolo.tools.fetch import Fetch
from wolo.tools.tool import CallContext, ToolServices
from wolo.tools.tool_values import CallResult
from wolo.tools.toolbox import Toolbox
from wolo.tools.web.address import Hosts

OUTSIDE = "93.184.216.34"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A private authority, and a certificate of it for `site.example`."""
    here = tmp_path_factory.mktemp("certificates")

    def openssl(*words: str) -> None:
        subprocess.run([require("openssl"), *words], cwd=here, check=True, capture_output=True)

    new = ("-newkey", "rsa:2048", "-nodes")
    usage = ("-addext", "keyUsage=critical,keyCertSign,cRLSign")
    openssl("req", "-x509", *new, "-days", "2", "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=Private CA", *usage)
    openssl("req", *new, "-keyout", "key.pem", "-out", "server.csr", "-subj", "/CN=site.example")
    (here / "names").write_text("subjectAltName=DNS:site.example\n")
    signed = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "names")
    openssl("x509", "-req", "-in", "server.csr", *signed, "-out", "cert.pem")
    return here


@pytest.fixture
async def here() -> AsyncIterator[Site]:
    async with site() as running:
        yield running


@pytest.fixture
def services(tmp_path: Path) -> ToolServices:
    return ToolHarness(tmp_path).services


async def fetch(tool: Fetch, services: ToolServices, url: str) -> CallResult:
    _, args = Toolbox((tool,)).decode("fetch", {"url": url})
    tool.intents(args, services)  # type: ignore[arg-type]  # the toolbox made them
    return await tool.run(args, CallContext(services))  # type: ignore[arg-type]  # the same


# Certificates


async def test_certificate_is_checked_for_name_despite_address(services: ToolServices, certificates: Path) -> None:
    async with site(certificates) as secure:
        secure.pages["/"] = answer("<p>safe</p>")
        tool = secure.tool(SSL_CERT_FILE=str(certificates / "ca.pem"))
        assert (await fetch(tool, services, secure.url(scheme="https"))).text.endswith("safe")
        with pytest.raises(ToolError, match=r"certificate of other\.example"):
            await fetch(tool, services, secure.url(scheme="https", host="other.example"))
        with pytest.raises(ToolError, match="certificate"):
            await fetch(tool, services, secure.url(scheme="https", host="127.0.0.1"))
        assert len(secure.heads) == 1


async def test_unknown_authority_is_refused_without_exception(
    services: ToolServices, certificates: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONHTTPSVERIFY", "0")
    async with site(certificates) as secure:
        with pytest.raises(ToolError, match="is not trusted"):
            await fetch(secure.tool(), services, secure.url(scheme="https"))
        assert secure.heads == []


async def test_certificates_that_cannot_be_read_are_named(here: Site, services: ToolServices) -> None:
    with pytest.raises(ToolError, match=r"no-such\.pem cannot be read"):
        await fetch(here.tool(SSL_CERT_FILE="no-such.pem"), services, here.url(scheme="https"))


# Proxies


class Proxy:
    """Leads everything to one place, whatever it was asked for."""

    def __init__(self, target_port: int) -> None:
        self.target_port = target_port
        self.asked: list[str] = []
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            line = head.decode().partition("\r\n")[0]
            self.asked.append(line)
            there, there_writer = await asyncio.open_connection("127.0.0.1", self.target_port)
            if line.startswith("CONNECT"):
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                path = "/" + line.split()[1].partition("://")[2].partition("/")[2]
                there_writer.write(f"GET {path} HTTP/1.1\r\n".encode() + head.partition(b"\r\n")[2])
            await asyncio.gather(pump(reader, there_writer), pump(there, writer), return_exceptions=True)
            there_writer.close()
        finally:
            writer.close()


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while received := await reader.read(65_536):
        writer.write(received)
        await writer.drain()
    writer.close()


@asynccontextmanager
async def proxy_to(here: Site) -> AsyncIterator[Proxy]:
    proxy = Proxy(here.port)
    listener = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    proxy.url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    try:
        yield proxy
    finally:
        listener.close()


async def test_a_proxy_is_asked_for_the_name(here: Site, services: ToolServices) -> None:
    here.pages["/x"] = answer("<p>through</p>")
    async with proxy_to(here) as proxy:
        result = await fetch(here.tool(http_proxy=proxy.url), services, "http://unknown.example/x")
    assert result.text.endswith("through")
    assert proxy.asked == ["GET http://unknown.example/x HTTP/1.1"]


async def test_tunnel_ends_at_the_certificate_of_name(services: ToolServices, certificates: Path) -> None:
    async with site(certificates) as secure, proxy_to(secure) as proxy:
        secure.pages["/"] = answer("<p>through</p>")
        tool = secure.tool(https_proxy=proxy.url, SSL_CERT_FILE=str(certificates / "ca.pem"))
        assert (await fetch(tool, services, "https://site.example/")).text.endswith("through")
        with pytest.raises(ToolError, match="certificate"):
            await fetch(tool, services, "https://other.example/")
    assert proxy.asked == ["CONNECT site.example:443 HTTP/1.1", "CONNECT other.example:443 HTTP/1.1"]


@pytest.mark.parametrize("host", ["10.0.0.1", "localhost", "intranet", "[::1]", "169.254.169.254", "inside.example"])
async def test_known_private_address_never_reaches_the_proxy(here: Site, services: ToolServices, host: str) -> None:
    here.names["inside.example"] = ("192.168.0.1",)
    async with proxy_to(here) as proxy:
        with pytest.raises(ToolError, match="only public addresses"):
            await fetch(here.tool(http_proxy=proxy.url, all_proxy=proxy.url), services, f"http://{host}/")
    assert proxy.asked == []


async def test_redirects_through_a_proxy_are_looked_at_too(here: Site, services: ToolServices) -> None:
    here.pages["/"] = moved("http://10.0.0.1/")
    async with proxy_to(here) as proxy:
        with pytest.raises(ToolError, match="only public addresses"):
            await fetch(here.tool(http_proxy=proxy.url), replace(services, may_fetch=lambda url: True), "http://unknown.example/")
    assert len(proxy.asked) == 1


async def test_missing_proxy_is_a_sentence(here: Site, services: ToolServices) -> None:
    with pytest.raises(ToolError, match=r"through the proxy 127\.0\.0\.1:9"):
        await fetch(here.tool(http_proxy="http://127.0.0.1:9"), services, "http://unknown.example/")
    with pytest.raises(ToolError, match="not the address of a proxy"):
        await fetch(here.tool(http_proxy="nonsense://x"), services, "http://unknown.example/")
    with pytest.raises(ToolError, match=r"through the proxy 127\.0\.0\.1:9"):
        await fetch(here.tool(all_proxy="socks5://127.0.0.1:9"), services, "http://unknown.example/")


# What was checked is what is reached


async def test_same_fetch_without_check_reaches_private_addresses(here: Site, services: ToolServices) -> None:
    """The harm that is prevented, with the wall taken down."""
    here.pages["/"] = answer("<p>the secrets of this network</p>")

    async def look_up(name: str, port: int) -> tuple[str, ...]:
        return ("127.0.0.1",)

    url = here.url(host="innocent.example")
    assert "secrets" in (await fetch(Fetch(Hosts(look_up, lambda address: True), {}), services, url)).text
    with pytest.raises(ToolError, match="only public addresses"):
        await fetch(Fetch(Hosts(look_up), {}), services, url)
    assert len(here.heads) == 1


async def test_connection_goes_to_a_checked_address_only(
    here: Site, services: ToolServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever connects may look names up once more; it is given none."""
    here.pages["/"] = answer("<p>x</p>")
    connected: list[str] = []
    loop = asyncio.get_running_loop()
    connect = loop.create_connection

    async def watched(factory: object, host: str | None = None, *args: object, **options: object) -> object:
        connected.append(str(host))
        return await connect(factory, host, *args, **options)  # type: ignore[arg-type,call-overload]  # passed on as it came

    monkeypatch.setattr(loop, "create_connection", watched)
    await fetch(here.tool(), services, here.url())
    assert connected == ["127.0.0.1"]
