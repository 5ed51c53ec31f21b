from __future__ import annotations

import json
import sys
import typing
from collections.abc import Sequence
from types import FrameType
from typing import Any, ClassVar

import pytest
from msgspec import Struct

from wolo.errors import ToolError, UsageError
from wolo.guard.intents import Intent
from wolo.models.provider import EDIT_TOOLS
from wolo.tools.editing.apply_patch import ApplyPatchArgs
from wolo.tools.editing.edit import EditArgs
from wolo.tools.editing.matching import Replacement
from wolo.tools.editing.write import WriteArgs
from wolo.tools.read import ReadArgs
from wolo.tools.tool import CallContext, ToolServices
from wolo.tools.tool_arguments import shipped_text
from wolo.tools.tool_values import CallResult
from wolo.tools.toolbox import BUILTIN, BUILTIN_WITH_COMPLETION, SHIPPED, ShippedTool, Toolbox


def decode(name: str, arguments: dict[str, Any]) -> Struct:
    return Toolbox().decode(name, arguments)[1]


@pytest.mark.parametrize("shipped", BUILTIN_WITH_COMPLETION, ids=lambda each: each.name)
def test_shipped_tool_is_found_under_its_names(shipped: ShippedTool) -> None:
    assert shipped.load().name == shipped.name


def test_the_shipped_schemas_are_those_of_the_code() -> None:
    """When this fails: python -m wolo.tools.toolbox"""
    assert SHIPPED.read_text(encoding="utf-8") == shipped_text(tool.load() for tool in BUILTIN_WITH_COMPLETION)


def test_tools_are_offered_in_order_with_equal_bytes() -> None:
    first, second = (json.dumps([[spec.name, spec.description, spec.parameters] for spec in Toolbox().specs()]) for _ in range(2))
    assert first == second
    assert tuple(spec.name for spec in Toolbox().specs(compacted=True)) == Toolbox().names
    assert {*Toolbox().names, "apply_patch"} == {tool.name for tool in BUILTIN}


def test_one_editing_form_is_offered_both_are_understood() -> None:
    patch = "*** Begin Patch\n*** Delete File: a\n*** End Patch"
    for form, other in zip(EDIT_TOOLS, reversed(EDIT_TOOLS), strict=True):
        box = Toolbox(edit_tool=form)
        assert form in (spec.name for spec in box.specs())
        assert other not in (spec.name for spec in box.specs())
        assert box.decode("edit", {"path": "a", "old": "b", "new": "c"})[0].name == "edit"
        assert box.decode("apply_patch", {"input": patch})[1] == ApplyPatchArgs(patch)
        assert box.offer(only=["edit"]).names == (form, "expand_message")
        assert not {"edit", "apply_patch"} & {*box.offer(hide=["edit"]).names}
        with pytest.raises(ToolError, match="There is no tool"):
            box.offer(hide=["apply_patch"]).decode("edit", {"path": "a", "old": "b", "new": "c"})


def test_way_back_is_offered_once_after_an_omission() -> None:
    """Until then it would only lengthen every request."""
    before, after = (tuple(spec.name for spec in Toolbox().specs(compacted=compacted)) for compacted in (False, True))
    assert (*before, "expand_message") == after


def test_tool_text_for_the_model_is_short() -> None:
    for spec in Toolbox().specs():
        size = len(json.dumps({"description": spec.description, "parameters": spec.parameters}, ensure_ascii=False).encode())
        assert size <= 1000, spec.name


def test_schemas_hold_no_references_titles_or_defaults() -> None:
    text = json.dumps([spec.parameters for spec in Toolbox().specs()])
    assert not [word for word in ('"$ref"', '"$defs"', '"title"', '"default"', '"anyOf"') if word in text]


