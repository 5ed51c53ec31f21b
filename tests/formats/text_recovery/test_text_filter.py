"""Text with reasoning and calls in it: the same however it is cut, and nothing of it is lost."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from tests.formats.streams import cut
from wolo.formats.text_recovery.leaked_calls import LeakedCall
from wolo.formats.text_recovery.text_filter import CLOSERS, TAGS, TextFilter
from wolo.messages.deltas import CallDelta, Delta, TextDelta, ThinkingDelta

OFFERED = {"read": {"type": "object", "properties": {"path": {"type": "string"}}}}
CALL = '{"name": "read", "arguments": {"path": "a"}}'
TAGGED = "<tool_call>\n<function=read>\n<parameter=path>\na\n</parameter>\n</function>\n</tool_call>"
PIECES = ["word ", "\n", " ", "`", "```json\n", "```", CALL, f"<tool_call>{CALL}</tool_call>", TAGGED, "{", "}", "<", "[", "◁"]

TALK = ["word ", "\n", " ", "`", "<", "[", "◁", "plain words", "字"]
texts = st.one_of(
    # Not mixed with tags that close what was never opened: those take calls back, and cannot give back what closed the calls.
    st.lists(st.sampled_from([*PIECES, *TAGS, "plain words", "字"]), max_size=8).map("".join),
    st.lists(st.sampled_from([*TALK, *TAGS, *CLOSERS]), max_size=8).map("".join),
)


def heard(pieces: Sequence[str], *, think_tags: bool = True, leaked_calls: bool = True) -> list[str]:
    spoken = TextFilter(OFFERED, think_tags=think_tags, leaked_calls=leaked_calls)
    deltas: list[Delta] = []
    for piece in pieces:
        spoken.feed(piece, deltas)
    spoken.finish(deltas, _called)
    return joined(deltas)


def joined(deltas: Sequence[Delta]) -> list[str]:
    """`text:…`, `thinking:…` and `call:…`, neighbours of one kind as one."""
    found: list[str] = []
    for delta in deltas:
        match delta:
            case TextDelta(text):
                kind = "text:"
            case ThinkingDelta(text, takes_text=takes_text):
                kind = "thinking:"
                if takes_text:
                    found = [each.replace("text:", "thinking:", 1) if each.startswith("text:") else each for each in found]
            case CallDelta(tool=tool, arguments=arguments):
                kind, text = "call:", f"{tool} {arguments}"
            case _:
                raise AssertionError(delta)
        if found and found[-1].startswith(kind) and kind != "call:":
            found[-1] += text
        elif text:
            found.append(kind + text)
    return found


def _called(leaked: LeakedCall) -> Sequence[Delta]:
    return (CallDelta(0, "", leaked.tool, leaked.arguments),)


def test_reasoning_text_and_calls_are_told_apart() -> None:
    pieces = ["<think>hm</think>", "I read.\n", CALL]
    assert heard(pieces) == ["thinking:hm", "text:I read.\n", 'call:read {"path": "a"}']
    assert heard(pieces, think_tags=False, leaked_calls=False) == ["text:" + "".join(pieces)]


@given(texts, st.lists(st.integers(1, 9), min_size=1, max_size=4), st.booleans(), st.booleans())
def test_cuts_do_not_matter(text: str, sizes: list[int], think_tags: bool, leaked_calls: bool) -> None:
    expected = heard([text] if text else [], think_tags=think_tags, leaked_calls=leaked_calls)
    assert heard(cut(text, sizes), think_tags=think_tags, leaked_calls=leaked_calls) == expected


def test_behind_a_real_call_all_is_text() -> None:
    spoken = TextFilter(OFFERED, think_tags=True, leaked_calls=True)
    deltas: list[Delta] = []
    spoken.feed("<thi", deltas)
    spoken.stop(deltas)
    spoken.feed(f"<think>{CALL}", deltas)
    spoken.finish(deltas, _called)
    assert joined(deltas) == [f"text:<thi<think>{CALL}"]
