"""Public addresses: the ranges, and private ones hidden in them."""

from __future__ import annotations

import asyncio
import ipaddress
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wolo.errors import ToolError
from wolo.tools.web.address import Hosts, is_public, read_address, system_look_up

PUBLIC = ("1.1.1.1", "93.184.216.34", "172.15.0.1", "172.32.0.1", "192.167.1.1", "100.63.0.1", "100.128.0.1", "223.255.255.255")
PUBLIC_6 = ("2606:4700:4700::1111", "2a00:1450:4001:800::200e", "2001:4860:4860::8888", "2400:cb00::1")
NOT_PUBLIC = (
    *("0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "127.0.0.1", "127.255.255.255", "169.254.169.254", "172.16.0.1"),
    *("172.31.255.255", "192.168.0.1", "100.64.0.1", "100.100.100.200", "192.0.0.192", "198.18.0.1", "192.0.2.1", "224.0.0.1"),
    *("239.255.255.255", "240.0.0.1", "255.255.255.255", "168.63.129.16", "203.0.113.9", "198.51.100.7", "192.88.99.1"),
)
NOT_PUBLIC_6 = (
    *("::", "::1", "fe80::1", "fc00::1", "fd00:ec2::254", "ff02::1", "fec0::1", "100::1", "2001:db8::1", "3fff::1", "5f00::1"),
    *(
        "::ffff:127.0.0.1",
        "::ffff:1.1.1.1",
        "::127.0.0.1",
        "::1.1.1.1",
        "::ffff:0:127.0.0.1",
        "64:ff9b::7f00:1",
        "64:ff9b::101:101",
    ),
    *("64:ff9b:1::1", "2002:7f00:1::", "2002:a00:1::1", "2001:0:4136:e378:8000:63bf:80ff:fffe", "2001:10::1", "2001:20::1"),
    *("2606:4700::5efe:7f00:1", "2606:4700::200:5efe:10.0.0.1", "fe80::1%eth0", "2606:4700::1%1"),
)


@pytest.mark.parametrize("address", [*PUBLIC, *PUBLIC_6])
def test_public_addresses_are_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize("address", [*NOT_PUBLIC, *NOT_PUBLIC_6, "", "localhost", "1.1.1", "01.1.1.1"])
def test_everything_else_is_not(address: str) -> None:
    assert not is_public(address)


@given(st.ip_addresses())
def test_nothing_is_public_that_the_registries_reserve(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
    if not address.is_global or address.is_multicast or address.is_reserved:
        assert not is_public(str(address))


@given(st.ip_addresses(v=4), st.sampled_from(["::ffff:{}", "::{}", "64:ff9b::{}", "::ffff:0:{}", "2606::5efe:{}"]))
def test_an_address_within_an_address_is_never_public(address: ipaddress.IPv4Address, form: str) -> None:
    assert not is_public(form.format(address))


@pytest.mark.parametrize(
    "host",
    [
        *("localhost", "LOCALHOST", "localhost.", "x.localhost", "printer.local", "metadata.google.internal", "router.lan"),
        *("nas.home.arpa", "intranet", "db", "127.0.0.1", "10.0.0.1", "[::1]", "169.254.169.254", "[::ffff:a00:1]"),
    ],
)
async def test_local_network_names_are_not_looked_up(host: str) -> None:
    async def look_up(name: str, port: int) -> list[str]:
        raise AssertionError(name)

    with pytest.raises(ToolError, match="only public addresses"):
        await Hosts(look_up).find(read_address(f"http://{host}/"))


@pytest.mark.parametrize(
    "found", [("10.0.0.1",), ("1.1.1.1", "10.0.0.1"), ("1.1.1.1", "::1"), ("1.1.1.1", "fe80::1%2"), ("nonsense",)]
)
async def test_all_addresses_of_a_name_must_be_public(found: tuple[str, ...]) -> None:
    async def look_up(name: str, port: int) -> tuple[str, ...]:
        return found

    with pytest.raises(ToolError, match=r"a\.org is in a private network"):
        await Hosts(look_up).find(read_address("http://a.org/"))


async def test_public_ones_come_once_and_in_their_order() -> None:
    async def look_up(name: str, port: int) -> tuple[str, ...]:
        assert (name, port) == ("a.org", 8080)
        return ("2606:4700::1", "1.1.1.1", "2606:4700::1")

    assert await Hosts(look_up).find(read_address("http://a.org:8080/")) == ("2606:4700::1", "1.1.1.1")
    assert await Hosts(look_up).find(read_address("http://1.2.3.4/")) == ("1.2.3.4",)


async def test_a_name_without_addresses_is_unknown() -> None:
    async def look_up(name: str, port: int) -> tuple[str, ...]:
        return ()

    with pytest.raises(socket.gaierror):
        await Hosts(look_up).find(read_address("http://a.org/"))


async def test_the_system_looks_names_up() -> None:
    assert set(await system_look_up("localhost", 80)) <= {"127.0.0.1", "::1"}
    with pytest.raises(socket.gaierror):
        await system_look_up("no-such-name.invalid", 80)


async def test_abandoned_look_up_delays_nobody() -> None:
    task = asyncio.ensure_future(system_look_up("localhost", 80))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
