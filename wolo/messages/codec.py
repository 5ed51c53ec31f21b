"""The stable, versioned JSON form of messages, and of the values that hold them."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import msgspec

from wolo.messages.message import Message
from wolo.messages.unicode import whole_throughout

T = TypeVar("T")

VERSION = 1
"""Raised, together with a migration of the store, when the meaning of a field changes. A new optional field does not raise
it: an older wolo ignores what it does not know."""


class Codec(Generic[T]):
    """Between values of one type and JSON bytes. What was encoded decodes to an equal value."""

    def __init__(self, kind: Any) -> None:
        """`kind` is the type T, or a union of tagged structs."""
        # What metadata holds is up to hooks and extensions; a value that JSON does not know is kept as its text.
        self._encoder = msgspec.json.Encoder(enc_hook=str)
        self._decoder: msgspec.json.Decoder[T] = msgspec.json.Decoder(kind)

    def encode(self, value: T) -> bytes:
        try:
            return self._encoder.encode(value)
        except UnicodeEncodeError:
            # Half a surrogate pair has no UTF-8: models and file names produce it. Better one mark than no entry.
            return self._encoder.encode(whole_throughout(msgspec.to_builtins(value, enc_hook=str)))

    def decode(self, data: bytes) -> T:
        """Raises msgspec.MsgspecError, RecursionError or UnicodeDecodeError for what is not such a value."""
        return self._decoder.decode(data)


MESSAGES: Codec[Message] = Codec(Message)
