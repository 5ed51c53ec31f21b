"""TLS contexts that trust the system's certificates and those in SSL_CERT_FILE or SSL_CERT_DIR."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from wolo.errors import ConfigError
from wolo.models.address import display_url

if TYPE_CHECKING:
    import ssl

    from wolo.models.provider import ModelChoice

BUNDLES = (
    "/etc/ssl/cert.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/pki/tls/cert.pem",
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/ssl/ca-bundle.pem",
)
"""Bundles of Linux systems, for a Python whose OpenSSL was built for other paths."""
CERTIFICATE = b"-----BEGIN CERTIFICATE-----"


def certificates_of(choice: ModelChoice) -> Future[ssl.SSLContext] | None:
    """Like `load_certificates`, with the client certificate of the provider. Raises ConfigError if it cannot be shown."""
    provider = choice.provider
    if not (provider.client_cert or provider.client_key):
        return load_certificates(choice.base_url)
    setting = f"providers.{provider.name}.client_cert"
    if not provider.client_cert:
        raise ConfigError(f"providers.{provider.name}.client_key is set without a certificate.", hint=f"Set {setting}.")
    if not choice.base_url.startswith("https:"):
        raise ConfigError(f"{setting} is only shown to an https address, not to {display_url(choice.base_url)}.")
    return load_certificates(choice.base_url, client=(provider.client_cert, provider.client_key))


def load_certificates(
    url: str, environ: Mapping[str, str] = os.environ, client: tuple[str, str] = ("", "")
) -> Future[ssl.SSLContext] | None:
    """Start to build the context for a URL in a thread; None: it needs none. `client`: see `ssl_context`."""
    if not url.startswith("https:"):
        return None
    thread = ThreadPoolExecutor(1, thread_name_prefix="wolo-tls")
    context = thread.submit(ssl_context, environ, client)
    thread.shutdown(wait=False)
    return context


def ssl_context(environ: Mapping[str, str], client: tuple[str, str] = ("", "")) -> ssl.SSLContext:
    """Verifying context. Takes up to 20 ms, mostly without the interpreter's lock. Raises ConfigError.

    `client`: files of a certificate to show and of its key; empty: none, and in the same file.
    """
    import ssl  # noqa: PLC0415  # only connections with TLS load it

    context = _system_context()
    file, directory = environ.get("SSL_CERT_FILE") or None, environ.get("SSL_CERT_DIR") or None
    try:
        if file or directory:
            context.load_verify_locations(file, directory)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(
            f"The certificates in {file or directory} cannot be read: {error.strerror or error}.",
            hint="SSL_CERT_FILE names a file in PEM format, SSL_CERT_DIR a directory of such files.",
        ) from error
    certificate, key = (str(Path(name).expanduser()) if name else "" for name in client)
    if certificate:
        try:
            context.load_cert_chain(certificate, key or None, password=lambda: b"")  # without it OpenSSL asks on the terminal
        except (OSError, ssl.SSLError) as error:
            missing = next((name for name in (certificate, key) if name and not Path(name).is_file()), "")
            why = "is not a file" if missing else "cannot be used, or its key does not fit or needs a passphrase"
            raise ConfigError(
                f"The client certificate {missing or certificate} {why}.",
                hint="client_cert and client_key of the provider name files in PEM format.",
            ) from error
    return context


def _system_context() -> ssl.SSLContext:
    import ssl  # noqa: PLC0415  # as above

    if sys.platform in ("darwin", "win32"):
        import truststore  # noqa: PLC0415  # asks the platform to verify

        return truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    paths = ssl.get_default_verify_paths()  # `set_default_verify_paths` would read SSL_CERT_FILE itself
    file, directory = system_store(Path(paths.openssl_cafile), Path(paths.openssl_capath))
    if file or directory:
        context.load_verify_locations(file, directory)
    return context


def system_store(bundle: Path, directory: Path) -> tuple[Path | None, Path | None]:
    """The bundle and the directory to load; None: not needed.

    OpenSSL reads single files of a directory of hashed names during a handshake, but parses a whole bundle at once. A
    directory that holds as many certificates as the bundle replaces it.
    """
    # Number of names such as `5ad8a5d6.0`.
    try:
        names = (path.name.partition(".") for path in directory.iterdir())
        hashed = sum(len(name) == 8 and number.isdigit() for name, _, number in names)
    except OSError:
        hashed = 0
    file = bundle if bundle.is_file() else None
    if not file and not hashed:
        file = next(filter(Path.is_file, map(Path, BUNDLES)), None)
    if file and hashed and file.resolve().parent == directory.resolve():  # both come from the same tool of the distribution
        file = None if hashed >= file.read_bytes().count(CERTIFICATE) else file
    return file, directory if hashed else None
