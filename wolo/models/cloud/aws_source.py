"""Finds credentials of AWS: botocore's chain where it is installed, else variables, profiles, SSO and metadata."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import importlib
import importlib.util
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import parse_qsl, quote, urlsplit

from msgspec.structs import replace

from wolo.errors import ConfigError, Unavailable
from wolo.models.address import DEFAULT_PORTS, is_loopback
from wolo.models.cloud import token_requests
from wolo.models.cloud.aws_files import files_of, parse_time, profile_name, read_profile, read_sso_login
from wolo.models.cloud.credentials import Credentials, version_of
from wolo.models.cloud.token_requests import TokenRequest, fetch_document, fetch_text, no_credentials, parse_document, text_of
from wolo.models.http.transport import HttpCall

HINT: Final = "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or run `aws sso login`."
BOTOCORE: Final = "pip install botocore, next to wolo; it knows all kinds of profiles."
CONTAINER_HOST: Final = "http://169.254.170.2"
CONTAINER_HOSTS: Final = ("169.254.170.2", "169.254.170.23", "fd00:ec2::23")
"""Addresses of ECS and EKS, which need no encryption."""
METADATA_HOST: Final = "http://169.254.169.254"
ROLES: Final = "/latest/meta-data/iam/security-credentials/"
METADATA: Final = "AWS's metadata server"


class AwsSource:
    """Credentials as AWS's own tools find them."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._session: Any = None
        self.shared_name = ""
        if not importlib.util.find_spec("botocore") and not environ.get("AWS_ACCESS_KEY_ID"):
            names = ("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI")
            servers = [environ.get(name, "-") for name in (*names, "AWS_EC2_METADATA_SERVICE_ENDPOINT", "AWS_ENDPOINT_URL_SSO")]
            self.shared_name = " ".join(("aws", profile_name(environ), *map(version_of, files_of(environ)), *servers))

    async def fetch(self) -> Credentials:
        if importlib.util.find_spec("botocore"):
            return await asyncio.to_thread(self._ask_botocore)
        environ = self._environ
        if access_key := environ.get("AWS_ACCESS_KEY_ID", "").strip():
            if not (secret_key := environ.get("AWS_SECRET_ACCESS_KEY", "").strip()):
                raise ConfigError("AWS_ACCESS_KEY_ID is set, and AWS_SECRET_ACCESS_KEY is not.")
            return Credentials(environ.get("AWS_SESSION_TOKEN", "").strip(), access_key, secret_key)
        profile = await asyncio.to_thread(read_profile, environ)
        if profile.get("aws_access_key_id") and profile.get("aws_secret_access_key") and "role_arn" not in profile:
            token = profile.get("aws_session_token", "")
            return Credentials(token, profile["aws_access_key_id"], profile["aws_secret_access_key"])
        if "sso_session" in profile or "sso_start_url" in profile:
            return await self._ask_sso(profile)
        unsupported = next((name for name in ("role_arn", "credential_process", "login_session") if name in profile), "")
        if environ.get("AWS_WEB_IDENTITY_TOKEN_FILE"):
            unsupported = "AWS_WEB_IDENTITY_TOKEN_FILE"
        if unsupported:
            raise ConfigError(f"Credentials by {unsupported} need botocore, which is not installed.", hint=BOTOCORE)
        if credentials := await self._ask_container():
            return credentials
        if credentials := await self._ask_instance():
            return credentials
        raise ConfigError("No credentials of AWS were found.", hint=HINT)

    def _ask_botocore(self) -> Credentials:
        loader = importlib.import_module("botocore.session")  # the user installed it; it is no dependency
        try:
            if self._session is None:
                self._session = loader.Session()
            found = self._session.get_credentials()
            frozen = found and found.get_frozen_credentials()
        except Exception as error:  # of any kind: it runs programs, and reads what they print
            message = " ".join(str(error).split()).rstrip(".")
            raise ConfigError(f"AWS credentials cannot be loaded: {message or type(error).__name__}.", hint=HINT) from error
        if not frozen:
            raise ConfigError("No credentials of AWS were found.", hint=HINT)
        # It refreshes by itself when it is asked, and is asked for each request.
        return Credentials(frozen.token or "", frozen.access_key, frozen.secret_key, expires_at=0.0)

    async def _ask_sso(self, profile: Mapping[str, str]) -> Credentials:
        name = profile_name(self._environ)
        account, role = profile.get("sso_account_id", ""), profile.get("sso_role_name", "")
        if not account or not role:
            raise ConfigError(f"The AWS profile `{name}` names no sso_account_id or no sso_role_name.")
        token, region = await asyncio.to_thread(read_sso_login, profile, name)
        host = (self._environ.get("AWS_ENDPOINT_URL_SSO") or f"https://portal.sso.{region}.amazonaws.com").rstrip("/")
        request = TokenRequest(
            what="The SSO portal of AWS",
            url=f"{host}/federation/credentials?role_name={quote(role)}&account_id={quote(account)}",
            headers={"x-amz-sso_bearer_token": token},
            hint=f"aws sso login --profile {name}",
        )
        found = (await fetch_document(request, self._environ)).get("roleCredentials")
        if not isinstance(found, dict):
            raise no_credentials(request)
        keys = _keys_of(request, found, ("accessKeyId", "secretAccessKey", "sessionToken"))
        ends_ms = found.get("expiration")
        return keys if not isinstance(ends_ms, int) else replace(keys, expires_at=ends_ms / 1000)

    async def _ask_container(self) -> Credentials | None:
        environ = self._environ
        if relative := environ.get("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"):
            url = CONTAINER_HOST + relative
        elif not (url := environ.get("AWS_CONTAINER_CREDENTIALS_FULL_URI", "")):
            return None
        parts = urlsplit(url)
        host = parts.hostname or ""
        if parts.scheme != "https" and not (is_loopback(host) or host in CONTAINER_HOSTS):
            raise ConfigError(
                f"AWS_CONTAINER_CREDENTIALS_FULL_URI names {host or 'no host'}, which is not asked without encryption."
            )
        token = environ.get("AWS_CONTAINER_AUTHORIZATION_TOKEN", "")
        if path := environ.get("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"):
            token = await token_requests.read_token("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", path)
        headers = {"authorization": token} if token else {}
        request = TokenRequest(what="The credentials server of the container", url=url, headers=headers, is_metadata=True)
        return _with_expiration(request, await fetch_document(request, environ))

    async def _ask_instance(self) -> Credentials | None:
        """From the metadata server of an EC2 instance (IMDSv2); None where there is none."""
        environ = self._environ
        if environ.get("AWS_EC2_METADATA_DISABLED", "").lower() == "true":
            return None
        named = environ.get("AWS_EC2_METADATA_SERVICE_ENDPOINT", "").rstrip("/")
        host = named or METADATA_HOST
        ttl = {"x-aws-ec2-metadata-token-ttl-seconds": "21600"}
        first = TokenRequest(what=METADATA, url=f"{host}/latest/api/token", method="PUT", headers=ttl, is_metadata=True)
        try:
            token = (await fetch_text(first, environ))[0].strip()
        except (Unavailable, ConfigError):
            if named:
                raise
            return None  # not on an instance: other machines have nothing at this address, or something else
        headers = {"x-aws-ec2-metadata-token": text_of(first, {"token": token}, "token")}
        roles = TokenRequest(what=METADATA, url=host + ROLES, headers=headers, is_metadata=True)
        role = (await fetch_text(roles, environ))[0].strip().partition("\n")[0]
        request = TokenRequest(what=METADATA, url=host + ROLES + quote(role, safe=""), headers=headers, is_metadata=True)
        text, _ = await fetch_text(request, environ)
        return _with_expiration(request, parse_document(request, text))


