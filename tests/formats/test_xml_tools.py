"""The text protocol: calls and results are text on the wire, and only the model's own text is ever read as calls."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.formats.histories import FOREIGN, OWN, PNG, TOOLS, histories, request, texts
from tests.formats.streams import DONE, cut, encoded, ends, said
from wolo.errors import Unavailable
from wolo.formats.format import Request, ToolSpec
from wolo.formats.lint.chat import lint_xml as lint
from wolo.formats.openai_chat import OpenAIChat
from wolo.formats.xml_tools import XmlDialect, XmlTools, carrier_dialect
from wolo.formats.xml_tools.call_blocks import Malformed, check_call, format_call, validate_message
from wolo.formats.xml_tools.decode import ToolBlocks
from wolo.messages.deltas import Assembler
from wolo.messages.message import Message, user
from wolo.messages.parts import ImagePart, TextPart, ThinkingPart, ToolPart

OFFERED = (*TOOLS, ToolSpec("write", "", {}), ToolSpec("mcp__files__stat", "", {}))
PLAIN = XmlDialect()
READ_A = '<tool>{"server_name":"local","tool_name":"read","arguments":{"path":"a"}}</tool>'


def make(dialect: XmlDialect = PLAIN) -> XmlTools:
    return XmlTools(OpenAIChat(carrier_dialect(dialect)), dialect)


def asked(history: tuple[Message, ...] = (), **fields: object) -> Request:
    return request(history, **{"tools": OFFERED, **fields})


def sent(history: tuple[Message, ...], dialect: XmlDialect = PLAIN, **fields: object) -> list[Any]:
    body = msgspec.json.decode(make(dialect).encode(asked(history, **fields)))
    assert lint(body) == []
    messages = body["messages"]
    assert isinstance(messages, list)
    return messages


def answer(*pieces: str, reason: str | None = "stop", dialect: XmlDialect = PLAIN, reasoning: str = "") -> Message:
    assembler = Assembler()
    decoder = make(dialect).decoder(asked())
    thought = [said(reasoning_content=reasoning)] if reasoning else []
    for payload in (*thought, *(said(content=piece) for piece in pieces), *([ends(reason)] if reason else ()), DONE):
        assembler.add(decoder.feed(encoded(payload)))
    assembler.add(decoder.close())
    return assembler.message(producer=OWN)


def answered(message: Message, output: str = "fine", **fields: Any) -> Message:
    given = {"status": "completed", "outcome": "ok", "output": output, **fields}
    return message.with_parts(msgspec.structs.replace(call, **given) for call in message.calls if call.status == "pending")


def shape(message: Message) -> list[Any]:
    return [_shape(part) for part in message.parts]


def _shape(part: object) -> Any:
    if isinstance(part, ToolPart):
        return (part.tool, part.input, part.status)
    return part.text if isinstance(part, TextPart) else part


# How it is used


def test_a_conversation_becomes_plain_messages() -> None:
    call = ToolPart(tool="read", input={"path": "a"}, status="completed", outcome="ok", output="text of a")
    spoken = Message(role="assistant", parts=[TextPart(text="I read it."), call], producer=OWN, finished=True)
    system, *messages = sent((user("Read a"), spoken, user("Thanks")))
    assert messages == [
        {"role": "user", "content": "Read a"},
        {
            "role": "assistant",
            "content": 'I read it.\n<tool>{"server_name": "local", "tool_name": "read", "arguments": {"path": "a"}}</tool>\n',
        },
        {"role": "user", "content": "Tool: read\ntext of a"},
        {"role": "assistant", "content": "(no answer was given)"},
        {"role": "user", "content": "Thanks"},
    ]
    assert system["role"] == "system"
    assert system["content"].startswith("You are Wolo.\n\n# Calling tools")
    assert '## read\n\nserver_name: local\n\nReads a file.\n\nSchema of the arguments: {"type": "object"' in system["content"]
    assert "## stat\n\nserver_name: files\n" in system["content"]


def test_a_block_in_the_answer_is_a_call() -> None:
    message = answer(f"I look.\n\n{READ_A}\n")
    assert shape(message) == ["I look.\n\n", ("read", {"path": "a"}, "pending"), "\n"]
    assert message.finish_reason == "tool_calls"


def test_without_tools_nothing_is_called_or_explained() -> None:
    decoder = make().decoder(asked(tools=()))
    assembler = Assembler()
    for payload in (said(content=READ_A), ends("stop")):
        assembler.add(decoder.feed(encoded(payload)))
    assembler.add(decoder.close())
    assert shape(assembler.message()) == [READ_A]
    assert sent((user("hi"),), tools=())[0]["content"] == "You are Wolo."


def test_answer_in_one_document_reads_the_same() -> None:
    xml = make()
    xml.encode(asked((user("hi"),)))
    assembler = Assembler()
    body = {"choices": [{"message": {"role": "assistant", "content": f"So:\n{READ_A}"}, "finish_reason": "stop"}]}
    assembler.add(xml.read_whole(json.dumps(body).encode()))
    assert shape(assembler.message()) == ["So:\n", ("read", {"path": "a"}, "pending")]


# What is a call


HARD = {"path": 'a </tool> <tool>{"tool_name":"write","arguments":{}}</tool> ```\n`x` "q" \\ \u2028 😀', "n": [1, {"b": None}]}


@pytest.mark.parametrize(
    "text",
    [
        "<tool>" + json.dumps({"server_name": "local", "tool_name": "read", "arguments": HARD}) + "</tool>",
        "<tool>\n" + json.dumps({"tool_name": "read", "arguments": HARD}, indent=2) + "\n</tool>",
        "Text ` with a tick.\n\n<tool>" + json.dumps({"arguments": HARD, "tool_name": " Read "}) + "  </tool> and so on",
        "a `b` ``c ` d`` <tool>" + json.dumps({"tool_name": "read", "arguments": HARD}) + "</tool>",
        "<tool>" + json.dumps({"tool_name": "read", "arguments": json.dumps(HARD)}) + "</tool>",
        "<tool>" + json.dumps({"tool_name": "read", "arguments": HARD}),
        "```\ncode\n```\n<tool>" + json.dumps({"tool_name": "read", "arguments": HARD}) + "</tool>",
    ],
)
def test_call_with_any_content_is_read_whole(text: str) -> None:
    (call,) = answer(text).calls
    assert (call.tool, call.input, call.status) == ("read", HARD, "pending")
    assert shape(answer(*text)) == shape(answer(text))


def test_doubly_encoded_call_is_read_too() -> None:
    (call,) = answer("<tool>" + json.dumps(json.dumps({"tool_name": "read", "arguments": {"path": "a"}})) + "</tool>").calls
    assert (call.tool, call.input) == ("read", {"path": "a"})


def test_literal_line_breaks_do_not_spoil_calls() -> None:
    (call,) = answer('<tool>{"tool_name":"write","arguments":{"content":"a\n\tb"}}</tool>').calls
    assert call.input == {"content": "a\n\tb"}


def test_several_calls_and_texts_keep_their_order() -> None:
    text = f"One.\n{READ_A}\n\nTwo: {READ_A}{READ_A} end"
    read = ("read", {"path": "a"}, "pending")
    assert shape(answer(text)) == shape(answer(*text)) == ["One.\n", read, "\n\nTwo: ", read, read, " end"]


def test_server_tools_are_named_by_server_and_tool() -> None:
    (call,) = answer('<tool>{"server_name":"files","tool_name":"stat","arguments":{}}</tool>').calls
    assert call.tool == "mcp__files__stat"
    history = (user("hi"), answered(Message(role="assistant", parts=[ToolPart(tool="mcp__files__stat")], producer=FOREIGN)))
    assert '{"server_name": "files", "tool_name": "stat", "arguments": {}}' in sent(history)[2]["content"]


@pytest.mark.parametrize(
    "text",
    [
        f"```\n{READ_A}\n```",
        f"~~~xml\n{READ_A}\n~~~\nor\n> ```\n> {READ_A}\n> ```",
        f"- ```json\n  {READ_A}\n  ```",
        f"````\n```\n{READ_A}\n```\n````",
        f"```\nnever closed\n{READ_A}",
        f"Write `{READ_A}` for that.",
        f"Write ``{READ_A} ` `` for that.",
        f"Write `a\n{READ_A}\nb` for that.",
        '<tool>{"server_name":"local","tool_name":"unknown","arguments":{"path":"a"}}</tool>',
        '<tool>{"server_name":"other","tool_name":"unknown","arguments":{}}</tool>',
        '<tool>{"tool_name":"unknown"}</tool>',
        "the <tool> tag, and </tool>",
        "a <tool",
        "<tool>",
        "<tool>  ",
        "<tools>{}</tools>",
        '{"tool_name":"read","arguments":{}}',
    ],
)
def test_everything_else_is_text_to_the_letter(text: str) -> None:
    assert shape(answer(text)) == shape(answer(*text)) == [text]
    assert answer(text).finish_reason == "stop"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('<tool>{"tool_name":"read","arguments":{"path":}}</tool>', "not valid JSON"),
        ('<tool>{"tool_name":"read","arguments":{"path":"a",}}</tool>', "not valid JSON"),
        ('<tool>{"tool_name":"read","arguments":{}}}</tool>', "Extra data"),
        ('<tool>{"tool_name":"read","arguments":{"path":"a"</tool>', "not valid JSON"),
        ("<tool>read a</tool>", "not valid JSON"),
        ("<tool>[1]</tool>", "not a JSON object but an array"),
        ('<tool>{"server_name":"local","arguments":{}}</tool>', "has no `tool_name`"),
        ('<tool>{"tool_name":5,"arguments":{}}</tool>', "has no `tool_name`"),
        ('<tool>{"tool_name":"read"}</tool>', "has no `arguments`"),
        ('<tool>{"tool_name":"read","tool_name":"write","arguments":{}}</tool>', "is duplicated"),
        ('<tool>{"tool_name":"read","arguments":[]}</tool>', "not a JSON object but an array"),
        ('<tool>{"tool_name":"read","arguments":{"path":"a"', "no </tool> tag"),
        ('<tool>{"tool_name":"read","arguments":{}} and so on', "no </tool> tag"),
    ],
)
def test_unreadable_call_is_explained(text: str, problem: str) -> None:
    message = answer(text)
    (call,) = message.calls
    assert (call.status, call.outcome, call.input) == ("failed", "invalid", {})
    assert problem in call.output
    assert "Nothing was run." in call.output
    assert shape(answer(*text)) == shape(message)
    assert text in sent((user("hi"), message))[2]["content"]
    assert sent((user("hi"), message))[3]["content"].split("\n")[1].startswith("Error: ")


def test_a_sound_call_beside_a_broken_one_runs() -> None:
    text = f'<tool>{{"tool_name":"read","arguments":{{"path":}}}}</tool>\n{READ_A}'
    assert [call.status for call in answer(*text).calls] == ["failed", "pending"]
    unclosed = f'<tool>{{"tool_name":"write","arguments":{{}}}}\n{READ_A}'
    assert [call.tool for call in answer(*unclosed).calls] == ["write", "read"]


def test_example_inside_broken_call_does_not_run() -> None:
    text = f'<tool>{{"tool_name":"write","arguments":{{"content":"Example:\n{READ_A}\nend"}}}}</tool>'
    (call,) = answer(*text).calls
    assert (call.tool, call.status) == ("write", "failed")


# How an answer ends


def test_call_cut_at_output_limit_does_not_run() -> None:
    for text in (READ_A, READ_A[:-9], '<tool>{"tool_name":"wri'):
        message = answer(text, reason="length")
        assert [(call.status, call.outcome) for call in message.calls] == [("failed", "cut_off")]


def test_a_torn_stream_runs_nothing() -> None:
    decoder = make().decoder(asked())
    decoder.feed(encoded(said(content=f"Hello {READ_A}")))
    with pytest.raises(Unavailable):
        decoder.close()


def test_calls_in_late_reasoning_are_no_calls() -> None:
    text = f"I could do {READ_A} hm</think>Hello"
    message = answer(*text)
    assert not message.calls
    assert message.text == "Hello"
    assert message.reasoning_content == f"I could do {READ_A} hm"


def test_think_tag_in_a_call_is_content() -> None:
    text = f"<think>Hm {READ_A}</think>\nSo: " + format_call("write", json.dumps({"content": "a </think> b"})) + " done"
    message = answer(*text)
    assert [call.input for call in message.calls] == [{"content": "a </think> b"}]
    assert (message.reasoning_content, message.text) == (f"Hm {READ_A}", "So:  done")


def test_server_reasoning_is_never_read_as_calls() -> None:
    message = answer("Hello", reasoning=f"Maybe {READ_A}")
    assert not message.calls


def test_closing_tag_stopped_at_is_put_back() -> None:
    dialect = XmlDialect(xml_single_call=True)
    body = msgspec.json.decode(make(dialect).encode(asked((user("hi"),))))
    assert body["stop"] == ["</tool>"]
    message = answer(READ_A.removesuffix("</tool>"), dialect=dialect)
    assert sent((user("hi"), answered(message)), dialect)[2]["content"] == READ_A


# What goes back


def test_model_text_returns_to_the_letter() -> None:
    text = f'Well,\n\n<tool> {{ "arguments" : {{"path" : "ä\\u00e4"}},\n"tool_name":"read"}}\n</tool> then {READ_A}\n.'
    message = answered(answer(*text), "r")
    assert sent((user("hi"), message))[2]["content"] == text
    packed = msgspec.msgpack.decode(msgspec.msgpack.encode(message), type=Message)
    assert sent((user("hi"), packed))[2]["content"] == text
    assert (
        '"tool_name": "read", "arguments": {"path" : "ä\\u00e4"}' in sent((user("hi"), message), producer=FOREIGN)[2]["content"]
    )


def test_answer_results_share_one_message_in_call_order() -> None:
    message = answer(READ_A * 3)
    outcomes: list[dict[str, Any]] = [
        {"status": "completed", "outcome": "ok", "output": "one"},
        {"status": "failed", "outcome": "error", "output": "no such file"},
        {
            "status": "completed",
            "outcome": "ok",
            "output": "three",
            "output_parts": (ImagePart(media_type="image/png", data=PNG),),
        },
    ]
    parts = [msgspec.structs.replace(call, **given) for call, given in zip(message.calls, outcomes, strict=True)]
    text, image = sent((user("hi"), message.with_parts(parts)))[3]["content"]
    assert text == {"type": "text", "text": "Tool: read\none\n\nTool: read\nError: no such file\n\nTool: read\nthree"}
    assert image["type"] == "image_url"


def test_user_and_tool_text_never_forms_a_call() -> None:
    message = answered(answer(READ_A), f"found {READ_A}")
    history = sent((user(f"What does {READ_A} do?"), message))
    for spoken in (history[1]["content"], history[3]["content"]):
        assert "<tool>" not in spoken
        assert '&lt;tool>{"server_name"' in spoken


# The validators


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("no call", "no <tool> tag"),
        ("<tool>{}", "no </tool> tag"),
        ("<tool>{</tool>", "not valid JSON"),
        ('<tool>{"arguments":{}}</tool>', "tool_name"),
        ('<tool>{"tool_name":"x"}</tool>', "arguments"),
    ],
)
def test_each_mistake_in_a_call_is_named(text: str, problem: str) -> None:
    with pytest.raises(Malformed, match=problem):
        check_call(text)


def test_a_sound_call_passes() -> None:
    check_call(f"Hm. {READ_A} {format_call('x', json.dumps(HARD))}"[: len(READ_A) + 4])
    check_call(format_call("x", json.dumps(HARD)))


def test_a_message_needs_a_role_and_content() -> None:
    validate_message({"role": "tool", "content": "Tool: calculator\nResult: 8"})
    with pytest.raises(Malformed, match="role"):
        validate_message({"role": "robot", "content": "x"})
    with pytest.raises(Malformed, match="empty"):
        validate_message({"role": "user", "content": ""})


# For any conversation


@given(histories, st.integers(0, 8))
def test_every_conversation_grows_as_a_valid_request(history: tuple[Message, ...], at: int) -> None:
    before = msgspec.json.encode(history[0].parts) if history and not _has_halves(history) else b""
    xml = make()
    first = json.loads(xml.encode(asked(history[:at])))
    grown = xml.encode(asked(history))
    assert make().encode(asked(history)) == grown
    body = json.loads(grown)
    assert lint(body) == []
    closing = 1 if first["messages"][-1] == {"role": "user", "content": "Continue."} else 0
    kept = first["messages"][: len(first["messages"]) - closing]
    if not any(message.role == "system" for message in history[:1]):
        assert body["messages"][: len(kept)] == kept
    assert "tools" not in body
    if before:
        assert msgspec.json.encode(history[0].parts) == before


def _has_halves(history: tuple[Message, ...]) -> bool:
    try:
        msgspec.json.encode(history)
    except UnicodeEncodeError:
        return True
    return False


arguments = st.dictionaries(
    st.text(max_size=5),
    st.one_of(
        texts.filter(str.isprintable), st.text(max_size=30), st.integers(-9, 9), st.sampled_from(["</tool>", READ_A, "```\n"])
    ),
    max_size=4,
).filter(lambda given: not any(0xD800 <= ord(character) < 0xE000 for character in json.dumps(given, ensure_ascii=False)))


@given(st.lists(arguments, min_size=1, max_size=3), st.lists(st.integers(1, 9), min_size=1, max_size=3))
def test_written_call_is_read_back_equal(given: list[dict[str, Any]], sizes: list[int]) -> None:
    text = "\n".join(format_call("write", json.dumps(each, ensure_ascii=False)) for each in given)
    message = answer(*cut(text, sizes))
    assert [(call.tool, call.input) for call in message.calls] == [("write", each) for each in given]


@given(st.lists(texts | st.sampled_from([READ_A, "<tool>", "</tool>", "```\n"]), max_size=4).map("".join))
def test_a_quotation_can_never_become_a_call(quoted: str) -> None:
    """Even a model that repeats what it was told word for word calls nothing."""
    call = ToolPart(tool="read", status="completed", outcome="ok", output=quoted)
    history = sent((user(quoted), Message(role="assistant", parts=[call], producer=OWN)))
    for message in history[1:]:
        if message["role"] == "user":
            assert not answer(message["content"]).calls


FRAGMENTS = st.sampled_from(
    [
        *(READ_A, "<tool>", "</tool>", '{"tool_name":"read","arguments":{', '"path":"a"', "}", "}}", "{", '"', "\\"),
        *("`", "``", "```", "```\n", "\n", "\n\n", "~~~\n", " ", "> ", "text", "<", "<to", "read", "[", "]", "</think>"),
    ]
)


@given(st.lists(FRAGMENTS, max_size=9).map("".join), st.lists(st.integers(1, 9), min_size=1, max_size=4))
def test_text_cuts_change_nothing(text: str, sizes: list[int]) -> None:
    whole, pieces = _scan(text), _scan(*cut(text, sizes))
    assert whole == pieces == _scan(*text)
    raw = "".join(each if isinstance(each, str) else each.raw for each in whole)
    assert raw.replace("</tool>", "") == text.replace("</tool>", "")


def _scan(*pieces: str) -> list[Any]:
    blocks = ToolBlocks({"read"})
    found = [*(each for piece in pieces for each in blocks.feed(piece)), *blocks.flush()]
    joined: list[Any] = []
    for each in found:
        if isinstance(each, str) and joined and isinstance(joined[-1], str):
            joined[-1] += each
        else:
            joined.append(each)
    return joined


def test_bracketed_reasoning_returns_into_its_producer_text() -> None:
    dialect = XmlDialect(bracket_thinking=True)
    text = f"[I read it]\n[and then]\n\n{READ_A}"
    message = answer(*text, dialect=dialect)
    assert [part.text for part in message.of(ThinkingPart)] == ["I read it", "and then"]
    assert sent((user("hi"), answered(message)), dialect)[2]["content"] == text
    assert "[I read it]" not in sent((user("hi"), answered(message)), dialect, producer=FOREIGN)[2]["content"]
    assert "square brackets" in sent((user("hi"),), dialect)[0]["content"]
