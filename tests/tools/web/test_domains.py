"""Entries of sandbox.allowed_domains: what cannot match anything is an error."""

from __future__ import annotations

import pytest

from wolo.errors import ConfigError
from wolo.tools.web.address import Domains


@pytest.mark.parametrize(
    ("entry", "host", "port"),
    [
        ("Packages.Example.com.", "packages.example.com", 443),
        ("bücher.example", "xn--bcher-kva.example", 80),
        ("*.example.org", "a.b.example.org", 443),
        ("a.example:8443", "a.example", 8443),
        ("[0:0::1]:8080", "::1", 8080),
        ("10.0.0.7", "10.0.0.7", 443),
        ("*", "anything.example", 22),
    ],
)
def test_entry_matches_its_hosts(entry: str, host: str, port: int) -> None:
    domains = Domains([entry])
    assert domains.decide(host, port) == "allow"
    assert domains.decide(host, port + 1 if entry != "*" else port) in ("ask", "allow")
    assert Domains([entry], [entry]).decide(host, port) == "deny"


def test_name_is_denied_at_all_ports() -> None:
    domains = Domains(["a.example", "b.example"], ["b.example"])
    assert [domains.decide("a.example", port) for port in (80, 443, 22)] == ["allow", "allow", "ask"]
    assert [domains.decide("b.example", port) for port in (80, 443, 22)] == ["deny"] * 3


@pytest.mark.parametrize(
    "entry",
    [
        *("", "https://a.example", "a.example/x", "a b", "*a.example", "a.*.example", "a@b.example", "010.0.0.1", "1234", "::1"),
        *("a.example:0", "a.example:99999", "*.10.0.0.1", "a..b", "a.example:", "[::1%eth0]", "10.0.0.0/8", "."),
    ],
)
def test_unusable_entry_is_one_sentence(entry: str) -> None:
    with pytest.raises(ConfigError, match=r"sandbox\.allowed_domains") as raised:
        Domains([entry])
    assert "packages.example.com" in (raised.value.hint or "")
