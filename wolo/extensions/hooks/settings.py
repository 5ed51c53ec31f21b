"""Hooks as a person writes them into the settings: at which event, for which tools, which command."""

from __future__ import annotations

import re
import warnings
from typing import Annotated

from msgspec import Meta, Struct, field

TIMEOUT_S = 60.0
ALL_TOOLS = ("", "*")


class Hook(Struct, frozen=True, forbid_unknown_fields=True):
    """A command that is told of an event as JSON on its stdin, and answers by its exit status or as JSON on its stdout."""

    command: Annotated[str, Meta(min_length=1)]
    """Read by a shell, in the directory that is worked in."""
    matcher: str = ""
    """A list of names of tools (`Edit|Write`) or a regular expression that may match anywhere in one; empty or `*`: every one."""
    condition: str = field(default="", name="if")
    """About calls: a rule such as `Bash(git *)` that narrows which of them run it."""
    timeout_s: Annotated[float, Meta(gt=0)] = TIMEOUT_S
    """After that it is ended, with all it has started, and has failed."""
    strict: bool = False
    """A failure of the hook is a no."""


class Settings(Struct, frozen=True, forbid_unknown_fields=True):
    """By event, under the names that other agents have made known."""

    SessionStart: tuple[Hook, ...] = ()
    """Before the first prompt of a conversation."""
    SessionEnd: tuple[Hook, ...] = ()
    """When it is closed."""
    UserPromptSubmit: tuple[Hook, ...] = ()
    """Before a prompt is sent: may keep it back."""
    PreToolUse: tuple[Hook, ...] = ()
    """Before a call: may refuse it, have a person asked, or change its arguments."""
    PermissionRequest: tuple[Hook, ...] = ()
    """Before a person is asked about a call: may answer instead."""
    PostToolUse: tuple[Hook, ...] = ()
    """After a call that went well."""
    PostToolUseFailure: tuple[Hook, ...] = ()
    """After a call that ran and failed."""
    Stop: tuple[Hook, ...] = ()
    """When the model says it is done: may send it back."""
    SubagentStart: tuple[Hook, ...] = ()
    """Before a subagent begins."""
    SubagentStop: tuple[Hook, ...] = ()
    """When a subagent is done."""
    PreCompact: tuple[Hook, ...] = ()
    """Before the conversation is summed up."""
    PostCompact: tuple[Hook, ...] = ()
    """After room was made in the window."""
    Notification: tuple[Hook, ...] = ()
    """When something waits for the person."""


EVENTS: tuple[str, ...] = Settings.__struct_fields__
ABOUT_TOOLS = frozenset(("PreToolUse", "PermissionRequest", "PostToolUse", "PostToolUseFailure"))
"""At the other events a matcher is held against what the event is about, where it is about something."""


def pattern(matcher: str) -> re.Pattern[str]:
    """Raises what `re.compile` does. What that has against a form which means something is nothing for a person's screen."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return re.compile(matcher, re.IGNORECASE)


def complaint(matcher: str) -> str:
    """What is wrong with it; empty when nothing is."""
    try:
        if matcher not in ALL_TOOLS:
            pattern(matcher)
    except (re.error, RecursionError, OverflowError) as error:
        return f'the matcher "{matcher}" is no regular expression: {error}'
    return ""
