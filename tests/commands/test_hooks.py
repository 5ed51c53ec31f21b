"""/hooks: the lines of a set of hooks."""

from __future__ import annotations

from wolo.commands.hooks import lines_of
from wolo.conversation.resources.conversation_hooks import HookSet
from wolo.extensions.hooks.definitions import Hook


def test_line_names_event_purpose_command_and_limits() -> None:
    hooks = (
        ("Stop", Hook("make check")),
        ("PreToolUse", Hook("./guard", matcher="Edit|Write", condition="Edit(*.py)", strict=True, timeout_s=7)),
    )
    assert lines_of(HookSet(source="config.toml", hooks=hooks)) == [
        "config.toml  (yours)",
        "  Stop                make check",
        "  PreToolUse          Edit|Write if Edit(*.py)  → ./guard  (strict, 7 s)",
    ]
