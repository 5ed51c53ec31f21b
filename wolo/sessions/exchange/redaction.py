"""Removes secrets from exports: known values, and whatever looks like a key.

Known values are also found in JSON strings, URLs and attachments. Keys are recognised by the prefixes of vendors, or by the name
they are assigned to.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable
from functools import partial
from typing import Any, NamedTuple

import msgspec

from wolo.messages.message import MESSAGES, Message
from wolo.messages.secret_values import MIN_CHARS, PLACEHOLDER, ValueRedactor, encoded_forms

REDACTED = "[redacted]"
MEDIA = ("image", "audio", "file")
"""Types of parts with base64 in `data`."""

BEFORE_CHARACTERS = 80
"""Length of text searched for the name that a value is assigned to."""

_PREFIXED = (
    r"sk-(?=[A-Za-z0-9_-]*\d)[A-Za-z0-9_-]{20,}",
    r"csk-[A-Za-z0-9]{30,}",
    r"(?:AKIA|ASIA)[0-9A-Z]{16}",
    r"gh[pousr]_[A-Za-z0-9]{30,}",
    r"github_pat_[A-Za-z0-9_]{22,}",
    r"glpat-[A-Za-z0-9_-]{20,}",
    r"xox[abeoprs]-[A-Za-z0-9-]{10,}",
    r"xapp-[A-Za-z0-9-]{10,}",
    r"AIza[0-9A-Za-z_-]{35}",
    r"ya29\.[0-9A-Za-z_-]{20,}",
    r"hf_[A-Za-z0-9]{30,}",
    r"(?:gsk|xai|pplx|fw|r8|npm|tgp_v1|dop_v1|nvapi|lsv2_(?:pt|sk))[_-](?=[\w-]*\d)[A-Za-z0-9_-]{20,}",
    r"pypi-[A-Za-z0-9_-]{50,}",
    r"[rsp]k_(?:live|test)_[A-Za-z0-9]{16,}",
    r"whsec_[A-Za-z0-9]{16,}",
    r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}",
    r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*",
)
"""Key prefixes of known vendors."""
_BEGINNINGS = (
    *("sk-", "akia", "asia", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "xox", "xapp-", "aiza", "ya29."),
    *("hf_", "gsk", "xai", "pplx", "fw_", "fw-", "r8_", "npm_", "tgp_v1", "dop_v1", "nvapi", "lsv2_", "pypi-", "k_live_"),
    *("k_test_", "whsec_", "sg.", "eyj"),
)
_NAMES = r"(?:api[_-]?key|apikey|secret|token|passwo?r?d|passphrase|private[_-]?key|access[_-]?key|auth|credentials?)"
_VALUE = r"(?=[^\s\"']{0,200}\d)(?=[^\s\"']{0,200}[A-Za-z])[A-Za-z0-9_~+/=.-]{12,}"


class _Pattern(NamedTuple):
    hints: tuple[str, ...]
    """Lower-case words; a text without any of them is not searched."""
    found: re.Pattern[str]
    """The text before the group `secret` is kept."""
    after: re.Pattern[str] | None = None
    """Must match right before."""


_PATTERNS = (
    _Pattern((), re.compile(r"(?<![A-Za-z0-9])(?P<secret>[0-9a-f]{32}\.[A-Za-z0-9]{16})(?![A-Za-z0-9])")),  # Zhipu's
    _Pattern(_BEGINNINGS, re.compile(rf"(?<![A-Za-z0-9])(?P<secret>{'|'.join(_PREFIXED)})")),
    _Pattern(
        ("private key",),
        re.compile(
            r"(?P<secret>-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY-----|\Z))", re.DOTALL
        ),
    ),
    _Pattern(("://",), re.compile(r"://[^\s/:@\"']{0,100}:(?P<secret>[^\s/@\"'\[]{1,200})(?=@)")),
    _Pattern(
        ("bearer ", "basic ", "token "), re.compile(rf"\b(?:bearer|basic|token) {{1,4}}(?P<secret>{_VALUE})", re.IGNORECASE)
    ),
    _Pattern(
        ("key", "secret", "token", "pass", "auth", "credential"),
        re.compile(rf"[:=]\s{{0,4}}\\?[\"']?(?P<secret>{_VALUE})"),
        after=re.compile(rf"{_NAMES}[\w.-]{{0,40}}\\?[\"']?\s{{0,4}}\Z", re.IGNORECASE),
    ),
)
_TELLING = re.compile(rf"(?:.*[_-])?{_NAMES}", re.IGNORECASE)
_PLAIN_VALUE = re.compile(r"(?=.*\d)\S{8,}", re.DOTALL)


class Redactor:
    """Without values it recognises keys by their form only."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._known = ValueRedactor(form for value in values if value for form in encoded_forms(value))

    def text(self, text: str) -> str:
        text = self._known.text(text)
        if len(text) < MIN_CHARS:
            return text
        small = text.lower()
        for pattern in _PATTERNS:
            if not pattern.hints or any(hint in small for hint in pattern.hints):
                text = pattern.found.sub(partial(_without_secret, after=pattern.after), text)
        return text

    def data(self, data: bytes) -> bytes:
        """Searches binary data for known values only."""
        try:
            text = data.decode()
        except UnicodeDecodeError:
            return self._known.mask(data)
        return self.text(text).encode()

    def value(self, value: Any) -> Any:
        """Redacts a JSON value; returns the same object when it has no secrets."""
        if isinstance(value, str):
            clean = self.text(value)
            return value if clean == value else clean
        if isinstance(value, dict):
            return self._fields(value)
        if isinstance(value, list | tuple):
            each = [self.value(item) for item in value]
            return value if all(a is b for a, b in zip(each, value, strict=True)) else each
        return value

    def body(self, body: bytes) -> bytes:
        """Redacts JSON text; returns the same bytes when it has no secrets."""
        try:
            value = msgspec.json.decode(body)
            clean = self.value(value)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return self.data(body)
        return body if clean is value else msgspec.json.encode(clean)

    def message(self, message: Message) -> Message:
        body = MESSAGES.encode(message)
        clean = self.body(body)
        return message if clean is body else MESSAGES.decode(clean)

    def _fields(self, fields: dict[str, Any]) -> dict[str, Any]:
        changed = {}
        same = True
        for name, value in fields.items():
            if name == "data" and fields.get("type") in MEDIA:
                clean = self._attachment(value)
            elif isinstance(value, str) and _TELLING.fullmatch(name) and _PLAIN_VALUE.fullmatch(value):
                clean = REDACTED
            else:
                clean = self.value(value)
            clean_name = self.value(name)
            same = same and clean is value and clean_name is name
            changed[clean_name] = clean
        return fields if same else changed

    def _attachment(self, value: Any) -> Any:
        try:
            data = base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError, TypeError):
            return self.value(value)
        clean = self.data(data)
        return value if clean == data else base64.b64encode(clean).decode()


def _without_secret(match: re.Match[str], after: re.Pattern[str] | None) -> str:
    begin = match.start()
    if after is not None and not after.search(match.string[max(begin - BEFORE_CHARACTERS, 0) : begin]):
        return match[0]
    if re.fullmatch(PLACEHOLDER, match["secret"]):
        return match[0]  # a placeholder is no secret
    return match[0][: match.start("secret") - begin] + REDACTED
