"""TLS: certificates that are trusted, and sentences for those that are not."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.components import require
from wolo.errors import ConfigError, ProviderError, Unavailable
from wolo.models.http.http_transport import HttpTransport, ssl_context
from wolo.models.http.transport import Call

ANSWER = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\ndata: one\n\n"


def openssl(*words: str, cwd: Path) -> None:
    subprocess.run([require("openssl"), *words], cwd=cwd, check=True, capture_output=True)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A private authority `ca.pem`, and a server that it vouches for."""
    here = tmp_path_factory.mktemp("certificates")
    new = ("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2")
    usage = ("-addext", "keyUsage=critical,keyCertSign,cRLSign")
    openssl(*new, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=Private CA", *usage, cwd=here)
    openssl(
        "req", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out", "server.csr", "-subj", "/CN=localhost", cwd=here
    )
    (here / "names").write_text("subjectAltName=DNS:localhost\n")
    signed = ("x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2")
    openssl(*signed, "-extfile", "names", "-out", "cert.pem", cwd=here)
    return here


@pytest.fixture
async def port(certificates: Path) -> AsyncIterator[int]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates / "cert.pem", certificates / "key.pem")

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(ANSWER)
            await writer.drain()
        writer.close()

    listener = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    yield listener.sockets[0].getsockname()[1]
    listener.close()


async def ask(url: str, environ: dict[str, str]) -> list[bytes]:
    transport = HttpTransport(environ)
    try:
        return [payload async for batch in transport.send(Call(url, b"{}")) for payload in batch.payloads]
    finally:
        await transport.close()


async def test_a_private_authority_is_trusted_when_it_is_named(port: int, certificates: Path) -> None:
    assert await ask(f"https://localhost:{port}/v1", {"SSL_CERT_FILE": str(certificates / "ca.pem")}) == [b"one"]


def test_a_named_authority_is_added_to_the_systems_own(certificates: Path) -> None:
    context = ssl_context({"SSL_CERT_FILE": str(certificates / "ca.pem")})
    names = [dict(field[0] for field in each["subject"]).get("commonName") for each in context.get_ca_certs()]  # type: ignore[misc]  # tuples of tuples
    assert "Private CA" in names
    assert len(names) > 1 or not ssl.create_default_context().get_ca_certs()


async def test_an_unknown_authority_is_a_sentence_with_the_way_out(port: int) -> None:
    with pytest.raises(ProviderError, match=f"certificate of localhost:{port}") as failed:
        await ask(f"https://localhost:{port}/v1", {})
    assert "SSL_CERT_FILE" in failed.value.hint
    assert not failed.value.retryable
    assert failed.value.exit_code == 1


async def test_a_certificate_for_another_name_is_named(port: int, certificates: Path) -> None:
    with pytest.raises(ProviderError, match="certificate") as failed:
        await ask(f"https://127.0.0.1:{port}/v1", {"SSL_CERT_FILE": str(certificates / "ca.pem")})
    assert "127.0.0.1" in failed.value.message


async def test_a_server_without_tls_is_told_apart() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as listener:
        with pytest.raises(Unavailable, match="does not speak TLS") as failed:
            await ask(f"https://127.0.0.1:{listener.sockets[0].getsockname()[1]}/v1", {})
    assert "http://" in failed.value.hint
    assert not failed.value.retryable


@pytest.mark.parametrize("content", [None, "no certificate"])
async def test_certificates_that_cannot_be_read_are_named(port: int, content: str | None, tmp_path: Path) -> None:
    file = tmp_path / "broken.pem"
    if content is not None:
        file.write_text(content)
    with pytest.raises(ConfigError, match=r"broken\.pem cannot be read"):
        await ask(f"https://localhost:{port}/v1", {"SSL_CERT_FILE": str(file)})
