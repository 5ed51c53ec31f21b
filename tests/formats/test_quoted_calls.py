"""Every form of a written call in every quotation: one that is only quoted is text, and one that may be an example asks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from wolo.formats.chat_dialect import ChatDialect
from wolo.formats.ollama import OllamaDialect
from wolo.formats.ollama.decode import OllamaDecoder
from wolo.formats.openai_chat.decode import ChatDecoder
from wolo.formats.text_recovery.leaked_calls import LeakedCall, LeakedCalls
from wolo.formats.xml_tools.decode import ToolBlocks
from wolo.messages.deltas import Assembler, size_of
from wolo.messages.message import Message
from wolo.messages.parts import IN_FENCE

OFFERED: Mapping[str, Any] = {
    "read": {"type": "object", "properties": {"path": {"type": "string"}}},
    "write": {"type": "object", "properties": {"path": {"type": "string"}, "content": {"type": "string"}}},
}
ARGUMENTS = '{"path": "a"}'
FORMS = {
    "hermes": '<tool_call>\n{"name": "read", "arguments": {"path": "a"}}\n</tool_call>',
    "hermes, one line": '<tool_call>{"name": "read", "arguments": {"path": "a"}}</tool_call>',
    "qwen": "<tool_call>\n<function=read>\n<parameter=path>\na\n</parameter>\n</function>\n</tool_call>",
    "qwen, bare": "<function=read><parameter=path>a</parameter></function>",
    "glm": "<tool_call>read\n<arg_key>path</arg_key>\n<arg_value>a</arg_value>\n</tool_call>",
    "claude": '<function_calls>\n<invoke name="read">\n<parameter name="path">a</parameter>\n</invoke>\n</function_calls>',
    "claude, bare": '<invoke name="read"><parameter name="path">a</parameter></invoke>',
    "mistral": '[TOOL_CALLS][{"name": "read", "arguments": {"path": "a"}}]',
    "mistral, newer": f"[TOOL_CALLS]read[ARGS]{ARGUMENTS}",
    "kimi": f"<|tool_calls_section_begin|><|tool_call_begin|>functions.read:0<|tool_call_argument_begin|>{ARGUMENTS}"
    "<|tool_call_end|><|tool_calls_section_end|>",
    "harmony": f"<|channel|>commentary to=functions.read <|constrain|>json<|message|>{ARGUMENTS}<|call|>",
    "harmony, bare": f"to=functions.read code {ARGUMENTS}",
    "llama": '<|python_tag|>{"name": "read", "parameters": {"path": "a"}}<|eom_id|>',
    "object": '{"name": "read", "arguments": {"path": "a"}}',
    "object, spread": json.dumps({"name": "read", "arguments": {"path": "a"}}, indent=2),
    "object, other words": '{"tool": "read", "args": {"path": "a"}}',
}


def prefixed(prefix: str, text: str) -> str:
    return "\n".join(prefix + line for line in text.split("\n"))


TEXT = {
    "prose behind it": "{call}\n\nThat is how it looks.",
    "prose behind it in its line": "{call} is how it looks.",
    "a word behind it": "{call}\n.",
    "prose before it in its line": "It looks so: {call}",
    "prose around it": "With {call} one reads a file.",
    "inline code": "It is `{call}`",
    "inline code alone": "`{call}`",
    "inline code of two": "It is ``{call}``",
    "inline code over lines": "It is `\n{call}\n`",
    "inline code that is not closed": "It is `so\n{call}",
    "fence, prose behind it": "```\n{call}\n```\nThat is how it looks.",
    "fence between prose": "So:\n\n```json\n{call}\n```\n\nThat is how it looks.",
    "tildes between prose": "So:\n\n~~~text\n{call}\n~~~\n\nThat is how it looks.",
    "prose in the fence": "```\nWrite this:\n{call}\n```",
    "prose at the end of the fence": "```\n{call}\nand wait\n```",
    "fence in a fence": "````markdown\n```json\n{call}\n```\n````",
    "fence in a fence behind prose": "So:\n````markdown\n```json\n{call}\n```\n````\n",
    "tildes in a fence": "```\n~~~\n{call}\n~~~\n```",
    "fence in a fence that is not closed": "So:\n````\n```json\n{call}\n```\n",
    "code in a fence that is not closed": "So:\n```python\nx = 1\n\n{call}",
    "list item": "- {call}",
    "numbered item": "So:\n\n1. {call}",
    "item with a fence": "- So:\n\n      ```\n      {call}\n      ```",
    "table": "| call |\n|---|\n| {call} |",
    "heading": "# {call}",
    "comment": "# So:\n# {call}",
    "quotation marks": '"{call}"',
    "quotation marks on their own": '"""\n{call}\n"""',
    "quotation marks in a fence": '```python\nx = """\n{call}\n"""\n```',
    "behind a quoted line": "> The README says:\n{call}",
    "behind a quoted paragraph": "> The README says\nfurther\n{call}",
    "element": "<pre>\n{call}\n</pre>",
    "element that is not closed": "So:\n<pre><code>\n{call}",
    "result that is not closed": "<tool_response>\n{call}",
    "document that is not closed": "It says:\n<document>\n{call}",
    "example that is folded": "<details><summary>Example</summary>\n\n{call}",
    "comment of markup": "So:\n<!--\n{call}\n-->",
    "comment of markup that is not closed": "So:\n<!-- \n{call}",
    "example element": "<example>\n{call}\n</example>",
    "result behind it": "{call}\n<tool_response>\nfine\n</tool_response>\nIt is fine.",
    "another tool behind it": '{call}\n{"name": "no_such_tool", "arguments": {}}',
    "indented behind prose": "So:\n\n  {call}",
    "indented fence behind prose": "So:\n\n   ```\n{call}\n   ```",
    "mark of a call": "So:\n<tool_call>\nthat is\n{call}",
    "indented end of a fence": "So:\n```\n    ```\n{call}",
    "list that is not closed": "calls = [\n{call}",
}
LINES = {
    "quote": "> ",
    "quote without a blank": ">",
    "quote in a quote": "> > ",
    "quote in an item": "- > ",
    "indented": "    ",
    "indented by a tab": "\t",
    "comment": "// ",
}
ASKS = {
    "fence behind prose": "I read it.\n\n```json\n{call}\n```",
    "fence right behind prose": "I read it:\n```\n{call}\n```\n\n",
    "tildes behind prose": "I read it.\n\n~~~\n{call}\n~~~",
    "long fence": "I read it.\n\n`````tool_call something else\n{call}\n``````",
    "fence that is not closed": "I read it.\n\n```python\n{call}",
    "fence behind a fence": "```\nx = 1\n```\n\n```json\n{call}\n```",
}
RUNS = {
    "the mark of its end behind it": "I read it.\n\n{call}<|im_end|>",
    "another mark of its end behind it": "{call}\n</s>\n",
    "alone": "{call}",
    "blanks around it": "\n\n  {call}\n\n ",
    "behind prose": "I read it.\n\n{call}",
    "in the line behind prose": "I read it:\n{call}\n",
    "behind a fence": "It is so:\n```\nx = 1\n```\n{call}",
    "behind a quote": "> so it says\n\n{call}",
    "behind an element": "<pre>x</pre> and `<pre>`\n\n{call}",
    "behind a result": "<tool_response>\nx\n</tool_response>\n{call}",
    "behind words about an element": "I put a <textarea> there, and <code>.\n\n{call}",
    "nothing but a fence": "```\n{call}\n```",
    "nothing but a fence of json": "\n```json\n{call}\n```\n\n",
    "nothing but an indented fence": "  ```\n  {call}\n  ```\n",
    "nothing but tildes": "~~~ tool_call\n{call}\n~~~",
    "nothing but a fence that is not closed": "```json\n{call}\n",
}


def through_chat(text: str, size: int = 0) -> Message:
    decoder = ChatDecoder(ChatDialect(), OFFERED)
    assembler = Assembler()
    for piece in pieces(text, size):
        assembler.add(decoder.feed(json.dumps({"choices": [{"index": 0, "delta": {"content": piece}}]}).encode()))
    assembler.add(decoder.feed(b'{"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}'))
    assembler.add(decoder.close())
    return assembler.message()


def through_ollama(text: str, size: int = 0) -> Message:
    decoder = OllamaDecoder(OllamaDialect(), OFFERED)
    assembler = Assembler()
    for piece in pieces(text, size):
        assembler.add(decoder.feed(json.dumps({"message": {"content": piece}, "done": False}).encode()))
    assembler.add(decoder.feed(b'{"message": {"content": ""}, "done": true, "done_reason": "stop"}'))
    assembler.add(decoder.close())
    return assembler.message()


def pieces(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)] if size else [text]


def both_ways(text: str) -> Message:
    """The same in one piece and letter by letter, from each of the formats that look for calls."""
    message = through_chat(text)
    for other in (through_chat(text, 1), through_chat(text, 7), through_ollama(text), through_ollama(text, 3)):
        assert (other.text, [call.input for call in other.calls]) == (message.text, [call.input for call in message.calls])
        assert [call.metadata for call in other.calls] == [call.metadata for call in message.calls]
    return message


@pytest.mark.sweep(every=3)
@pytest.mark.parametrize("form", FORMS)
def test_quoted_call_is_text_to_the_letter(form: str) -> None:
    call = FORMS[form]
    quoted = {name: text.replace("{call}", call) for name, text in TEXT.items()}
    quoted |= {name: prefixed(prefix, call) for name, prefix in LINES.items()}
    quoted |= {f"{name} behind prose": f"It says:\n\n{prefixed(prefix, call)}" for name, prefix in LINES.items()}
    quoted |= {f"fence in a {name}": prefixed(prefix, f"```\n{call}\n```") for name, prefix in LINES.items()}
    for name, text in quoted.items():
        message = both_ways(text)
        assert (name, message.text, message.calls) == (name, text, ())


@pytest.mark.parametrize("form", FORMS)
def test_fence_behind_other_text_may_be_example(form: str) -> None:
    for name, template in ASKS.items():
        text = template.replace("{call}", FORMS[form])
        message = both_ways(text)
        assert (name, message.text.rstrip()) == (name, text.rstrip())  # the person reads what was written
        assert [(call.tool, call.input, call.metadata) for call in message.calls] == [("read", {"path": "a"}, {IN_FENCE: True})]
        assert message.finish_reason == "tool_calls"


@pytest.mark.parametrize("form", FORMS)
def test_lone_call_at_the_end_is_one(form: str) -> None:
    for name, template in RUNS.items():
        message = both_ways(template.replace("{call}", FORMS[form]))
        assert (name, [(call.tool, call.input, call.metadata) for call in message.calls]) == (
            name,
            [("read", {"path": "a"}, {})],
        )
        before = template.partition("{call}")[0]
        assert message.text.strip() == ("" if name.startswith("nothing but") else before.strip())


@pytest.mark.parametrize("form", FORMS)
def test_only_tools_that_are_offered_are_called(form: str) -> None:
    for template in (*ASKS.values(), *RUNS.values()):
        text = template.replace("{call}", FORMS[form].replace("read", "fetch_it"))
        message = both_ways(text)
        assert (message.text, message.calls) == (text, ())


def test_quotation_before_a_call_is_not_called() -> None:
    example, call = '{"name": "write", "arguments": {"path": "b", "content": ""}}', FORMS["hermes"]
    for text in (f"```\n{example}\n```\n\n{call}", f"{example}\nNow really:\n{call}", f"> {example}\n\n{call}"):
        assert [each.tool for each in both_ways(text).calls] == ["read"]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("said", ["", "hm"])
def test_reasoning_between_two_pieces_of_text_changes_nothing(form: str, said: str) -> None:
    for before, behind, calls in (
        ("{call}\n", "\nis how it looks.", 0),
        ("{call}", "\n", 1),
        ("It is `", "{call}`", 0),
        ("> so\n", "{call}", 0),
    ):
        decoder, assembler = ChatDecoder(ChatDialect(), OFFERED), Assembler()
        for delta in (
            {"content": before.replace("{call}", FORMS[form])},
            {"reasoning_content": said},
            {"reasoning": said},
            {"content": behind.replace("{call}", FORMS[form])},
        ):
            assembler.add(decoder.feed(json.dumps({"choices": [{"index": 0, "delta": delta}]}).encode()))
        assembler.add(decoder.feed(b'{"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}'))
        assembler.add(decoder.close())
        assert len(assembler.message().calls) == calls


def test_calls_in_several_fences_ask() -> None:
    fence = "```json\n{call}\n```\n".replace("{call}", FORMS["object"])
    assert [call.metadata for call in both_ways(fence + fence).calls] == [{IN_FENCE: True}] * 2


def test_endless_blanks_are_no_part_of_a_call() -> None:
    text = FORMS["hermes"] + "\n" * 5_000
    message = both_ways(text)
    assert (message.text, message.calls) == (text, ())


def test_blanks_without_end_are_not_held() -> None:
    for before in ("", "<think>hm</think>", FORMS["object"]):
        decoder = ChatDecoder(ChatDialect(), OFFERED)
        text = 0
        for piece in pieces(before, 7) + ["\n"] * 3_000:
            deltas = decoder.feed(json.dumps({"choices": [{"index": 0, "delta": {"content": piece}}]}).encode())
            text += size_of(deltas)
        assert text > 1_500
        assert decoder.held_chars < 1_100


BLOCK = '<tool>{"server_name": "local", "tool_name": "read", "arguments": {"path": "a"}}</tool>'


@pytest.mark.parametrize(
    "text",
    [
        *(prefixed(prefix, BLOCK) for name, prefix in LINES.items() if "comment" not in name),
        f"> It says:\n{BLOCK}",
        f"So:\n\n~~~\n{BLOCK}\n~~~",
        f"So: `{BLOCK}`",
        f"<pre>\n{BLOCK}\n</pre>",
        f"<pre><code>{BLOCK}</code></pre>",
        f"So:\n<!--\n{BLOCK}\n-->",
        f"So:\n\n    {BLOCK}\n\nand on",
    ],
)
def test_quoted_protocol_block_is_text(text: str) -> None:
    for size in (0, 1, 5):
        blocks = ToolBlocks({"read"})
        found = [each for piece in pieces(text, size) for each in blocks.feed(piece)] + [*blocks.flush()]
        assert "".join(map(str, found)) == text


@pytest.mark.parametrize(
    "before",
    [
        "I put a <textarea> there:\n",
        BLOCK.replace('"a"', '"<pre>\\n<!--"') + "\n",
        BLOCK.replace('"a"', '"> x"') + "\nThen\n",
        "> it says\n\n",
        "I read it (",
        "<pre>x</pre>\n",
    ],
)
def test_other_blocks_of_the_text_protocol_are_calls(before: str) -> None:
    for size in (0, 1, 5):
        blocks = ToolBlocks({"read"})
        found = [each for piece in pieces(before + BLOCK, size) for each in blocks.feed(piece)] + [*blocks.flush()]
        assert found[-1].tool == "read"  # type: ignore[union-attr]  # it is a call


LOOPS = [
    "\n",
    "`",
    "~",
    "<tool_call>",
    "\n{",
    "> {",
    '{"name": "',
    "</function>",
    "0",
    "```\n",
    "<pre>\n",
    FORMS["object"] + "\n",
]


@pytest.mark.parametrize(
    "begin", ["", "<tool_call>", "<function=write><parameter=content>", "```json\n", FORMS["object"], '{"name": "']
)
def test_looping_text_is_held_partly_and_arrives_whole(begin: str) -> None:
    for loop in LOOPS:
        scanner = LeakedCalls(OFFERED)
        text = begin + loop * (10_000 // len(loop))
        found = [each for piece in pieces(text, 1) for each in scanner.feed(piece)]
        assert scanner.held_chars < 4_000 or begin in ("<function=write><parameter=content>", '{"name": "') or "{" in loop
        found += scanner.flush()
        assert "".join(each.raw if isinstance(each, LeakedCall) else each for each in found) == text
