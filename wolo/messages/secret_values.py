"""Redact secret values: names that mark them, encodings they appear in, and their removal."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any, Final
from urllib.parse import quote, quote_plus, unquote, unquote_plus

from msgspec import Struct

SECRET_WORDS: Final = ("KEY", "TOKEN", "SECRET", "PASS", "CRED", "AUTH", "PRIVATE")
"""Words in names that mark their values as secret."""
MIN_CHARS: Final = 8
"""Shorter values would match ordinary text."""
PLACEHOLDER: Final = r"SECRET_[A-Z0-9_]{1,40}?_[0-9a-f]{12}"
"""Placeholder for a value: a plain word in JSON, shells, Markdown and programming languages."""
_WRAPPED = r"\n(?:(?<=[A-Za-z0-9+/_-]{16}\n)|(?<=[A-Za-z0-9+/_-]{16}\r\n))[A-Za-z0-9+/_-]"
"""Base64 broken into lines. The line break comes first because it is fast to search for."""
_QUOTED = "%[0-9A-Fa-f]{2}"
_PIECE = 4_096
"""Characters decoded at a time."""
_BLOCK = 256 * 1024
"""Bytes searched at a time."""
_MASK = b"*"
_PLAIN, _LISTS = (int, float, type(None)), (list, tuple)


class Secret(Struct, frozen=True):
    name: str
    """Origin: a variable or a key in a file."""
    value: str


@lru_cache(4096)
def is_secret_name(name: str) -> bool:
    return any(word in name.upper() for word in SECRET_WORDS)


def encoded_forms(value: str) -> Iterator[str]:
    """The value as it appears in JSON, Python, shells, HTML, URLs, base64 and hex, also escaped twice."""
    data = value.encode("utf-8", "replace")
    yield value
    if not re.fullmatch(r"[\w@%+=:,./-]*", value, re.ASCII):  # otherwise each of them is the value itself
        for escaped in (json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1], repr(value)[1:-1]):
            yield escaped
            yield escaped.replace("\\", "\\\\")
            yield json.dumps(escaped)[1:-1]
            yield json.dumps(escaped, ensure_ascii=False)[1:-1]
        yield re.sub(r"""(["'\\])""", r"\\\1", value)
        yield re.sub(r'(["$`\\])', r"\\\1", value)
        yield value.replace("'", "'\\''")
        yield value.replace("'", "'\"'\"'")
        yield re.sub(r"([^\w@%+=:,./-])", r"\\\1", value, flags=re.ASCII)
        yield re.sub(r"(?=[\x00-\x7f])([^\w@%+=:,./-])", r"\\\1", value, flags=re.ASCII)
        html = value.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        yield html
        for single in ("&#x27;", "&#39;", "&apos;", "'"):
            yield html.replace('"', "&quot;").replace("'", single)
        yield html.replace('"', "&#34;").replace("'", "&#39;")
        yield repr(data)[2:-1]
        for quote_mark in ("'", '"'):  # octal escapes of non-ASCII bytes, as in the C locale and git paths
            escaped_bytes = value.replace("\\", "\\\\").replace(quote_mark, f"\\{quote_mark}").encode("utf-8", "replace")
            yield "".join(chr(byte) if byte < 128 else f"\\{byte:03o}" for byte in escaped_bytes)
    for quoted in (quote(value, safe="", errors="replace"), quote(value, errors="replace"), quote_plus(value, errors="replace")):
        yield quoted
        yield re.sub("%..", lambda found: found[0].lower(), quoted)
    for core in base64_cores(data):
        yield core
        yield core.replace("+", "-").replace("/", "_")
    yield data.hex()
    yield data.hex().upper()


def base64_cores(data: bytes) -> Iterator[str]:
    """Base64 characters that depend on `data` alone, for each alignment."""
    for before in range(3):
        encoded = base64.b64encode(bytes(before) + data).decode()
        yield encoded[(before * 8 + 5) // 6 : (before + len(data)) * 8 // 6]


def _maybe_quoted(letter: str) -> str:
    """Matches the letter as it is and percent-encoded."""
    quoted = "".join(f"%{byte:02x}" for byte in letter.encode("utf-8", "surrogatepass"))
    return f"(?:{re.escape(letter)}|(?i:{quoted}){'|[+]' if letter == ' ' else ''})"


class ValueRedactor:
    """Replaces exact texts in any value. `stand_in` maps each to a stable placeholder."""

    def __init__(self, texts: Iterable[str] = (), stand_in: Callable[[str], str] = lambda found: "[redacted]") -> None:
        self.texts = tuple(sorted({text for text in texts if len(text) >= MIN_CHARS}, key=lambda text: (-len(text), text)))
        self._encoded = tuple(text.encode("utf-8", "replace") for text in self.texts)
        self._reach = 3 * max((len(text.encode("utf-8", "surrogatepass")) for text in self.texts), default=0)
        """Bytes of the longest value with a line break behind each character, or percent-encoded."""
        self._beginnings: dict[str, list[str]] = {}
        for text in self.texts:
            self._beginnings.setdefault(text[0], []).append(text)
        self._placeholder = stand_in

    def text(self, text: str) -> str:
        """Returns the same object when nothing was found."""
        if len(text) < MIN_CHARS:
            return text
        found = [each for each in self.texts if each in text]
        if found:
            text = re.sub("|".join(map(re.escape, found)), lambda match: self._placeholder(match[0]), text)
        text = self._redact_quoted(text) if "%" in text and re.search(_QUOTED, text) else text
        return self._redact_wrapped(text) if "\n" in text else text

    def data(self, data: bytes) -> bytes:
        """UTF-8 text is redacted; in binary data values are masked in place."""
        if self._is_clean(data):
            return data
        try:
            text = data.decode()
        except UnicodeDecodeError:
            return self.mask(data)
        clean = self.text(text)
        return data if clean is text else clean.encode()

    def _is_clean(self, data: bytes) -> bool:
        """True if no value can be in it, so that large data need not be decoded."""
        if any(each in data for each in self._encoded) or re.search(_QUOTED.encode(), data):
            return False
        if re.search(_WRAPPED.encode(), data) is None:
            return True
        for start in range(0, len(data), _BLOCK):  # in pieces that overlap, to bound memory
            piece = data[max(0, start - self._reach) : start + _BLOCK]
            joined = piece.replace(b"\r\n", b"").replace(b"\n", b"")
            if any(each in joined for each in self._encoded):
                return False
        return True

    def mask(self, data: bytes) -> bytes:
        for each in self._encoded:
            if each in data:
                data = data.replace(each, _MASK * len(each))
        return data

    def value(self, value: Any) -> Any:
        """Redact a JSON value; returns the same object when nothing was found."""
        if isinstance(value, str):
            return value if len(value) < MIN_CHARS else self.text(value)
        if isinstance(value, _PLAIN):
            return value
        if isinstance(value, bytes):
            return self.data(value)
        if isinstance(value, dict):
            changed = {self.value(name): self.value(each) for name, each in value.items()}
            same = all(name in value and value[name] is each for name, each in changed.items())
            return value if same else changed
        if isinstance(value, _LISTS):
            each = [self.value(item) for item in value]
            return value if all(a is b for a, b in zip(each, value, strict=True)) else each
        return value

    def stream(self) -> StreamRedactor:
        return StreamRedactor(self)

    def num_held(self, text: str) -> int:
        """Number of trailing characters that may start a secret."""
        longest = len(self.texts[0]) - 1 if self.texts else 0
        tail = text[-longest:] if longest else ""
        for at, first in enumerate(tail):
            if first in self._beginnings and any(each.startswith(tail[at:]) for each in self._beginnings[first]):
                return len(tail) - at
        return 0

    def _redact_quoted(self, text: str) -> str:
        """Redact percent-encoded values, since any character may be encoded."""
        encoded: set[str] = set()
        end = 0
        for mark in re.finditer(_QUOTED, text):
            if end and mark.end() <= end - self._reach:
                continue
            # The text near percent-encoded bytes, in overlapping pieces to bound memory.
            start, end = max(0, mark.start() - self._reach), mark.end() + self._reach + _PIECE
            decoded = (unquote(text[start:end]), unquote_plus(text[start:end]))
            encoded.update(each for each in self.texts if any(each in way for way in decoded))
        for each in self.texts:
            if each in encoded:
                quoted = "".join(map(_maybe_quoted, each))
                text = re.sub(quoted, self._placeholder(each).replace("\\", r"\\"), text)
        return text

    def _redact_wrapped(self, text: str) -> str:
        """Redact base64 broken into lines, where a value may span a break."""
        if re.search(_WRAPPED, text) is None:
            return text
        joined = text.replace("\r\n", "").replace("\n", "")
        for each in self.texts:
            if each in joined and each.isascii() and not each.isspace():
                broken = "\r?\n?".join(map(re.escape, each))
                text = re.sub(broken, lambda match: self._placeholder(re.sub("\r?\n", "", match[0])), text)
        return text


class StreamRedactor:
    """Redacts a streamed text, however it is chunked."""

    def __init__(self, values: ValueRedactor) -> None:
        self._values = values
        self._held = ""

    def feed(self, piece: str) -> str:
        text = self._values.text(self._held + piece)
        held = self._values.num_held(text)
        self._held = text[len(text) - held :]
        return text[: len(text) - held]

    def close(self) -> str:
        held, self._held = self._held, ""
        return held
