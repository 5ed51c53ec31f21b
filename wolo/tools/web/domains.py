"""The hosts that sandboxed commands may connect to: names, wildcards and addresses; a deny wins."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from wolo.errors import ConfigError, ToolError
from wolo.guard.rule_patterns import HostAddress, HostPattern
from wolo.tools.web.address import read_address

Decision = Literal["allow", "ask", "deny"]
_HINT = 'Write a host without a scheme or path: "packages.example.com", "*.example.org", "10.0.0.7:8443" or "*".'
_SCHEMES = {80: "http", 443: "https"}


class Domains:
    """`sandbox.allowed_domains` and `sandbox.denied_domains`. A name without a port is allowed at ports 80 and 443, and denied
    at all."""

    def __init__(self, allowed: Sequence[str] = (), denied: Sequence[str] = (), *, source: str = "") -> None:
        """Raises ConfigError that names the setting and the entry."""
        allowed, denied = (
            [_normalize(text, f"{source}: sandbox.{key}" if source else f"sandbox.{key}") for text in texts]
            for key, texts in (("allowed_domains", allowed), ("denied_domains", denied))
        )
        self._allowed = [HostPattern(text, wide=False) for text in allowed]
        self._denied = [HostPattern(text, wide=True) for text in denied]
        self._addresses = {text if text.endswith("]") else re.sub(r":\d+$", "", text) for text in allowed}

    def decide(self, host: str, port: int) -> Decision:
        """`host` is normalized: lower case, without brackets. `ask`: neither list has it."""
        address = HostAddress(_SCHEMES.get(port, "https"), host, None if port in _SCHEMES else port, False, 0)
        if any(pattern.matches(address) for pattern in self._denied):
            return "deny"
        return "allow" if any(pattern.matches(address) for pattern in self._allowed) else "ask"

    def names(self, address: str) -> bool:
        """An IP address is allowed as such, whatever network it is in."""
        return (f"[{address}]" if ":" in address else address) in self._addresses


def _normalize(text: str, key: str) -> str:
    """Raises ConfigError."""
    wild, rest = ("*.", text[2:]) if text.startswith("*.") else ("", text)
    if text == "*":
        return text
    port = ""
    if match := re.fullmatch(r"(\[.*\]|[^:]*):(\d{1,5})", rest):
        rest, port = match[1], match[2]
    try:
        if not rest or re.search(r"[/?#@%*\\]", rest) or (":" in rest and not rest.startswith("[")):
            raise ToolError(f"`{rest[:200]}` is not a host name.")
        if port and not 0 < int(port) < 65_536:
            raise ToolError(f"There is no port {port}.")
        address = read_address(f"http://{rest}/")
    except ToolError as error:
        raise ConfigError(f'{key}: "{text}" cannot be used: {error.message}', hint=_HINT) from error
    if wild and address.is_literal:
        raise ConfigError(f'{key}: "{text}" cannot be used: an address has no names below it.', hint=_HINT)
    host = f"[{address.host}]" if ":" in address.host else address.host
    return f"{wild}{host}{f':{port}' if port else ''}"
