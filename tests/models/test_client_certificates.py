"""Servers that require a certificate of their clients (mTLS)."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from tests.fakes.command import run_wolo
from tests.models.test_http_tls import certificates, openssl, server_context, serving
from wolo.errors import ConfigError, ProviderError
from wolo.models.catalog import Catalog
from wolo.models.http.http_transport import HttpTransport
from wolo.models.http.tls import certificates_of
from wolo.models.http.transport import HttpCall
from wolo.models.provider import ModelChoice, ProviderSettings

__all__ = ["certificates"]


def strict(folder: Path) -> ssl.SSLContext:
    context = server_context(folder)
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(folder / "ca.pem")
    return context


def choose(url: str, **settings: str) -> ModelChoice:
    catalog = Catalog({}, {"corp": ProviderSettings(base_url=url, **settings)})  # type: ignore[arg-type]  # two of its fields
    return catalog.find("corp/m")


async def ask(choice: ModelChoice) -> list[bytes]:
    transport = HttpTransport(certificates=certificates_of(choice))
    try:
        return [payload async for batch in transport.send(HttpCall(choice.base_url, b"{}")) for payload in batch.payloads]
    finally:
        await transport.close()


async def test_server_that_requires_a_certificate_gets_it(certificates: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates / "ca.pem"))
    monkeypatch.setenv("HOME", str(certificates))
    both = certificates / "both.pem"
    both.write_text((certificates / "cert.pem").read_text() + (certificates / "key.pem").read_text())
    async with serving(strict(certificates)) as port:
        url = f"https://localhost:{port}/v1"
        assert await ask(choose(url, client_cert="~/cert.pem", client_key=str(certificates / "key.pem"))) == [b"one"]
        assert await ask(choose(url, client_cert=str(both))) == [b"one"]
        with pytest.raises(ProviderError, match=f"localhost:{port}"):
            await ask(choose(url))


async def test_unusable_file_is_one_sentence(certificates: Path, tmp_path: Path) -> None:
    cert, key = str(certificates / "cert.pem"), str(certificates / "key.pem")
    locked, text = tmp_path / "locked.pem", tmp_path / "text.pem"
    openssl("rsa", "-in", key, "-aes128", "-passout", "pass:sesame", "-out", str(locked), cwd=tmp_path)
    text.write_text("no certificate")
    for bad_cert, bad_key, why in (
        (str(tmp_path / "none.pem"), key, "none.pem is not a file"),
        (cert, str(tmp_path / "none.key"), "none.key is not a file"),
        (cert, str(locked), "needs a passphrase"),
        (cert, str(certificates / "ca.key"), "does not fit"),
        (cert, "", "does not fit"),
        (str(text), key, "cannot be used"),
    ):
        with pytest.raises(ConfigError, match=why):
            await ask(choose("https://localhost:1/v1", client_cert=bad_cert, client_key=bad_key))


def test_certificate_is_for_https_and_its_own_address(certificates: Path) -> None:
    cert = str(certificates / "cert.pem")
    with pytest.raises(ConfigError, match="only shown to an https address"):
        certificates_of(choose("http://localhost:1/v1", client_cert=cert))
    with pytest.raises(ConfigError, match="client_key is set without a certificate"):
        certificates_of(choose("https://localhost:1/v1", client_key=cert))
    catalog = Catalog({}, {"corp": ProviderSettings(base_url="https://a.example/v1", client_cert=cert)})
    elsewhere = catalog.find("corp/m", base_url="https://b.example/v1")
    assert (elsewhere.base_url, elsewhere.provider.client_cert) == ("https://b.example/v1", "")


def test_missing_certificate_ends_the_run_with_two(tmp_path: Path) -> None:
    settings = ("providers.corp.base_url=https://localhost:1/v1", "providers.corp.client_cert=/no/such.pem")
    done = run_wolo("-p", *(word for each in settings for word in ("--set", each)), "-m", "corp/m", "go")
    assert done.exit_code == 2
    assert "The client certificate /no/such.pem is not a file." in done.stderr
    assert "Traceback" not in done.stderr