def _with_expiration(request: TokenRequest, document: Mapping[str, Any]) -> Credentials:
    """As metadata servers write them."""
    keys = _keys_of(request, document, ("AccessKeyId", "SecretAccessKey", "Token"))
    try:
        return replace(keys, expires_at=parse_time(str(document["Expiration"])))
    except (KeyError, ValueError):
        raise no_credentials(request) from None


def _keys_of(request: TokenRequest, document: Mapping[str, Any], names: tuple[str, str, str]) -> Credentials:
    access_key, secret_key, token = (text_of(request, document, name) for name in names)
    return Credentials(token, access_key, secret_key)


ALGORITHM: Final = "AWS4-HMAC-SHA256"


def sign(call: HttpCall, credentials: Credentials, region: str, service: str, now: datetime | None = None) -> dict[str, str]:
    """Headers to add to the request. `now`: UTC; None: the clock."""
    stamp = (now or datetime.now(UTC)).strftime("%Y%m%dT%H%M%SZ")
    target = urlsplit(call.url)
    port = "" if target.port in (None, DEFAULT_PORTS.get(target.scheme)) else f":{target.port}"
    host = f"[{target.hostname}]" if ":" in (target.hostname or "") else target.hostname or ""
    headers: dict[str, str] = {"host": host + port, "x-amz-date": stamp}
    if credentials.token:
        headers["x-amz-security-token"] = credentials.token
    names = ";".join(headers)  # in alphabetical order
    pairs = sorted((quote(name, safe="-_.~"), quote(value, safe="-_.~")) for name, value in parse_qsl(target.query, True))
    canonical = "\n".join(
        (
            call.method,
            quote(target.path or "/", safe="/~"),  # encoded once more than on the wire, as all services but S3 want it
            "&".join(f"{name}={value}" for name, value in pairs),
            *(f"{name}:{value}" for name, value in headers.items()),
            "",
            names,
            hashlib.sha256(call.body).hexdigest(),
        )
    )
    scope = f"{stamp[:8]}/{region}/{service}/aws4_request"
    to_sign = "\n".join((ALGORITHM, stamp, scope, hashlib.sha256(canonical.encode()).hexdigest()))
    key = f"AWS4{credentials.secret_key}".encode()
    for part in (stamp[:8], region, service, "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.digest(key, to_sign.encode(), "sha256").hex()
    added: Mapping[str, str] = {name: value for name, value in headers.items() if name != "host"}
    credential = f"{credentials.access_key}/{scope}"
    return {**added, "authorization": f"{ALGORITHM} Credential={credential}, SignedHeaders={names}, Signature={signature}"}
