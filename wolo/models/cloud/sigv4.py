"""Signs requests to AWS: Signature Version 4 (docs.aws.amazon.com, "Create a signed AWS API request")."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final
from urllib.parse import parse_qsl, quote, urlsplit

from wolo.models.address import DEFAULT_PORTS
from wolo.models.cloud.credentials import Credentials
from wolo.models.http.transport import HttpCall

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
