"""Lists of servers as other programs write them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wolo.errors import ConfigError
from wolo.mcp.server import ConfiguredServer, Server, describe_server, fingerprint
from wolo.mcp.server_entries import read_servers
from wolo.places import Notices

KEYS = st.sampled_from(["mcpServers", "command", "url", "args", "x"])
DOCUMENTS = st.recursive(
    st.none() | st.integers() | st.text(max_size=4), lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner), max_leaves=8
)


def read(complaints: Notices | None = None, **entries: Any) -> dict[str, Server]:
    return dict(
        read_servers(json.dumps({"mcpServers": entries}).encode(), ".mcp.json", Notices() if complaints is None else complaints)
    )


def test_a_program_and_an_address_are_read() -> None:
    found = read(
        files={"command": "npx", "args": ["-y", "x"], "env": {"A": "1"}, "description": "other programs keep more"},
        web={"type": "http", "url": "https://h/mcp", "headers": {"X": "1"}},
        old={"transport": "sse", "url": "https://h/sse"},
    )
    assert found["files"] == Server(command="npx", args=("-y", "x"), env={"A": "1"})
    assert found["web"] == Server(url="https://h/mcp", headers={"X": "1"}, transport="http")
    assert found["old"].transport == "sse"


def test_the_spellings_of_others_are_understood() -> None:
    found = read(
        a={"type": "streamable-http", "serverUrl": "https://h/mcp"},
        b={"type": "local", "command": ["npx", "-y", "x"], "environment": {"A": "1"}},
        c={"command": "x", "disabled": True, "startup_timeout_sec": 5},
    )
    assert found["a"] == Server(url="https://h/mcp", transport="http")
    assert found["b"] == Server(command="npx", args=("-y", "x"), env={"A": "1"}, transport="stdio")
    assert found["c"] == Server(command="x", enabled=False, startup_timeout_s=5)


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({}, "it has neither a command nor a url"),
        ({"command": "x", "args": "y"}, "Expected `array`, got `str` - at `$.args`"),
        ({"url": "https://h", "type": "carrier pigeon"}, "there is no transport 'carrier pigeon'"),
        ("npx", "it is not a JSON object"),
        ({"command": "x", "env": {"A": 1}}, "Expected `str`, got `int`"),
        ({"command": "x", "startup_timeout_s": -1}, "Expected `float` > 0"),
    ],
)
def test_senseless_server_is_reported_and_costs_no_other(entry: Any, said: str) -> None:
    complaints = Notices()
    assert list(read(complaints, odd=entry, good={"command": "x"})) == ["good"]
    (complaint,) = complaints
    assert complaint.startswith(".mcp.json: the MCP server odd: ")
    assert said in complaint


def test_name_impossible_in_rules_is_refused() -> None:
    complaints = Notices()
    assert read(complaints, **{"a/b": {"command": "x"}, "": {"command": "x"}, "ok.1_-": {"command": "x"}}).keys() == {"ok.1_-"}
    assert len(complaints) == 2


@given(st.binary(max_size=60) | DOCUMENTS.map(lambda value: json.dumps(value).encode()))
def test_any_file_is_read_or_refused_in_sentence(data: bytes) -> None:
    said = Notices()
    try:
        list(read_servers(data, ".mcp.json", said))
    except ConfigError as error:
        said.add(error.message)
    assert all(each.startswith(".mcp.json") for each in said)


SERVER = Server(command="npx", args=("-y", "x"), env={"A": "1"}, cwd="here")


def mark(**more: Any) -> str:
    return fingerprint(ConfiguredServer(**{"name": "x", "server": SERVER, "source": "the test", **more}))


@pytest.mark.parametrize(
    "other",
    [
        Server(command="npm", args=("-y", "x"), env={"A": "1"}, cwd="here"),
        Server(command="npx", args=("-y x",), env={"A": "1"}, cwd="here"),
        Server(command="npx", args=("-y", "x"), env={"A": "2"}, cwd="here"),
        Server(command="npx", args=("-y", "x"), env={"A": "1", "B": ""}, cwd="here"),
        Server(command="npx", args=("-y", "x"), env={"A": "1"}),
        Server(url="https://h", headers={"A": "1"}),
    ],
)
def test_any_change_of_access_makes_another_server(other: Server) -> None:
    assert mark() != mark(server=other)
    assert mark() != mark(name="y")
    assert mark() != mark(folder=Path("/project")) != mark(folder=Path("/project/part"))
    patient = Server(command="npx", args=("-y", "x"), env={"A": "1"}, cwd="here", tool_timeout_s=5, disabled_tools=("z",))
    assert mark() == mark(server=patient)


def test_consent_text_marks_the_end_of_each_word() -> None:
    server = Server(command="sh", args=("-c", "rm -rf '$HOME'"), env={"A": "1"}, cwd="here")
    assert list(describe_server(server)) == [("runs", "sh -c 'rm -rf '\\''$HOME'\\'''"), ("in", "here"), ("with", "A=1")]
    assert list(describe_server(Server(url="https://h", headers={"X": "${Y}"}))) == [
        ("connects to", "https://h"),
        ("sending", "X: ${Y}"),
    ]
