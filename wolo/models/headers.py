"""Headers of requests: those that identify wolo to providers, the key, and those of a format or a provider."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from functools import cache
from typing import Literal
from urllib.parse import quote

from msgspec import Struct, field

import wolo
from wolo.models.address import basic_auth
from wolo.models.provider import Auth, ModelChoice

Profile = Literal["opencode", "session", "none", "custom"]

OPENCODE_TOKEN = "opencode/1.0.0"
CLIENT = "cli"
PRINTABLE = "".join(map(chr, range(0x20, 0x7F)))
"""Characters allowed in header values; others are percent-encoded."""
FRAMING = frozenset({"content-length", "transfer-encoding", "host", "connection"})
"""Headers that only the transport may set."""

AUTH: Mapping[str, Auth] = {"anthropic": "x-api-key", "gemini": "x-goog-api-key"}
"""Key headers by format; default: `bearer`."""

HEADERS: Mapping[str, Mapping[str, str]] = {"anthropic": {"anthropic-version": "2023-06-01"}}
"""Default headers by format; the provider's own headers override them."""

_NAME = r"[A-Za-z0-9!#$%&'*+.^_`|~-]+"


class HeaderSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """`headers.*` of the settings."""

    profile: Profile = "opencode"
    """`session` sends wolo's name and the session id; `none` and `custom` only the name."""
    extra: Mapping[str, str] = field(default_factory=dict)
    """Added to every model request; overrides headers of the profile."""


def introduce(settings: HeaderSettings, *, project: str, session_id: str, prompt_id: str) -> dict[str, str]:
    """Headers of one request: lower-case names, printable ASCII values."""
    own = f"wolo/{wolo.__version__}"
    headers = {"user-agent": own}
    match settings.profile:
        case "opencode":
            headers = {
                "user-agent": f"{OPENCODE_TOKEN} ({machine()}) {own}",
                "x-opencode-project": project,
                "x-opencode-session": session_id,
                "x-opencode-request": prompt_id,
                "x-opencode-client": CLIENT,
            }
        case "session":
            headers |= {"x-session-id": session_id, "x-session-affinity": session_id}
        case "none" | "custom":
            pass
    headers |= {name.lower(): value for name, value in settings.extra.items()}
    return {name: encode_value(value) for name, value in headers.items() if value}


def request_headers(choice: ModelChoice) -> dict[str, str]:
    """Headers of the format, the key and the provider, in lower case. The provider's override the others."""
    own = {name.lower(): encode_value(str(value)) for name, value in choice.provider.headers.items()}
    format = choice.format
    return {**HEADERS.get(format, {}), **key_headers(choice, format), **own}


def key_headers(choice: ModelChoice, format: str) -> dict[str, str]:
    """Authentication headers of a format, with lower-case names. Without a key, credentials of the URL are used."""
    if not choice.api_key:
        basic = basic_auth(choice.base_url)
        return {"authorization": basic} if basic else {}
    match choice.provider.auth or AUTH.get(format, "bearer"):
        case "bearer" | "aws" | "google" | "entra":
            return {"authorization": f"Bearer {choice.api_key}"}
        case "none":
            return {}
        case header:
            return {header: choice.api_key}


def encode_value(value: str) -> str:
    return value.strip() if value.isascii() and value.isprintable() else quote(value.strip(), safe=PRINTABLE, errors="replace")


@cache
def machine() -> str:
    """System and machine, such as `Linux x86_64`."""
    if sys.platform == "win32":
        return f"Windows {os.environ.get('PROCESSOR_ARCHITECTURE', 'AMD64')}"
    names = os.uname()
    return f"{names.sysname} {names.machine}"


def may_be_set(name: str) -> bool:
    """Check that a user may set this header."""
    return re.fullmatch(_NAME, name) is not None and name.lower() not in FRAMING
