"""Addresses and the proxies that lead to them."""

from __future__ import annotations

import pytest

from wolo.errors import ConfigError
from wolo.models.address import check_url, display_url, is_loopback, join_url, origin, proxy_for


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost:8080/v1",
        "ftp://example.com",
        "http://",
        "http://a b/v1",
        "https://host:port/v1",
        "http://[::1/v1",
        "http://host:0/v1",
        "v1",
    ],
)
def test_malformed_address_is_refused_with_an_example(url: str) -> None:
    with pytest.raises(ConfigError) as refused:
        check_url(url)
    assert "https://api.example.com/v1" in refused.value.hint


def test_a_trailing_slash_does_not_matter() -> None:
    assert check_url(" http://127.0.0.1:8080/v1/ ") == "http://127.0.0.1:8080/v1"


def test_query_stays_at_end_and_fragment_is_refused() -> None:
    assert join_url("http://127.0.0.1:8080/v1", "/chat/completions") == "http://127.0.0.1:8080/v1/chat/completions"
    assert join_url("https://host/openai/?api-version=2", "/models") == "https://host/openai/models?api-version=2"
    with pytest.raises(ConfigError):
        check_url("http://host/v1#top")


def test_version_in_the_address_is_not_repeated() -> None:
    for address in ("https://host", "https://host/v1", "https://host/v1/"):
        assert join_url(address, "/v1/messages") == "https://host/v1/messages"
    assert join_url("https://host/v1/api", "/v1/messages") == "https://host/v1/api/v1/messages"
    assert join_url("https://host/models", "/models") == "https://host/models/models", (
        "the last step of a path is what is asked for"
    )


def test_people_never_see_what_may_be_a_secret() -> None:
    assert display_url("https://me:secret@example.com/v1?key=secret#x") == "https://example.com/v1"
    with pytest.raises(ConfigError) as refused:
        check_url("ftp://me:secret@example.com/v1?key=secret")
    assert "secret" not in refused.value.message


def test_the_same_origin_has_many_spellings() -> None:
    assert origin("https://API.openai.com/v1") == origin("https://api.openai.com:443/other")
    assert origin("http://api.openai.com/v1") != origin("https://api.openai.com/v1")


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.9.9.9", "::1", "0.0.0.0", "box.localhost"])
def test_loopback_has_many_names(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["example.com", "127.example.com", "10.0.0.1", "localhost.example.com"])
def test_other_hosts_are_not_loopback(host: str) -> None:
    assert not is_loopback(host)


@pytest.mark.parametrize(
    ("environ", "proxy"),
    [
        ({}, ""),
        ({"HTTPS_PROXY": "http://p:1"}, "http://p:1"),
        ({"https_proxy": "http://p:1", "HTTPS_PROXY": "http://q:1"}, "http://p:1"),
        ({"HTTP_PROXY": "http://p:1"}, ""),
        ({"ALL_PROXY": "p:1"}, "http://p:1"),
        ({"HTTPS_PROXY": "http://p:1", "NO_PROXY": "*"}, ""),
        ({"HTTPS_PROXY": "http://p:1", "no_proxy": "example.com"}, ""),
        ({"HTTPS_PROXY": "http://p:1", "no_proxy": ".example.com"}, ""),
        ({"HTTPS_PROXY": "http://p:1", "no_proxy": "*.example.com"}, ""),
        ({"HTTPS_PROXY": "http://p:1", "no_proxy": "foo, API.example.com:443"}, ""),
        ({"HTTPS_PROXY": "http://p:1", "no_proxy": "api.example.com:8443"}, "http://p:1"),
        ({"HTTPS_PROXY": "http://p:1", "no_proxy": "ample.com,pi.example.com"}, "http://p:1"),
        ({"HTTPS_PROXY": " "}, ""),
    ],
)
def test_the_environment_names_the_proxy(environ: dict[str, str], proxy: str) -> None:
    assert proxy_for("https://api.example.com/v1", environ) == proxy


@pytest.mark.parametrize(
    ("exempt", "through"), [("10.0.0.0/8", False), ("192.168.0.0/16", True), ("10.1.2.3", False), ("not/a/net", True)]
)
def test_networks_may_be_exempt(exempt: str, through: bool) -> None:
    environ = {"HTTP_PROXY": "http://p:1", "NO_PROXY": exempt}
    assert bool(proxy_for("http://10.1.2.3:8000/v1", environ)) is through


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/v1", "http://localhost:1/v1", "http://[::1]:1/v1"])
def test_this_machine_is_never_reached_through_a_proxy(url: str) -> None:
    assert proxy_for(url, {"HTTP_PROXY": "http://p:1", "ALL_PROXY": "http://p:1"}) == ""


@pytest.mark.parametrize("value", ["http://", "ftp://p:1", "http://p:notaport"])
def test_a_wrong_proxy_is_named_by_its_variable(value: str) -> None:
    with pytest.raises(ConfigError, match="HTTPS_PROXY"):
        proxy_for("https://api.example.com/v1", {"HTTPS_PROXY": value})
