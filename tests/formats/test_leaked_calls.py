"""Calls written as text: found in any cutting, and only where they are calls."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.formats.streams import cut
from wolo.formats.leaked_calls import Leaked, LeakedCalls

OFFERED: dict[str, Any] = {
    "read": {"properties": {"path": {"type": "string"}, "limit": {"type": "integer"}, "deep": {"type": "boolean"}}},
    "write": {},
}


def scan(*pieces: str) -> tuple[str, list[tuple[str, Any]]]:
    """The text that is left, and the calls."""
    scanner = LeakedCalls(OFFERED)
    found = [*(each for piece in pieces for each in scanner.feed(piece)), *scanner.expect_no_more()]
    calls = [(each.tool, json.loads(each.arguments)) for each in found if isinstance(each, Leaked)]
    return "".join(each for each in found if isinstance(each, str)), calls


READ_A = ("read", {"path": "a"})


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ('{"name": "read", "arguments": {"path": "a"}}', ""),
        ('Sure.\n{"name": "read", "arguments": {"path": "a"}}', "Sure.\n"),
        ('```json\n{"name": "read", "arguments": {"path": "a"}}\n```', ""),
        ('```\n{"name": "read", "arguments": {"path": "a"}}\n```\nDone.', "\nDone."),
        ('```tool_call\r\n  {"name": "read", "arguments": {"path": "a"}}```', ""),
        ('<tool_call>\n{"name": "read", "arguments": {"path": "a"}}\n</tool_call>', ""),
        ('<tool_call>{"name": "read", "arguments": {"path": "a"}}', ""),
        ('{"name": "read", "arguments": {"path": "a"}}</tool_call>', ""),
        ('```json\n<tool_call>{"name": "read", "arguments": {"path": "a"}}</tool_call>\n```', ""),
        ('{"arguments": {"path": "a"}, "name": "read"}', ""),
        ('{"tool": "read", "args": {"path": "a"}}', ""),
        ('{"name": "read", "parameters": {"path": "a"}}', ""),
        ('{"type": "function", "function": {"name": "read", "arguments": {"path": "a"}}}', ""),
        ('{"id": "1", "name": "read", "arguments": "{\\"path\\": \\"a\\"}"}', ""),
        ('{ "name" : "read", "arguments": {"path": "a"} } and then some', " and then some"),
    ],
)
def test_a_call_is_found_in_every_wrapping(written: str, text: str) -> None:
    assert scan(written) == (text, [READ_A])
    assert scan(*written) == (text, [READ_A])


@pytest.mark.parametrize(
    "text",
    [
        "no call at all",
        '{"name": "unknown", "arguments": {}}',
        '{"name": "read"}',
        '{"name": "read", "arguments": 5}',
        '{"name": "read", "arguments": {"path": ',
        '{"name": "wolo", "version": "1.0", "scripts": {"a": "b"}}',
        '{"path": "a"}',
        "function f() { return {}; }",
        '```python\nd = {"a": 1}\n```',
        "`{` and ``x`` and ```",
        "a < b <tool and <tool_call>text</tool_call>",
        "```",
        "{",
        '{"',
        "<tool_call>",
        '{"name": "read", "arguments": {"path": "a"}',
    ],
)
def test_everything_else_is_text_to_the_letter(text: str) -> None:
    assert scan(text) == (text, [])
    assert scan(*text) == (text, [])


def test_line_breaks_as_they_are_do_not_hide_a_call() -> None:
    assert scan('{"name": "write", "arguments": {"content": "a\n\tb"}}')[1] == [("write", {"content": "a\n\tb"})]


def test_braces_and_quotes_in_strings_do_not_end_it() -> None:
    arguments = {"content": 'x = {"a": "}"} \\ </tool_call> ``` \\"'}
    written = "<tool_call>" + json.dumps({"name": "write", "arguments": arguments}) + "</tool_call>"
    assert scan(written) == ("", [("write", arguments)])
    assert scan(*written) == ("", [("write", arguments)])


def test_calls_in_a_row_are_all_found() -> None:
    one = '<tool_call>{"name": "read", "arguments": {"path": "a"}}</tool_call>'
    assert scan(f"{one}\n{one}")[1] == [READ_A, READ_A]
    bare = '{"name": "read", "arguments": {"path": "a"}}'
    assert scan(f"{bare}\n{bare}")[1] == [READ_A, READ_A]
    assert scan(f"```json\n{bare}\n{bare}\n```")[1] == [READ_A, READ_A]


@pytest.mark.parametrize(
    ("written", "arguments"),
    [
        ("<function=read><parameter=path>x</parameter></function>", {"path": "x"}),
        ("<tool_call>\n<function=read>\n<parameter=path>\nx\n</parameter>\n</function>\n</tool_call>", {"path": "x"}),
        ("<function=read>\n<parameter=path>\nx\n</parameter>\n</function>\n</tool_call>", {"path": "x"}),
        ("<function=read></function>", {}),
        ("<function=read>\n<parameter=path>\n\n x\n\n</parameter>\n</function>", {"path": "\n x\n"}),
        (
            "<function=read><parameter=path>7</parameter><parameter=limit>7</parameter><parameter=deep>true</parameter></function>",
            {"path": "7", "limit": 7, "deep": True},
        ),
        ("<function=read><parameter=limit>many</parameter></function>", {"limit": "many"}),
        (
            "<function=read><parameter=path>a</parameter> or </function> b</parameter></function>",
            {"path": "a</parameter> or </function> b"},
        ),
        (
            "<tool_call>read\n<arg_key>path</arg_key>\n<arg_value>x</arg_value>\n<arg_key>limit</arg_key>\n"
            "<arg_value>3</arg_value>\n</tool_call>",
            {"path": "x", "limit": 3},
        ),
        ("<tool_call>read<arg_key>path</arg_key><arg_value></tool_call></arg_value></tool_call>", {"path": "</tool_call>"}),
        ("<tool_call>read</tool_call>", {}),
        ("```xml\n<function=read><parameter=path>x</parameter></function>\n```", {"path": "x"}),
    ],
)
def test_a_call_is_found_in_the_markup_of_its_family(written: str, arguments: dict[str, Any]) -> None:
    assert scan(f"Sure. {written}\nDone.") == ("Sure. \nDone.", [("read", arguments)])
    assert scan(*f"Sure. {written}\nDone.") == ("Sure. \nDone.", [("read", arguments)])


@pytest.mark.parametrize(
    "text",
    [
        "<function=unknown><parameter=path>x</parameter></function>",
        "<function=read><parameter=path>x</parameter>",
        "<function=read>path: x</function> and so on",
        "<function=read> hm <parameter=path>x</parameter></function>",
        "<tool_call>unknown<arg_key>path</arg_key><arg_value>x</arg_value></tool_call>",
        "<tool_call>reading is fun</tool_call>",
        "<tool_call>read it</tool_call>",
        "a <function or a <table>",
        "read<arg_key>path</arg_key><arg_value>x</arg_value>",
    ],
)
def test_markup_that_is_no_call_of_ours_is_text_to_the_letter(text: str) -> None:
    assert scan(text) == scan(*text) == (text, [])


def test_a_whole_file_in_markup_costs_linear_time() -> None:
    scanner = LeakedCalls(OFFERED)
    began = time.monotonic()
    scanner.feed("<function=write><parameter=content>")
    for _ in range(100_000):
        assert scanner.feed("0123456789") == []
    (leaked,) = scanner.feed("</parameter></function>")
    assert isinstance(leaked, Leaked)
    assert len(leaked.arguments) > 1_000_000
    assert time.monotonic() - began < 5


def test_what_a_model_imagines_behind_its_call_is_text() -> None:
    bare = '{"name": "read", "arguments": {"path": "a"}}'
    text, calls = scan(f"{bare}\nThe result is fine. {bare}")
    assert calls == [READ_A]
    assert text.endswith(bare)


def test_only_what_may_become_a_call_is_held_back() -> None:
    scanner = LeakedCalls(OFFERED)
    assert scanner.feed("Hello {") == ["Hello "]
    assert scanner.feed('"pat') == ['{"pat']
    assert scanner.feed(' and {"na') == [" and "]
    assert scanner.feed("me") == []
    assert scanner.feed("d") == ['{"named']


FRAGMENTS = st.sampled_from(
    [
        '{"name": "read", "arguments": {"path": "a"}}',
        '{"name": "no", "arguments": {}}',
        "<tool_call>",
        "</tool_call>",
        "```json\n",
        "```",
        "\n",
        " ",
        "text",
        "{",
        '{"',
        '"',
        "\\",
        "}",
        "`",
        "<",
        "<function=",
        "<function=read>",
        "<parameter=path>",
        "a",
        "</parameter>",
        "</function>",
        "read",
        "<arg_key>path</arg_key>",
        "<arg_value>",
        "</arg_value>",
    ]
)


@given(st.lists(FRAGMENTS, max_size=7).map("".join), st.lists(st.integers(1, 9), min_size=1, max_size=4))
@settings(deadline=None, max_examples=300)
def test_how_the_text_is_cut_changes_nothing(text: str, sizes: list[int]) -> None:
    assert scan(*cut(text, sizes)) == scan(text) == scan(*text)


@given(st.lists(FRAGMENTS.filter(lambda fragment: "read" not in fragment), max_size=7).map("".join), st.integers(1, 5))
@settings(deadline=None, max_examples=200)
def test_text_without_a_call_comes_through_unchanged(text: str, size: int) -> None:
    assert scan(*cut(text, [size])) == (text, [])
