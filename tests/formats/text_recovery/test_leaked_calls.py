"""Calls written as text: found in any cutting, and only where they are calls."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.clock import processor_time_below
from tests.formats.streams import cut
from wolo.formats.text_recovery.leaked_calls import LeakedCall, LeakedCalls
from wolo.formats.text_recovery.text_filter import CallScanner

OFFERED: dict[str, Any] = {
    "read": {"properties": {"path": {"type": "string"}, "limit": {"type": "integer"}, "deep": {"type": "boolean"}}},
    "write": {},
}


def scan(*pieces: str) -> tuple[str, list[tuple[str, Any]]]:
    """The text that is left, and the calls."""
    return scan_with(LeakedCalls(OFFERED), *pieces)


def scan_with(scanner: LeakedCalls | CallScanner, *pieces: str) -> tuple[str, list[tuple[str, Any]]]:
    found = [*(each for piece in pieces for each in scanner.feed(piece)), *scanner.flush()]
    calls = [(each.tool, json.loads(each.arguments)) for each in found if isinstance(each, LeakedCall)]
    return "".join(each for each in found if isinstance(each, str)), calls


READ_A = ("read", {"path": "a"})


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ('{"name": "read", "arguments": {"path": "a"}}', ""),
        ('Sure.\n{"name": "read", "arguments": {"path": "a"}}', "Sure.\n"),
        ('```json\n{"name": "read", "arguments": {"path": "a"}}\n```', ""),
        ('~~~~ call\n{"name": "read", "arguments": {"path": "a"}}\n~~~~\n', ""),
        ('```\n{"name": "read", "arguments": {"path": "a"}}\n', ""),
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
        ('{ "name" : "read", "arguments": {"path": "a"} }\n\n', ""),
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


def test_literal_line_breaks_hide_no_call() -> None:
    assert scan('{"name": "write", "arguments": {"content": "a\n\tb"}}')[1] == [("write", {"content": "a\n\tb"})]


def test_braces_and_quotes_in_strings_end_nothing() -> None:
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
def test_call_is_found_in_its_family_markup(written: str, arguments: dict[str, Any]) -> None:
    assert scan(f"\n{written}\n") == ("\n", [("read", arguments)])
    assert scan(*f"\n{written}\n") == ("\n", [("read", arguments)])


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
def test_markup_without_our_call_is_literal_text(text: str) -> None:
    assert scan(text) == scan(*text) == (text, [])


def claude(tool: str, **values: str) -> str:
    """One call of the form that carries the name as an attribute."""
    mark = "parameter"
    inside = "".join(f'<{mark} name="{key}">{value}</{mark}>\n' for key, value in values.items())
    return f'<invoke name="{tool}">\n{inside}</invoke>'


CALLS, END_CALLS = "<function_calls>\n", "\n</function_calls>"
KIMI, END_KIMI = "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"


def kimi(name: str, arguments: str) -> str:
    return f"<|tool_call_begin|>{name}<|tool_call_argument_begin|>{arguments}<|tool_call_end|>"


def glm(path: str) -> str:
    return f"<tool_call>read<arg_key>path</arg_key><arg_value>{path}</arg_value></tool_call>"


@pytest.mark.parametrize(
    ("written", "paths"),
    [
        (claude("read", path="a"), ["a"]),
        (f"{CALLS}{claude('read', path='a')}{END_CALLS}", ["a"]),
        (f"{CALLS}{claude('read', path='a')}\n{claude('read', path='</invoke> b')}{END_CALLS}", ["a", "</invoke> b"]),
        ('[TOOL_CALLS][{"name": "read", "arguments": {"path": "a"}}]', ["a"]),
        ('[TOOL_CALLS] [{"name":"read","arguments":{"path":"a"}}, {"name":"read","arguments":{"path":"b"}}]</s>', ["a", "b"]),
        ('[TOOL_CALLS]read[ARGS]{"path": "a"}', ["a"]),
        ('[TOOL_CALLS]read[CALL_ID]abcdef123[ARGS]{"path": "a"}[TOOL_CALLS]read[ARGS]{"path": "b"}', ["a", "b"]),
        ('[TOOL_CALLS]read{"path": "a"}', ["a"]),
        (KIMI + kimi("functions.read:0", '{"path": "a"}') + END_KIMI, ["a"]),
        (
            KIMI + kimi("functions.read:0", '{"path": "a"}') + "\n" + kimi("functions.read:1", '{"path": "b"}') + END_KIMI,
            ["a", "b"],
        ),
        (kimi("read", ' {"path": "a"} ').replace("<|tool_call_end|>", ""), ["a"]),
        ('<|channel|>commentary to=functions.read <|constrain|>json<|message|>{"path": "a"}<|call|>', ["a"]),
        ('<|start|>assistant<|channel|>commentary to=functions.read<|message|>{"path": "a"}<|call|>', ["a"]),
        ('<|start|>assistant to=functions.read<|channel|>commentary json<|message|>{"path": "a"}<|call|>', ["a"]),
        ('to=functions.read code {"path": "a"}', ["a"]),
        ('<|python_tag|>{"name": "read", "parameters": {"path": "a"}}<|eom_id|>', ["a"]),
        (
            '<|python_tag|>{"name":"read","parameters":{"path":"a"}}; {"name":"read","parameters":{"path":"b"}}<|eot_id|>',
            ["a", "b"],
        ),
        (glm("a") + glm("b") + "\n" + glm("c"), ["a", "b", "c"]),
        ('```\n[TOOL_CALLS]read[ARGS]{"path": "a"}\n```', ["a"]),
    ],
)
def test_each_family_is_read_in_its_own_syntax(written: str, paths: list[str]) -> None:
    expected = [("read", {"path": path}) for path in paths]
    text = "" if written.startswith("```") else "Sure.\n"
    assert scan(f"{text}{written}") == scan(*f"{text}{written}") == (text, expected)
    assert scan(*f"{text}{written}", "D", "one.") == (f"{text}{written}Done.", [])


@pytest.mark.parametrize(
    "text",
    [
        claude("unknown", path="a"),
        f"{CALLS}{claude('unknown', path='a')}{END_CALLS}",
        claude("read", path="a").replace("</invoke>", ""),
        '[TOOL_CALLS][{"name": "unknown", "arguments": {}}]',
        "[TOOL_CALLS]unknown[ARGS]{}",
        '[TOOL_CALLS]read[ARGS]{"path": ',
        "[TODO] and [TOOL] and [TOOL_CALLS]",
        KIMI + kimi("functions.unknown:0", "{}") + END_KIMI,
        "<|channel|>analysis<|message|>I think",
        "<|channel|>commentary to=functions.unknown <|message|>{}<|call|>",
        "go to=functions.read and then stop",
        "to=functions.read with {braces} in it",
        "<|python_tag|>print(1)",
        '<|python_tag|>{"name": "unknown", "parameters": {}}',
        "a to b, too, t",
        "a <|im_end|> or a < | b",
    ],
)
def test_syntax_lookalike_is_text_to_the_letter(text: str) -> None:
    assert scan(text) == scan(*text) == (text, [])


def test_values_become_what_the_schema_says() -> None:
    written = claude("read", path="7", limit="7", deep="true")
    assert scan(*written)[1] == [("read", {"path": "7", "limit": 7, "deep": True})]


def test_bare_objects_can_be_left_alone() -> None:
    scanner = LeakedCalls(OFFERED, may_be_bare=False)
    bare = '{"name": "read", "arguments": {"path": "a"}}'
    assert "".join(str(each) for each in (*scanner.feed(bare), *scanner.flush())) == bare
    scanner = LeakedCalls(OFFERED, may_be_bare=False)
    (leaked,) = (*scanner.feed(f"<tool_call>{bare}</tool_call>\n"), *scanner.flush())
    assert isinstance(leaked, LeakedCall)
    assert leaked.raw == f"<tool_call>{bare}</tool_call>\n"


def test_a_whole_file_in_markup_costs_linear_time() -> None:
    scanner = LeakedCalls(OFFERED)
    with processor_time_below(5):
        scanner.feed("<function=write><parameter=content>")
        for _ in range(100_000):
            assert scanner.feed("0123456789") == []
        (leaked,) = (*scanner.feed("</parameter></function>"), *scanner.flush())
        assert isinstance(leaked, LeakedCall)
        assert len(leaked.arguments) > 1_000_000


def test_text_imagined_behind_a_call_stays_text() -> None:
    bare = '{"name": "read", "arguments": {"path": "a"}}'
    text = f"{bare}\nThe result is fine. {bare}"
    assert scan(text) == scan(*text) == (text, [])


def test_only_possible_calls_are_held_back() -> None:
    scanner = LeakedCalls(OFFERED)
    assert "".join(map(str, scanner.feed("Hello {"))) == "Hello {"
    assert "".join(map(str, scanner.feed('"name and\n{'))) == '"name and\n'
    assert "".join(map(str, scanner.feed('"pas'))) == '{"pas'
    assert "".join(map(str, scanner.feed('\n{"na'))) == "\n"
    assert scanner.feed("me") == []
    assert scanner.held_chars == len('{"name')
    assert "".join(map(str, scanner.feed("d"))) == '{"named'


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
        "[TOOL_CALLS]",
        "[ARGS]",
        "[",
        ",",
        "]",
        "<|tool_call_begin|>",
        "functions.read:0",
        "<|tool_call_argument_begin|>",
        "<|tool_call_end|>",
        "<|channel|>",
        "commentary ",
        "to=functions.",
        "<|call|>",
        "<|python_tag|>",
        '{"path": "a"}',
        '<invoke name="read">',
        "</invoke>",
        "</function_calls>",
        "<arg_value>",
        "</arg_value>",
        "~~~",
        "~~~\n",
        "````",
        "\n\n",
        "\r\n",
        "    ",
        "\t",
        "> ",
        "- ",
        "<pre>",
        "</pre>",
        "<!--",
    ]
)


@given(st.lists(FRAGMENTS, max_size=7).map("".join), st.lists(st.integers(1, 9), min_size=1, max_size=4))
def test_text_cuts_change_nothing(text: str, sizes: list[int]) -> None:
    assert scan(*cut(text, sizes)) == scan(text) == scan(*text)


@given(st.lists(FRAGMENTS, max_size=7).map("".join), st.lists(st.integers(1, 9), min_size=1, max_size=4))
def test_late_loaded_scanner_finds_the_same(text: str, sizes: list[int]) -> None:
    pieces = cut(text, sizes)
    assert scan_with(CallScanner(OFFERED), *pieces) == scan(*pieces)


@pytest.mark.parametrize(
    ("pieces", "calls"),
    [
        (["> It would", " be\n", '{"name": "read", "arguments": {"path": "a"}}'], []),  # a line of the quote
        (["It is", '{"name": "read", "arguments": {"path": "a"}}'], []),
        (["It is\n", " ", '{"name": "read", "arguments": {"path": "a"}}'], []),  # indented behind text
        (["\n", '{"name": "read", "arguments": {"path": "a"}}'], [READ_A]),
        (["It is\n\n", '{"name": "read", "arguments": {"path": "a"}}'], [READ_A]),
        (["t", 'o=functions.read{"path": "a"}'], [READ_A]),
        (["So\nto", '=functions.read{"path": "a"}'], [READ_A]),
    ],
)
def test_text_passed_before_scanner_loading_counts(pieces: list[str], calls: list[Any]) -> None:
    assert scan(*pieces)[1] == calls
    assert scan_with(CallScanner(OFFERED), *pieces) == scan(*pieces)


@given(st.lists(FRAGMENTS.filter(lambda fragment: "read" not in fragment), max_size=7).map("".join), st.integers(1, 5))
def test_text_without_a_call_comes_through_unchanged(text: str, size: int) -> None:
    assert scan(*cut(text, [size])) == (text, [])


UNIONS: dict[str, Any] = {
    "text": {"type": "string"},
    "number": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None},
    "flag": {"oneOf": [{"type": "null"}, {"type": "boolean"}]},
    "listed": {"type": ["array", "null"], "items": {"type": "string"}},
    "maybe": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    "either": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
    "share": {"type": "number"},
    "named": {"$ref": "#/$defs/Size"},
    "inner": {"allOf": [{"anyOf": [{"$ref": "#/$defs/Box"}, {"type": "null"}]}]},
    "level": {"enum": [1, 2, 3]},
    "itself": {"$ref": "#/$defs/Loop"},
    "open": {},
}
DEFINITIONS = {
    "Size": {"type": "integer"},
    "Box": {"type": "object", "properties": {"a": {"type": "integer"}}},
    "Loop": {"anyOf": [{"$ref": "#/$defs/Loop"}, {"type": "boolean"}]},
}


@pytest.mark.parametrize(
    ("key", "written", "value"),
    [
        ("text", "7", "7"),
        ("text", "null", "null"),
        ("number", "7", 7),
        ("number", "7.0", 7),
        ("number", "null", None),
        ("number", "None", None),
        ("number", "123456789012345678", 123456789012345678),
        ("number", "many", "many"),
        ("number", "NaN", "NaN"),
        ("flag", "true", True),
        ("flag", "False", False),
        ("listed", '["a", "b"]', ["a", "b"]),
        ("maybe", "null", None),
        ("maybe", "7", "7"),
        ("maybe", "None", "None"),
        ("either", "7", 7),
        ("either", "seven", "seven"),
        ("either", "[1]", "[1]"),
        ("share", "1", 1),
        ("share", "0.5", 0.5),
        ("named", "7", 7),
        ("inner", '{"a": 1}', {"a": 1}),
        ("level", "2", 2),
        ("itself", "true", True),
        ("open", "7", "7"),
        ("unknown", "7", "7"),
    ],
)
@pytest.mark.parametrize(
    "template",
    [
        "<function=set><parameter={key}>{value}</parameter></function>",
        "<tool_call>set<arg_key>{key}</arg_key><arg_value>{value}</arg_value></tool_call>",
        '<invoke name="set"><parameter name="{key}">{value}</parameter></invoke>',
    ],
)
def test_markup_becomes_the_fitting_schema_branch(template: str, key: str, written: str, value: Any) -> None:
    scanner = LeakedCalls({"set": {"type": "object", "properties": UNIONS, "$defs": DEFINITIONS}})
    (leaked,) = (*scanner.feed(template.format(key=key, value=written)), *scanner.flush())
    assert isinstance(leaked, LeakedCall)
    assert json.loads(leaked.arguments) == {key: value}
    assert type(json.loads(leaked.arguments)[key]) is type(value)


@pytest.mark.parametrize(
    "written",
    [
        "<function=write><parameter=path>a\n<parameter=content>b</parameter></function>",
        "<function=write><parameter=path>a\n<parameter=content>b</parameter></parameter></function>",
        "<tool_call><function=write>\n<parameter=content>\nb\n<parameter=path>\na\n</parameter>\n</function></tool_call>",
        "<tool_call>write<arg_key>path</arg_key><arg_value>a<arg_key>content</arg_key><arg_value>b</arg_value></tool_call>",
        "<tool_call>write<arg_key>path<arg_key>content</arg_key><arg_value>b</arg_value></tool_call>",
        "<tool_call>write<arg_key>path<arg_value>a</arg_value><arg_key>content</arg_key><arg_value>b</arg_value></tool_call>",
        '<invoke name="write"><parameter name="path">a<parameter name="content">b</parameter></invoke>',
        "<function=write><parameter=path>a</parameter><parameter=path>b</parameter></function>",
        "<function=write><parameter=path>a</parameter><parameter = content>b</parameter></function>",
        "<function=write><parameter=path>a</parameter><Parameter=content>b</parameter></function>",
        "<tool_call>write<arg_key>path</arg_key><arg_value>a< arg_key >content</arg_key><arg_value>b</arg_value></tool_call>",
        '<invoke name="write"><parameter name="path">a<PARAMETER name=content>b</parameter></invoke>',
    ],
)
def test_a_value_that_swallowed_another_is_not_run(written: str) -> None:
    for pieces in ((written,), tuple(written)):
        scanner = LeakedCalls(OFFERED)
        found = [*(each for piece in pieces for each in scanner.feed(piece)), *scanner.flush()]
        calls = [each for each in found if isinstance(each, LeakedCall)]
        assert calls
        assert all(call.problem for call in calls)
