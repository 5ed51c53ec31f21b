"""Adapts tools of MCP servers to every provider: names, schemas, and arguments back to the server's keys."""

from __future__ import annotations

import json
import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.mcp_plain import NASTY
from wolo.formats.encoding.wire_forms import LEGAL_NAME
from wolo.formats.lint.checks import schema_problems
from wolo.guard.rule_patterns import TargetPattern
from wolo.mcp.listings import MOST_TOOLS, read_listed
from wolo.mcp.mcp_tool import MOST_BYTES, AdaptedSchema, offered_name, rule_name

SERVERS = st.from_regex(r"[A-Za-z0-9_.-]{1,64}", fullmatch=True)
TOOLS = st.text(min_size=1, max_size=80)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=12), inner, max_size=3),
    max_leaves=12,
)
KEYWORDS = st.sampled_from(["type", "properties", "required", "items", "anyOf", "$ref", "$defs", "enum", "additionalProperties"])
SCHEMAS = st.recursive(
    JSON, lambda inner: st.dictionaries(KEYWORDS, inner | st.dictionaries(st.text(max_size=8), inner, max_size=3), max_size=4)
)


def test_plain_name_is_joined_and_odd_one_marked() -> None:
    assert offered_name("github", "get_issue") == "mcp__github__get_issue"
    assert re.fullmatch(r"mcp__my_server__get_issue_[0-9a-f]{8}", offered_name("my.server", "get issue"))
    assert len(offered_name("s" * 64, "t" * 64)) == 64


@given(st.lists(st.tuples(SERVERS, TOOLS), min_size=2, max_size=8, unique=True))
def test_every_name_is_legal_and_unique(pairs: list[tuple[str, str]]) -> None:
    names = [offered_name(server, tool) for server, tool in pairs]
    assert all(re.fullmatch(LEGAL_NAME, name) for name in names)
    assert len(set(names)) == len(names)


def test_ambiguous_server_name_is_distinguished() -> None:
    pairs = [("a", "b__c"), ("a__b", "c"), ("a_", "_b__c"), ("a", "_b"), ("a_", "b")]
    assert len({offered_name(*pair) for pair in pairs}) == len(pairs)


@given(SERVERS, TOOLS, SERVERS)
def test_server_rule_covers_exactly_its_tools(server: str, tool: str, other: str) -> None:
    pattern = TargetPattern("mcp", f"{server}/*", wide=False)
    assert pattern.matches(rule_name(server, tool))
    assert other == server or not pattern.matches(rule_name(other, tool))


def test_schema_text_hides_nothing() -> None:
    hidden = {"type": "string", "title": "\x1b[8mT", "description": "A\u202e word\U000e0041", "default": "\u202e"}
    parameters = AdaptedSchema({"type": "object", "properties": {"a": hidden}}).parameters
    assert parameters["properties"]["a"]["description"] == "A\\u{202e} word\\u{e0041}"
    assert "\x1b" not in json.dumps(parameters).replace("\\u001b", "\x1b")


@given(SCHEMAS)
def test_request_can_carry_any_schema(schema: Any) -> None:
    (listed,) = read_listed([{"name": "x", "inputSchema": schema}])
    parameters = AdaptedSchema(listed.parameters).parameters
    assert parameters["type"] == "object"
    assert not list(schema_problems("x", parameters))
    assert len(json.dumps(parameters)) <= 2 * MOST_BYTES


def test_strange_tools_are_read_and_invalid_ones_skipped() -> None:
    listed = read_listed(NASTY)
    assert len(listed) == 14
    assert [each.name for each in listed] == sorted(each.name for each in listed)
    odd = next(each for each in listed if each.name.startswith("dots"))
    assert odd.description == "An odd name\\u{200b}."


def test_first_of_equal_names_counts_and_floods_end() -> None:
    twice = read_listed([{"name": "x", "description": "first"}, {"name": "x", "description": "second"}])
    assert [each.description for each in twice] == ["first"]
    assert len(read_listed({"name": f"t{number}"} for number in range(1000))) == MOST_TOOLS


def test_unaccepted_keys_return_under_their_names_at_depth() -> None:
    inner = {"type": "object", "properties": {"ö": {"type": "string"}}}
    fitted = AdaptedSchema(
        {
            "type": "object",
            "properties": {"$filter": {"type": "string"}, "a b": {"type": "array", "items": inner}, "ok": {"type": "string"}},
            "required": ["$filter", "ok"],
        }
    )
    outer, rows, ok = fitted.parameters["properties"]
    (deep,) = fitted.parameters["properties"][rows]["items"]["properties"]
    assert all(re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", key) for key in (outer, rows, ok, deep))
    assert fitted.parameters["required"] == [outer, "ok"]
    assert fitted.restore_arguments({outer: 1, rows: [{deep: 2}], "ok": {"ö": 3}}) == {
        "$filter": 1,
        "a b": [{"ö": 2}],
        "ok": {"ö": 3},
    }


def test_list_written_as_text_becomes_a_list() -> None:
    fitted = AdaptedSchema({"type": "object", "properties": {"xs": {"type": "array"}, "text": {"type": "string"}, "free": {}}})
    assert fitted.restore_arguments({"xs": "[1, 2]", "text": "[1]", "free": "[1]"}) == {
        "xs": [1, 2],
        "text": "[1]",
        "free": "[1]",
    }
    assert fitted.restore_arguments({"xs": "[1, 2"}) == {"xs": "[1, 2"}


def test_a_huge_schema_becomes_any_object() -> None:
    fields = {f"field{number}": {"type": "string", "description": "x" * 100} for number in range(1000)}
    assert AdaptedSchema({"type": "object", "properties": fields}).parameters == {"type": "object", "properties": {}}
