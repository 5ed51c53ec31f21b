"""The stable, versioned JSON form of a message."""

from __future__ import annotations

import msgspec

from wolo.messages.message import Message

VERSION = 1
"""Raised when the meaning of a stored field changes; new optional fields do not raise it."""

_encoder = msgspec.json.Encoder(decimal_format="number")
_decoder = msgspec.json.Decoder(Message)


def encode(message: Message) -> bytes:
    return _encoder.encode(message)


def decode(data: bytes) -> Message:
    """Unknown fields of a later wolo are ignored. Raises msgspec.ValidationError or msgspec.DecodeError."""
    return _decoder.decode(data)
