"""Differences that count when two conversations are compared, and those that do not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wolo.messages.comparison import around_difference, comparable_text, difference, first_different, without_changing_values
from wolo.messages.message import Message, user
from wolo.messages.parts import ImagePart, TextPart, ToolPart


def same(one: Message, other: Message) -> bool:
    return comparable_text(one, without_changing_values) == comparable_text(other, without_changing_values)


@pytest.mark.parametrize(
    ("then", "now"),
    [
        ("3 passed in 0.03s", "3 passed in 1.20s"),
        ("took 12 ms", "took 900 ms"),
        ("real 0m0.012s", "real 0m1.500s"),
        ("2026-11-21T16:03:56Z started", "2027-01-02T09:00:00Z started"),
        ("Sat Nov 21 16:03:56 UTC 2026", "Sun Dec  6 01:02:03 CET 2026"),
        ("-rw-r--r-- 1 me me 5 Nov 21 16:03 a.txt", "-rw-r--r-- 1 me me 5 Jan  2  2027 a.txt"),
        ("drwx------ 3 me me 4096 Nov 21 16:03 ..", "drwxr-xr-x 9 me me 60 Nov 22 16:03 .."),
        ("wrote /tmp/tmp.AbC123xyz/a", "wrote /tmp/tmp.Zz90999kk/a"),
        ("<object at 0x7f2006112410>", "<object at 0x7f0000000010>"),
        ("[main 1a2b3c4d] fix", "[main ffffff01] fix"),
        ("started, pid 4711", "started, pid 12"),
        ("… in /data/blobs/0123456789abcdef0123456789abcdef.txt", "… in /other/outputs/ffff456789abcdef0123456789abcdef.txt"),
    ],
)
def test_run_specific_values_do_not_count(then: str, now: str) -> None:
    assert without_changing_values(then) == without_changing_values(now)


@pytest.mark.parametrize(
    ("then", "now"),
    [
        ("2 passed", "3 passed"),
        ("exit 1", "exit 2"),
        ("line 12", "line 13"),
        ("-rw-r--r-- 1 me me 5 Nov 21 16:03 a.txt", "-rw-r--r-- 1 me me 6 Nov 21 16:03 a.txt"),
        ("version 1.2.3", "version 1.2.4"),
        ("/home/me/a.txt", "/home/me/b.txt"),
    ],
)
def test_everything_else_does(then: str, now: str) -> None:
    assert without_changing_values(then) != without_changing_values(now)


@given(st.text())
def test_a_steady_text_stays_as_it_is(text: str) -> None:
    assert without_changing_values(without_changing_values(text)) == without_changing_values(text)


def test_results_count_but_ids_and_times_do_not() -> None:
    call = ToolPart(tool="read", input={"path": "a"}, status="completed", outcome="ok", output="1→a")
    one = Message(role="assistant", parts=(TextPart(text="look"), call), timestamp=1.0)
    assert same(one, Message(role="assistant", parts=(TextPart(text="look"), ToolPart(**_fields(call))), timestamp=2.0))
    assert not same(one, Message(role="assistant", parts=(TextPart(text="look"), ToolPart(**_fields(call, output="1→b")))))
    assert not same(one, Message(role="assistant", parts=(TextPart(text="look"),)))
    assert not same(
        Message(role="user", parts=(ImagePart(media_type="image/png", data=b"1"),)),
        Message(role="user", parts=(ImagePart(media_type="image/png", data=b"2"),)),
    )


def test_stopped_call_is_compared_by_its_content() -> None:
    then = ToolPart(id="call_1", tool="shell", input={"command": "sleep 9"}, outcome="interrupted", output="half")
    now = ToolPart(id="call_1", tool="shell", input={"command": "sleep 9"}, outcome="ok", output="whole")
    messages = [Message(role="assistant", parts=(part,)) for part in (then, now)]
    assert comparable_text(messages[0], without_changing_values, ("call_1",)) == comparable_text(
        messages[1], without_changing_values, ("call_1",)
    )


def test_first_difference_may_lie_behind_the_end() -> None:
    said = [user("a"), user("b")]
    assert first_different(said, [user("a"), user("b")], same) is None
    assert first_different(said, [user("a"), user("c")], same) == 1
    assert first_different(said, [*said, user("c")], same) == 2


def test_long_texts_show_the_place_of_difference() -> None:
    begin = "".join(f"line {number}\n" for number in range(1_000))
    expected, got = around_difference(f"{begin}one\n", f"{begin}two\n")
    assert len(expected) < 1_500
    assert expected.endswith("one\n")
    assert difference(expected, got).splitlines()[-2:] == ["-one", "+two"]


def _fields(part: ToolPart, **other: str) -> dict[str, object]:
    kept = {name: getattr(part, name) for name in ("tool", "input", "status", "outcome", "output")}
    return {**kept, **other}
