"""TLS: certificates that are trusted, and sentences for those that are not."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import socket
import ssl
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.components import require
from tests.fakes.command import run_wolo
from tests.models.test_http_proxy import Proxy, running
from wolo.errors import ConfigError, ProviderError, Unavailable
from wolo.models.http.http_transport import HttpTransport
from wolo.models.http.tls import ssl_context, system_store
from wolo.models.http.transport import HttpCall

ANSWER = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\ndata: one\n\n"


def openssl(*words: str, cwd: Path) -> None:
    subprocess.run([require("openssl"), *words], cwd=cwd, check=True, capture_output=True)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A private authority `ca.pem`, and certificates signed by it: `cert.pem`, `expired.pem`, all with `key.pem`."""
    here = tmp_path_factory.mktemp("certificates")
    new = ("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2")
    usage = ("-addext", "keyUsage=critical,keyCertSign,cRLSign")
    openssl(*new, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=Private CA", *usage, cwd=here)
    openssl(
        "req", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out", "server.csr", "-subj", "/CN=localhost", cwd=here
    )
    (here / "names").write_text("subjectAltName=DNS:localhost,DNS:xn--gste-loa.localhost,DNS:model.example.com\n")
    signed = ("x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-extfile", "names")
    openssl(*signed, "-days", "2", "-out", "cert.pem", cwd=here)
    openssl(*signed, "-days", "-1", "-out", "expired.pem", cwd=here)
    return here


def server_context(certificates: Path, name: str = "cert.pem") -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates / name, certificates / "key.pem")
    return context


@asynccontextmanager
async def serving(context: ssl.SSLContext, answer: bytes = ANSWER) -> AsyncIterator[int]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while True:
                await reader.readuntil(b"\r\n\r\n")
                writer.write(answer)
                await writer.drain()
                if b"connection: close" in answer:
                    break
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context) as listener:
        yield listener.sockets[0].getsockname()[1]


@pytest.fixture
async def port(certificates: Path) -> AsyncIterator[int]:
    async with serving(server_context(certificates)) as port:
        yield port


async def ask(url: str, environ: dict[str, str]) -> list[bytes]:
    transport = HttpTransport(environ)
    try:
        return [payload async for batch in transport.send(HttpCall(url, b"{}")) for payload in batch.payloads]
    finally:
        await transport.close()


async def test_named_private_authority_is_trusted(port: int, certificates: Path) -> None:
    assert await ask(f"https://localhost:{port}/v1", {"SSL_CERT_FILE": str(certificates / "ca.pem")}) == [b"one"]


async def test_turn_of_a_new_process_speaks_tls(certificates: Path) -> None:
    """A process of its own loads `ssl` only when it connects."""
    chunk = b'{"choices": [{"index": 0, "delta": {"content": "Hello."}, "finish_reason": "stop"}]}'
    async with serving(server_context(certificates), ANSWER.replace(b"one", chunk)) as port:
        words = ("-p", "--base-url", f"https://localhost:{port}/v1", "--api-key", "k", "-m", "test-model", "hi")
        env = {"SSL_CERT_FILE": str(certificates / "ca.pem")}
        done = await asyncio.to_thread(run_wolo, *words, env=env, forked=False)
        assert (done.stdout, done.exit_code) == ("Hello.\n", 0), done.stderr
        done = await asyncio.to_thread(run_wolo, *words, "--set", "retry.tries=1", forked=False)
        assert "is not trusted" in done.stderr, done.stderr


async def test_named_authority_joins_the_system_ones(certificates: Path, tmp_path: Path) -> None:
    """Both a directory of hashed names and a named file are trusted."""
    bundle, directory = hashed_store(certificates, tmp_path)
    assert system_store(bundle, directory) == (None, directory)
    context = ssl_context({"SSL_CERT_DIR": str(directory)})
    count = len(context.get_ca_certs())
    context.load_verify_locations(certificates / "other.pem")
    assert len(context.get_ca_certs()) == count + 1
    async with serving(server_context(certificates)) as port:
        assert await ask(f"https://localhost:{port}/v1", {"SSL_CERT_DIR": str(directory)}) == [b"one"]


def hashed_store(certificates: Path, tmp_path: Path) -> tuple[Path, Path]:
    """As distributions lay it out: a bundle in a directory that has each certificate under the hash of its subject."""
    new = ("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout", "other.key", "-out", "other.pem")
    openssl(*new, "-subj", "/CN=Other CA", cwd=certificates)
    shutil.copy(certificates / "ca.pem", tmp_path / "ca.pem")
    openssl("rehash", str(tmp_path), cwd=certificates)
    shutil.copy(certificates / "ca.pem", tmp_path / "bundle.crt")
    return tmp_path / "bundle.crt", tmp_path


def test_bundle_loads_unless_directory_holds_all(certificates: Path, tmp_path: Path) -> None:
    bundle, directory = hashed_store(certificates, tmp_path)
    elsewhere = certificates / "ca.pem"
    assert system_store(elsewhere, directory) == (elsewhere, directory)
    with bundle.open("ab") as file:
        file.write((certificates / "other.pem").read_bytes())
    assert system_store(bundle, directory) == (bundle, directory)
    assert system_store(bundle, tmp_path / "none") == (bundle, None)


def test_the_systems_own_store_is_found() -> None:
    paths = ssl.get_default_verify_paths()
    if not ssl.create_default_context().get_ca_certs():
        pytest.skip("this machine has no certificates")
    assert any(system_store(Path(paths.openssl_cafile), Path(paths.openssl_capath)))


