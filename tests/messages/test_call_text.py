"""A call as text: every argument is there, and nothing in it can hide or be obeyed."""

from __future__ import annotations

import pytest

from wolo.messages.call_arguments import arguments_line, call_line, patched_files
from wolo.messages.parts import ToolPart

HIDING = {
    "OSC": "\x1b]0;rm -rf ~\x07",
    "OSC that ends with ST": "\x1b]52;c;rm -rf ~\x1b\\",
    "OSC without an end": "\x1b]0;rm -rf ~",
    "C1 OSC": "\x9d0;rm -rf ~\x9c",
    "DCS": "\x1bPrm -rf ~\x1b\\",
    "C1 DCS": "\x90rm -rf ~\x9c",
    "APC": "\x1b_rm -rf ~\x1b\\",
    "PM": "\x1b^rm -rf ~\x1b\\",
    "SOS": "\x1bXrm -rf ~\x1b\\",
    "CSI": "\x1b[2K\rrm -rf ~",
    "a newline": "echo\nrm -rf ~",
    "backspaces": "rm -rf ~" + "\x08" * 8,
    "a bidirectional override": "\u202erm -rf ~",
}
PLACES = {
    "command": {"command": "{}"},
    "another name": {"cmd": "{}"},
    "beside the main one": {"command": "true", "workdir": "{}"},
    "a list": {"argv": ["a", "{}"]},
    "an object": {"options": {"then": "{}"}},
    "a name": {"{}": 1},
    "beside a path": {"path": "a.py", "pattern": "{}"},
}


def filled(shape: object, text: str) -> object:
    match shape:
        case dict():
            return {name.replace("{}", text): filled(value, text) for name, value in shape.items()}
        case list():
            return [filled(each, text) for each in shape]
        case str():
            return shape.replace("{}", text)
    return shape


@pytest.mark.parametrize("hidden", HIDING.values(), ids=HIDING)
@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
def test_every_argument_is_shown_whole_and_harmless(place: dict[str, object], hidden: str) -> None:
    given = filled(place, hidden)
    assert isinstance(given, dict)
    for tool in ("shell", "mcp__server__run", "write"):
        shown = call_line(ToolPart(tool=tool, input=given))
        assert "rm -rf ~" in shown, tool
        assert shown.isprintable(), tool


def test_no_character_that_hides_gets_through() -> None:
    text = "".join(chr(code) for code in (*range(0x110), 0x200B, 0x2028, 0x202E, 0xFE0F, 0xD800, 0xE0041))
    shown = arguments_line(ToolPart(tool="shell", input={"command": text}))
    assert not [each for each in shown if not each.isprintable() and each != "\xa0"]
    assert shown.encode("utf-8")


def test_main_argument_comes_first_then_others_by_name() -> None:
    assert call_line(ToolPart(tool="grep", input={"path": "src", "pattern": "x y"})) == "grep x y path=src"
    assert call_line(ToolPart(tool="read", input={"path": "a.py", "offset": 3})) == "read a.py offset=3"
    assert call_line(ToolPart(tool="mcp__a__b", input={"n": 1, "to": "x y", "all": [1]})) == 'mcp__a__b n=1 to="x y" all=[1]'
    assert call_line(ToolPart(tool="jobs", input={})) == "jobs"
    assert call_line(ToolPart(tool="shell", raw_input='{"command": "rm')) == 'shell {"command": "rm'


def test_omitted_text_is_counted() -> None:
    part = ToolPart(tool="shell", input={"command": "a" * 100})
    assert call_line(part, most_chars=10) == f"shell {'a' * 10}… (+90 characters)"
    write = ToolPart(tool="write", input={"path": "a", "content": "b" * 100})
    assert call_line(write) == f"write a content={'b' * 100}"
    assert call_line(write, most_of_change=10).startswith("write a content=")
    assert "(+90 characters)" in call_line(write, most_of_change=10)
    assert call_line(write, most_of_change=0) == "write a"


def test_the_files_of_a_patch_are_named() -> None:
    patch = "*** Begin Patch\n*** Update File: a.py\n*** Move to: b.py\n@@\n-x\n+y\n  *** Add File: c d.py \n+*** Add File: no\n"
    assert patched_files(patch) == ["a.py", "b.py", "c d.py"]
    assert call_line(ToolPart(tool="apply_patch", input={"patch": patch}), most_of_change=0) == "apply_patch a.py b.py c d.py"
