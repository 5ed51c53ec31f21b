"""Finds tokens of Google Cloud: application default credentials, then the metadata server."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from wolo.errors import ConfigError, Unavailable
from wolo.models.address import is_loopback
from wolo.models.cloud.credentials import Credentials, version_of
from wolo.models.cloud.token_requests import TokenRequest, fetch_document, fetch_text, no_credentials, parse_document, text_of
from wolo.places import find_home

SCOPE: Final = "https://www.googleapis.com/auth/cloud-platform"
TOKEN_URI: Final = "https://oauth2.googleapis.com/token"  # an address
METADATA_HOST: Final = "169.254.169.254"
LOGIN: Final = "gcloud auth application-default login"
VARIABLE: Final = "GOOGLE_APPLICATION_CREDENTIALS"
JWT_S: Final = 3600


class GoogleSource:
    """Tokens as Google's own libraries find them."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self.shared_name = f"google {version_of(credentials_file(environ))} {environ.get('GCE_METADATA_HOST', '')}"

    async def fetch(self) -> Credentials:
        if (document := await asyncio.to_thread(read_credentials_file, self._environ)) is None:
            named = self._environ.get("GCE_METADATA_HOST", "")
            request = TokenRequest(
                what="Google's metadata server",
                url=f"http://{named or METADATA_HOST}/computeMetadata/v1/instance/service-accounts/default/token",
                headers={"metadata-flavor": "Google"},
                is_metadata=True,
            )
            try:
                text, headers = await fetch_text(request, self._environ)
                if headers.get("metadata-flavor") != "Google":
                    raise no_credentials(request)
            except (Unavailable, ConfigError):
                if named:
                    raise
                raise ConfigError("No credentials of Google Cloud were found.", hint=f"{LOGIN}, or set {VARIABLE}.") from None
            return token_in(request, parse_document(request, text))
        match document.get("type"):
            case "service_account":
                form = {"grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer", "assertion": _assertion(document)}
            case "authorized_user":
                names = ("client_id", "client_secret", "refresh_token")
                form = {"grant_type": "refresh_token", **{name: str(document.get(name, "")) for name in names}}
            case kind:
                raise ConfigError(
                    f"{credentials_file(self._environ)} holds credentials of the type `{kind}`, which wolo cannot use.",
                    hint=f'Use a service account or `{LOGIN}`, or set api_key = "!gcloud auth print-access-token".',
                )
        request = TokenRequest(
            what="Google's token endpoint", url=_token_uri(document), method="POST", form=form, hint=f"Log in again: {LOGIN}"
        )
        return token_in(request, await fetch_document(request, self._environ))


def token_in(request: TokenRequest, document: Mapping[str, Any]) -> Credentials:
    """`access_token` with its lifetime, as token endpoints write it. Raises ConfigError."""
    token = text_of(request, document, "access_token")
    try:
        if "expires_on" in document:  # Unix time, of Azure's managed identities
            return Credentials(token, expires_at=float(document["expires_on"]))
        return Credentials(token, expires_at=time.time() + float(document["expires_in"]))
    except (KeyError, ValueError, TypeError):
        raise no_credentials(request) from None


def credentials_file(environ: Mapping[str, str]) -> Path:
    """Named by the variable, or the one that `gcloud auth application-default login` writes."""
    if named := environ.get(VARIABLE, "").strip():
        return Path(named)
    folder = environ.get("CLOUDSDK_CONFIG", "").strip()
    return (Path(folder) if folder else find_home() / ".config" / "gcloud") / "application_default_credentials.json"


def read_credentials_file(environ: Mapping[str, str]) -> Mapping[str, Any] | None:
    """None if there is none. Raises ConfigError for a named file that is missing, and for a damaged one."""
    path = credentials_file(environ)
    try:
        document = json.loads(path.read_bytes())
    except FileNotFoundError:
        if environ.get(VARIABLE, "").strip():
            raise ConfigError(f"{VARIABLE}: {path} does not exist.") from None
        return None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}.") from None
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise ConfigError(f"{path} is not a file of Google credentials.", hint=LOGIN)
    return document


def _token_uri(document: Mapping[str, Any]) -> str:
    """Credentials only go over TLS, or to this machine."""
    uri = str(document.get("token_uri") or TOKEN_URI)
    try:
        parts = urlsplit(uri)
        is_safe = bool(parts.hostname) and (
            parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname or ""))
        )
    except ValueError:
        is_safe = False
    if not is_safe:
        raise ConfigError("The token_uri in Google's credentials file is no https address.")
    return uri


def _assertion(document: Mapping[str, Any]) -> str:
    """Signed statement of a service account (RFC 7523)."""
    import jwt  # noqa: PLC0415  # for service accounts only

    now = int(time.time())
    email = str(document.get("client_email", ""))
    claims = {"iss": email, "scope": SCOPE, "aud": _token_uri(document), "iat": now, "exp": now + JWT_S}
    try:
        return jwt.encode(claims, str(document["private_key"]), "RS256", {"kid": str(document.get("private_key_id", ""))})
    except (KeyError, ValueError, TypeError, jwt.PyJWTError):
        raise ConfigError(
            "The private_key in Google's credentials file cannot be used.", hint="Download the key again."
        ) from None
