"""Reads Amazon's event stream, `application/vnd.amazon.eventstream`: binary frames with checksums."""

from __future__ import annotations

import binascii
import json
import zlib
from typing import Final

from wolo.errors import Unavailable
from wolo.models.http.transport import HttpStatusError

PRELUDE_BYTES: Final = 12
"""Length of the frame, length of its headers, and the checksum of both, with four bytes each."""
CHECKSUM_BYTES: Final = 4
LARGEST_FRAME_BYTES: Final = 24 * 1024 * 1024
SIZES: Final = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
"""Bytes of header values by type; types 6 and 7 begin with a length of two bytes."""
STATUSES: Final = {
    "internalServerException": 500,
    "modelStreamErrorException": 500,
    "modelTimeoutException": 500,
    "serviceUnavailableException": 503,
    "throttlingException": 429,
    "validationException": 400,
}
"""HTTP statuses of the exceptions that Bedrock sends within a stream; both of a model may be asked again."""


class FrameSplitter:
    """Returns the JSON document in each `chunk` of a Bedrock stream, in order.

    Raises Unavailable for damaged frames, HttpStatusError for an exception within the stream.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._held = bytearray()

    def feed(self, received: bytes) -> list[bytes]:
        self._held += received
        payloads: list[bytes] = []
        while len(self._held) >= PRELUDE_BYTES:
            size_bytes = int.from_bytes(self._held[:4])
            _check(self._held, 8)
            if not PRELUDE_BYTES + CHECKSUM_BYTES <= size_bytes <= LARGEST_FRAME_BYTES:
                raise _damage(f"a frame of {size_bytes:,} bytes")
            if len(self._held) < size_bytes:
                break
            frame = bytes(self._held[:size_bytes])
            del self._held[:size_bytes]
            _check(frame, size_bytes - CHECKSUM_BYTES)
            if (payload := self._read(frame)) is not None:
                payloads.append(payload)
        return payloads

    def end(self) -> list[bytes]:
        if self._held:
            raise _damage("the stream ends within a frame")
        return []

    def _read(self, frame: bytes) -> bytes | None:
        headers_end = PRELUDE_BYTES + int.from_bytes(frame[4:8])
        if headers_end > len(frame) - CHECKSUM_BYTES:
            raise _damage("headers longer than their frame")
        headers, body = _read_headers(frame[PRELUDE_BYTES:headers_end]), frame[headers_end:-CHECKSUM_BYTES]
        if headers.get(":message-type") != "event":
            kind = headers.get(":exception-type") or headers.get(":error-code") or "internalServerException"
            message = headers.get(":error-message") or _message_of(body) or kind
            error = {"__type": kind[:1].upper() + kind[1:], "message": message}
            raise HttpStatusError(STATUSES.get(kind, 500), {}, json.dumps(error).encode(), self._url)
        if headers.get(":event-type") != "chunk":
            return None
        try:
            return binascii.a2b_base64(json.loads(body)["bytes"])
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise _damage("a chunk without bytes") from error


def _check(frame: bytes | bytearray, at: int) -> None:
    """The checksum covers everything before it."""
    if zlib.crc32(frame[:at]) != int.from_bytes(frame[at : at + CHECKSUM_BYTES]):
        raise _damage("a wrong checksum")


def _read_headers(block: bytes) -> dict[str, str]:
    """Texts only; values of other types are skipped."""
    headers: dict[str, str] = {}
    try:
        at = 0
        while at < len(block):
            name_end = at + 1 + block[at]
            name, kind = block[at + 1 : name_end].decode(), block[name_end]
            at = name_end + 1
            if kind in (6, 7):
                size_bytes, at = int.from_bytes(block[at : at + 2]), at + 2
            else:
                size_bytes = SIZES[kind]
            if at + size_bytes > len(block):
                raise IndexError
            if kind == 7:
                headers[name] = block[at : at + size_bytes].decode()
            at += size_bytes
    except (IndexError, KeyError, UnicodeDecodeError) as error:
        raise _damage("unreadable headers") from error
    return headers


def _message_of(body: bytes) -> str:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    return str(document.get("message") or document.get("Message") or "") if isinstance(document, dict) else ""


def _damage(what: str) -> Unavailable:
    return Unavailable(
        f"The event stream of Bedrock is damaged: {what}.", hint="Something between here and AWS may change answers."
    )
