"""An address has one spelling, and what could be read in two ways is not read at all."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wolo.errors import ToolError
from wolo.guard.rule_patterns import read_host
from wolo.tools.web.address import read_address


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("https://example.org", "https://example.org/"),
        ("HTTPS://EXAMPLE.ORG:443/A?b=C#d", "https://example.org/A?b=C"),
        ("http://example.org.:80/", "http://example.org/"),
        ("http://example.org:443/", "http://example.org:443/"),
        ("https://a_b.example.org/x", "https://a_b.example.org/x"),
        ("https://example.org/ä?ö=ü", "https://example.org/%C3%A4?%C3%B6=%C3%BC"),
        ("https://example.org/%C3%A4", "https://example.org/%C3%A4"),
        ("https://straße.example/", "https://xn--strae-oqa.example/"),
        ("https://例え。テスト/", "https://xn--r8jz45g.xn--zckzah/"),
        ("http://93.184.216.34/", "http://93.184.216.34/"),
        ("http://[2606:4700:0000::1]:8080/", "http://[2606:4700::1]:8080/"),
    ],
)
def test_an_address_in_its_one_spelling(given: str, url: str) -> None:
    address = read_address(given)
    assert address.url == url
    assert read_address(url) == address
    assert read_host(url).name == address.host


@pytest.mark.parametrize(
    "given",
    [
        "",
        "example.org",
        "//example.org/",
        "ftp://example.org/",
        "file:///etc/passwd",
        "gopher://x.org/",
        "javascript:alert(1)",
        "data:text/html,x",
        "https://",
        "https:///x",
        "https://:80/",
        "https://user@example.org/",
        "https://user:password@example.org/",
        "https://@example.org/",
        "https://example.org@10.0.0.1/",
        "https://example.org\\@10.0.0.1/",
        "https://example.org\t/",
        "https://exa\nmple.org/",
        "https://exa mple.org/",
        "https://exam\u200bple.org/",
        "https://example.org:0/",
        "https://example.org:99999/",
        "https://example.org:x/",
        "https://-example.org/",
        "https://exa..mple.org/",
        "https://.example.org/",
        "https://example.org%2f.evil.org/",
        "https://%31%32%37.0.0.1/",
        "https://example.org,evil.org/",
        "https://[::1/",
        "https://[fe80::1%25eth0]/",
        "https://[fe80::1%eth0]/",
        "https://[v1.x]/",
        "https://[example.org]/",
        "https://" + "a" * 64 + ".org/",
        "https://" + "a." * 130 + "org/",
        "https://example.org/" + "x" * 9000,
        "https://exa\ud800mple.org/",
    ],
)
def test_malformed_address_is_refused_in_sentence(given: str) -> None:
    with pytest.raises(ToolError) as refused:
        read_address(given)
    assert refused.value.message.endswith((".", "https://."))
    assert len(refused.value.message) < 400


@pytest.mark.parametrize(
    "host",
    [
        *("127.1", "127.0.1", "2130706433", "0x7f000001", "0x7f.0.0.1", "0177.0.0.1", "127.0.0.01", "0", "00", "1.2.3.4.5", "0x"),
        *("017700000001", "127.0.0.0x1", "256.1.1.1", "127.0.0.1..", "①.0x7f", "0x7f.1", "1.1"),
    ],
)
def test_odd_spellings_of_addresses_are_refused(host: str) -> None:
    with pytest.raises(ToolError):
        read_address(f"http://{host}/")


@pytest.mark.parametrize("host", ["１２７.０.０.１", "127。0。0。1", "①②⑦.⓪.⓪.①", "127.0.0.1."])
def test_other_digit_characters_are_those_digits(host: str) -> None:
    assert read_address(f"http://{host}/").host == "127.0.0.1"


@given(st.text(max_size=60), st.sampled_from(["http://", "https://", "https://a.org/", "http://1.", ""]))
def test_every_text_is_one_address_or_sentence(text: str, start: str) -> None:
    try:
        address = read_address(start + text)
    except ToolError:
        return
    assert address.url.isascii()
    assert address.url.isprintable()
    assert read_address(address.url) == address
    host = read_host(address.url)
    assert (host.scheme, host.name, host.has_user) == (address.scheme, address.host, False)
    assert urlsplit(address.url).fragment == ""


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("https://a.org/x", "https://a.org/y?z", True),
        ("http://a.org/", "https://a.org/", True),
        ("https://a.org/", "http://a.org/", False),
        ("http://a.org:8080/", "https://a.org:8080/", False),
        ("https://a.org/", "https://a.org:8443/", False),
        ("https://a.org/", "https://www.a.org/", False),
        ("https://a.org/", "https://A.org./", True),
    ],
)
def test_server_equality_covers_name_port_and_encryption(first: str, second: str, same: bool) -> None:
    assert read_address(first).is_same_place(read_address(second)) is same