async def test_unknown_authority_is_a_sentence_with_remedy(port: int) -> None:
    with pytest.raises(ProviderError, match=f"certificate of localhost:{port}") as failed:
        await ask(f"https://localhost:{port}/v1", {})
    assert "SSL_CERT_FILE" in failed.value.hint
    assert not failed.value.retryable
    assert failed.value.exit_code == 1


async def test_a_certificate_for_another_name_is_named(port: int, certificates: Path) -> None:
    with pytest.raises(ProviderError, match="certificate") as failed:
        await ask(f"https://127.0.0.1:{port}/v1", {"SSL_CERT_FILE": str(certificates / "ca.pem")})
    assert "127.0.0.1" in failed.value.message


async def test_an_expired_certificate_is_named(certificates: Path) -> None:
    async with serving(server_context(certificates, "expired.pem")) as port:
        with pytest.raises(ProviderError, match=r"not trusted: certificate has expired") as failed:
            await ask(f"https://localhost:{port}/v1", {"SSL_CERT_FILE": str(certificates / "ca.pem")})
    assert "clock" in failed.value.hint
    assert not failed.value.retryable


async def test_the_server_is_told_which_host_is_meant(certificates: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    look_up = socket.getaddrinfo
    monkeypatch.setattr(socket, "getaddrinfo", lambda _host, *rest, **more: look_up("127.0.0.1", *rest, **more))
    asked: list[str | None] = []
    context = server_context(certificates)
    context.sni_callback = lambda _connection, name, _context: asked.append(name)
    async with serving(context) as port:
        environ = {"SSL_CERT_FILE": str(certificates / "ca.pem")}
        assert await ask(f"https://localhost:{port}/v1", environ) == [b"one"]
        assert await ask(f"https://gäste.localhost:{port}/v1", environ) == [b"one"]
    assert asked == ["localhost", "xn--gste-loa.localhost"]


async def test_server_wanting_client_certificate_is_distinguished(certificates: Path) -> None:
    context = server_context(certificates)
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(certificates / "ca.pem")

    def refuse(listener: socket.socket) -> None:
        connection = context.wrap_socket(listener.accept()[0], server_side=True, do_handshake_on_connect=False)
        with pytest.raises(ssl.SSLError):
            connection.do_handshake()
        with socket.socket(fileno=connection.detach()) as plain:
            while plain.recv(65_536):  # closing with unread bytes would reset the connection
                pass

    with socket.create_server(("127.0.0.1", 0)) as listener:
        serving = asyncio.create_task(asyncio.to_thread(refuse, listener))
        with pytest.raises(Unavailable, match="CERTIFICATE_REQUIRED"):
            await ask(f"https://localhost:{listener.getsockname()[1]}/v1", {"SSL_CERT_FILE": str(certificates / "ca.pem")})
        await serving


async def test_a_secure_connection_serves_many_requests(certificates: Path) -> None:
    sessions: set[object] = set()
    context = server_context(certificates)
    context.sni_callback = lambda connection, _name, _context: sessions.add(connection)
    body = b"data: one\n\n"
    answer = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)
    async with serving(context, answer) as port:
        transport = HttpTransport({"SSL_CERT_FILE": str(certificates / "ca.pem")})
        call = HttpCall(f"https://localhost:{port}/v1", b"{}", {"x": "y" * 20_000})
        for _ in range(3):
            assert [payload async for batch in transport.send(call) for payload in batch.payloads] == [b"one"]
        await transport.close()
    assert len(sessions) == 1


async def test_proxy_tunnel_with_password_carries_tls(certificates: Path) -> None:
    environ = {"SSL_CERT_FILE": str(certificates / "ca.pem")}
    async with serving(server_context(certificates)) as port, running(Proxy(port, "me:s3cret")) as proxy:
        environ["https_proxy"] = f"http://me:s3cret@127.0.0.1:{proxy.port}"
        assert await ask("https://model.example.com/v1", environ) == [b"one"]
    assert proxy.asked == ["CONNECT model.example.com:443 HTTP/1.1"]


async def test_cut_secure_body_is_no_end(certificates: Path) -> None:
    answer = ANSWER.replace(b"connection: close", b"connection: close\r\ncontent-length: 99")
    async with serving(server_context(certificates), answer) as port:
        with pytest.raises(Unavailable, match="lost in the middle"):
            await ask(f"https://localhost:{port}/v1", {"SSL_CERT_FILE": str(certificates / "ca.pem")})


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


@pytest.mark.parametrize("through_proxy", [False, True])
async def test_a_handshake_without_end_is_named(through_proxy: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wolo.models.http.http_transport.HANDSHAKE_S", 0.3)
    monkeypatch.setattr("wolo.models.http.proxied_connection.CONNECT_S", 0.3)

    async def stay_silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    silent = await asyncio.start_server(stay_silent, "127.0.0.1", 0)
    port = silent.sockets[0].getsockname()[1]
    host = "model.example.com" if through_proxy else "localhost"
    async with silent, running(Proxy(port)) as proxy:
        transport = HttpTransport({"https_proxy": f"http://127.0.0.1:{proxy.port}"} if through_proxy else {})
        with pytest.raises(ProviderError, match="did not finish the TLS handshake in time"):
            await anext(transport.send(HttpCall(f"https://{host}:{port}/v1", b"{}", {})))
        await transport.close()