@pytest.mark.parametrize(
    ("name", "arguments", "args"),
    [
        ("read", {"path": "a"}, ReadArgs(path="a")),
        ("read", {"file_path": "a", "offset": "3", "limit": 2.0}, ReadArgs(path="a", offset=3, limit=2)),
        ("read", {"filename": "a", "offset": None, "description": "look at a"}, ReadArgs(path="a")),
        ("Read", {"path": "a", "encoding": None}, ReadArgs(path="a")),
        ("write", {"file_path": "a", "contents": "{}"}, WriteArgs(path="a", content="{}")),
        ("write", {"path": "a", "file_path": "a", "content": "[1]"}, WriteArgs(path="a", content="[1]")),
        (
            "edit",
            {"file_path": "a", "old_string": "x", "new_string": "y", "replace_all": "true"},
            EditArgs(path="a", old="x", new="y", replace_all=True),
        ),
        ("edit", {"path": "a", "edits": [{"old_str": "x", "new_str": "y"}]}, EditArgs(path="a", edits=(Replacement("x", "y"),))),
        (
            "edit",
            {"path": "a", "edits": '[{"oldText": "x", "newText": "y"}]'},
            EditArgs(path="a", edits=(Replacement("x", "y"),)),
        ),
    ],
)
def test_arguments_are_taken_in_model_spellings(name: str, arguments: dict[str, Any], args: Struct) -> None:
    assert decode(name, arguments) == args


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("read", {}, "read: `path` is missing. The arguments are: path, offset (optional), limit (optional), pages (optional)."),
        ("read", {"path": None}, "read: `path` is missing."),
        ("read", {"path": 3}, "read: `path` must be text, not a whole number."),
        ("read", {"path": "a", "offset": "three"}, "read: `offset` must be a whole number, not text."),
        ("read", {"path": "a", "colour": "red"}, "read: there is no argument `colour`."),
        ("read", {"path": "a", "file_path": "b"}, "read: `path` is given twice, with different values."),
        ("write", {"path": "a", "content": {"a": 1}}, "write: `content` must be text, not an object."),
        ("edit", {"path": "a", "edits": [{"old": "x"}]}, "edit: `edits[0].new` is missing."),
        ("edit", {"path": "a", "edits": "[not json"}, "edit: `edits` must be a list, not text."),
        ("edit", {"path": "a", "edits": {"old": "x", "new": "y"}}, "edit: `edits` must be a list, not an object."),
        ("teleport", {"to": "x"}, "There is no tool `teleport`. The tools are: read, write, edit"),
        ("", {}, "There is no tool ``."),
    ],
)
def test_faults_are_reported_in_a_sentence(name: str, arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(ToolError) as error:
        decode(name, arguments)
    assert error.value.message.startswith(said)


def test_a_selection_of_tools_can_be_offered() -> None:
    box = Toolbox()
    assert box.offer(only=["edit", "read"]).names == ("read", "edit", "expand_message")
    assert [spec.name for spec in box.offer(only=["edit", "read"]).specs()] == ["read", "edit"]
    assert box.offer(only=[]).names == box.offer(only=["read"], hide=["read", "expand_message"]).names == ()
    assert "shell" not in box.offer(hide=["shell"]).names
    assert box.offer().names == box.names
    assert box.offer(only=[]).names == ()
    with pytest.raises(UsageError, match="There is no tool `rm`"):
        box.offer(hide=["rm"])
    with pytest.raises(ToolError):
        box.offer(only=["read"]).decode("write", {"path": "a", "content": "b"})


class Wish:
    """Wishes for something.

    In vain.
    """

    class Args(Struct, frozen=True):
        what: str
        hard: bool = False

    name: ClassVar[str] = "wish"
    aliases: ClassVar[dict[str, str]] = {}
    reads_only: ClassVar[bool] = True

    def intents(self, args: Args, services: ToolServices) -> Sequence[Intent]:
        return ()

    async def run(self, args: Args, call: CallContext) -> CallResult:
        return CallResult(args.what)


def test_foreign_tool_is_described_from_its_code() -> None:
    (spec,) = Toolbox((Wish(),)).specs()
    assert spec.description == "Wishes for something. In vain."
    assert spec.parameters == {
        "type": "object",
        "properties": {"what": {"type": "string"}, "hard": {"type": "boolean"}},
        "required": ["what"],
    }


def test_later_calls_evaluate_no_types() -> None:
    """Annotations of the arguments and the members of protocols are looked up once."""
    box = Toolbox()
    box.decode("read", box.unwrap("read", {"path": "a"}))
    evaluated: list[str] = []

    def on_event(frame: FrameType, event: str, arg: object) -> None:
        if event == "call" and frame.f_code.co_filename == typing.__file__:
            evaluated.append(frame.f_code.co_name)

    sys.setprofile(on_event)
    try:
        box.decode("read", box.unwrap("read", {"path": "b", "limit": 1}))
    finally:
        sys.setprofile(None)
    assert set(evaluated) <= {"get_args", "__eq__"}
