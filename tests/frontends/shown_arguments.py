"""Calls of any tool with any arguments, as approvals of them are asked for, and what a person can read of one."""

from __future__ import annotations

import re
from typing import Any

from hypothesis import strategies as st

from tests.tools.harness import ToolHarness
from wolo.agent.events import ApprovalAsked, ShownArgument
from wolo.errors import ToolError
from wolo.guard.intents import CallIntent
from wolo.messages.parts import ToolPart
from wolo.tools.editing.drawn_arguments import arguments_in_view
from wolo.tools.tool import preview
from wolo.tools.tool_values import Diff

HIDDEN = "a \n\t\r\x00\x1b[31m\x7f\x9b\u00a0\u00ad\u200b\u200d\u202e\u2066\u2028\u2029\u3000\ufeff\ufe0f⟨⟩\\|\U000e0041"
TEXTS = st.one_of(
    st.text(st.sampled_from(HIDDEN), max_size=30),
    st.text(max_size=40),
    st.sampled_from(
        ["", "x" * 5_000, "line\n" * 40, "\ud800 lone", "true", "rm -rf ~", "y: no\n  | z: no\n    x: no", "x" * 100_000]
    ),
)
VALUES = st.recursive(
    st.one_of(TEXTS, st.integers(), st.booleans(), st.none()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=5,
)
KNOWN = st.sampled_from(
    ["path", "old", "new", "content", "edits", "patch", "command", "url", "prompt", "questions", "to", "name"]
)
TOOLS = st.sampled_from(
    ["mcp__files__edit", "mcp__files__write", "deploy", "write_file", "task", "jobs", "shell", "edit", "write"]
)
"""`edit`, `write` and `shell` may be a program's own tools where the built-in ones are not offered."""
FOREIGN_CALLS = st.builds(
    lambda tool, given: foreign_call(tool, given), TOOLS, st.dictionaries(st.one_of(KNOWN, TEXTS), VALUES, max_size=5)
)
CHANGES = st.one_of(
    st.fixed_dictionaries({"content": TEXTS}, optional={"description": TEXTS}),
    st.fixed_dictionaries({"old": st.just("b\nc"), "new": TEXTS}, optional={"replace_all": st.booleans(), "purpose": TEXTS}),
    st.fixed_dictionaries(
        {"edits": st.lists(st.fixed_dictionaries({"old": st.just("b"), "new": TEXTS}), min_size=1, max_size=1)}
    ),
    st.fixed_dictionaries({"old_string": st.just("long"), "new_string": TEXTS}),
)
NEEDS_APPROVAL = "It needs an approval."


def foreign_call(tool: str, given: dict[str, Any]) -> ApprovalAsked:
    part = ToolPart(tool=tool, input=given)
    return ApprovalAsked(id="ask", part=part, intents=(CallIntent(f"tool:{tool}"),), reason=NEEDS_APPROVAL, rule="")


def change(harness: ToolHarness, given: dict[str, Any]) -> ApprovalAsked | None:
    """A call of a built-in tool as the agent asks about it; None: the tool refuses it."""
    harness.put("a.txt", "a\nb\nc\n" + "long " * 400 + "\n")
    name = "write" if "content" in given else "edit"
    given = {"path": "new.txt" if name == "write" else "a.txt", **given}
    try:
        tool, args = harness.toolbox.decode(name, given)
        intents = tuple(tool.intents(args, harness.services))
    except ToolError:
        return None
    view = preview(tool, args, harness.services)
    shown = tuple(arguments_in_view(given, args, view))
    part = ToolPart(tool=name, input=given)
    return ApprovalAsked(id="ask", part=part, intents=intents, view=view, reason=NEEDS_APPROVAL, rule="", in_view=shown)


def read(shown: str) -> str:
    """The text that a person reads out of its escaped form."""
    return re.sub("⟨U\\+([0-9A-F]+)⟩", lambda found: chr(int(found[1], 16)), shown.replace("\n  | ", "\n"))


def is_drawn(argument: ShownArgument, drawing: str, asked: ApprovalAsked) -> bool:
    """The lines of a diff hold each line of the argument; `drawing` is escaped but for tabs."""
    assert isinstance(asked.view, Diff)
    value = next(value for name, value in asked.part.input.items() if name == argument.name)
    lines = {read(line)[1:] for line in drawing.split("\n")}
    texts = [each["new"] for each in value] if isinstance(value, list) else [value]
    return all(any(line in each for each in lines) for text in texts for line in text.split("\n"))
