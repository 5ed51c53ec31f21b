"""Answers of Bedrock: frames of Amazon's event stream around the events of the Messages API, and a check of signatures."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
import zlib
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from tests.fakes.provider_server import Asked
from tests.fakes.replies import Reply, error

ACCESS_KEY = "AKIDEXAMPLE000000001"
SECRET_KEY = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
REGION = "us-east-1"
KIND = {"content-type": "application/vnd.amazon.eventstream"}


def frame(headers: Mapping[str, str], payload: bytes) -> bytes:
    block = b"".join(
        bytes((len(name),)) + name.encode() + b"\x07" + len(value).to_bytes(2) + value.encode() for name, value in headers.items()
    )
    prelude = (len(block) + len(payload) + 16).to_bytes(4) + len(block).to_bytes(4)
    prelude += zlib.crc32(prelude).to_bytes(4)
    whole = prelude + block + payload
    return whole + zlib.crc32(whole).to_bytes(4)


def chunk(event: Mapping[str, Any] | bytes) -> bytes:
    data = event if isinstance(event, bytes) else json.dumps(event).encode()
    headers = {":event-type": "chunk", ":content-type": "application/json", ":message-type": "event"}
    return frame(headers, json.dumps({"bytes": base64.b64encode(data).decode(), "p": "abcdef"}).encode())


def exception(kind: str, message: str) -> bytes:
    headers = {":exception-type": kind, ":content-type": "application/json", ":message-type": "exception"}
    return frame(headers, json.dumps({"message": message}).encode())


def framed(reply: Reply, *last: bytes) -> Reply:
    """A reply of the Messages API as Bedrock sends it."""
    events = [line.removeprefix(b"data: ") for line in reply.body.split(b"\n") if line.startswith(b"data: ")]
    return Reply(headers=KIND, pieces=(*map(chunk, events), *last), ending=reply.ending)


def refusal(status: int, kind: str, message: str, headers: Mapping[str, str] | None = None) -> Reply:
    return error(status, {"__type": kind, "message": message}, headers)


def signed(reply: Reply, *, token: str = "", region: str = REGION, secret_key: str = SECRET_KEY) -> Callable[[Asked], Reply]:
    """The reply to a request with a valid signature of the last five minutes; others are refused as AWS does."""

    def answer(asked: Asked) -> Reply:
        pattern = (
            r"AWS4-HMAC-SHA256 Credential=(\S+?)/(\d{8})/(\S+?)/bedrock/aws4_request, SignedHeaders=(\S+), Signature=(\w{64})"
        )
        found = re.fullmatch(pattern, asked.headers.get("authorization", ""))
        if not found:
            return refusal(403, "MissingAuthenticationTokenException", "Missing Authentication Token")
        _, day, given_region, names, signature = found.groups()
        if asked.headers.get("x-amz-security-token", "") != token:
            return refusal(403, "ExpiredTokenException", "The security token included in the request is expired")
        stamp = asked.headers["x-amz-date"]
        age_s = (datetime.now(UTC) - datetime.strptime(stamp, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)).total_seconds()
        if abs(age_s) > 300:
            return refusal(403, "InvalidSignatureException", f"Signature expired: {stamp} is now earlier than the limit")
        lines = [f"{name}:{asked.headers[name]}" for name in names.split(";")]
        path = quote(asked.path.partition("?")[0], safe="/-_.~")
        digest = hashlib.sha256(asked.body).hexdigest()
        canonical = "\n".join([asked.method, path, "", *lines, "", names, digest])
        scope = f"{day}/{region}/bedrock/aws4_request"
        key = b"AWS4" + secret_key.encode()
        for part in scope.split("/"):
            key = hmac.new(key, part.encode(), hashlib.sha256).digest()
        text = "\n".join(["AWS4-HMAC-SHA256", stamp, scope, hashlib.sha256(canonical.encode()).hexdigest()])
        expected = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
        if given_region != region or not hmac.compare_digest(signature, expected) or "host" not in names.split(";"):
            return refusal(403, "InvalidSignatureException", "The request signature we calculated does not match the signature")
        return reply

    return answer
