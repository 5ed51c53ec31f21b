"""A command that the walls stopped: the result says so, and a person may let it run again outside of them."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from wolo.agent.cancellation import Stopped
from wolo.agent.events import ApprovalGiven, Walls
from wolo.guard.intents import RunIntent
from wolo.guard.sandbox.denial_detection import ADVICE, PREFIX, wanted_shared, what_was_denied
from wolo.guard.sandbox_contract import Restored
from wolo.tools.tool import Output, Result, ToolContext

RAN_OUTSIDE = "[inside the sandbox it failed; the user let it run again outside]\n"
STAYED_INSIDE = "The user did not want it to run outside the sandbox."
QUESTION = "{denied} Run it once more outside the sandbox?"
RESTORED = "inside the sandbox it changed protected files, which run code or steer agents: {names}. They were restored."
LOST = " Not all of that was possible: look at them before you use them."
KEEP = "{denied} Keep its version of them?"
ACCEPTED = "[the user kept what it changed in protected files: {names}]"
STAYED_RESTORED = "The user did not want to keep its version."
_MOST_NAMED = 6
_SHOWS_TEXTS = re.compile(r"\s*(?:\S*/)?(?:[efr]?grep|rg|ag|cat|head|tail|less|sed|awk|jq|diff|git|find|tree)\b")
_MOST_CHARS = 2000


class Outside:
    """Remembers what a person said of exactly the same call: it is not asked for twice."""

    def __init__(self) -> None:
        self._said: dict[str, bool] = {}

    def is_allowed(self, call: str) -> bool:
        return self._said.get(call, False)

    async def or_outside(
        self,
        call: str,
        result: Result,
        context: ToolContext,
        *,
        ask: Callable[[str, Walls], Awaitable[ApprovalGiven]] | None,
        run: Callable[[ToolContext], Awaitable[Result]],
    ) -> Result:
        """What a call comes to that ran inside the walls. `call` is its fingerprint; without `ask` nobody can be asked."""
        restored = context.walls.take_restored() if context.confined and context.walls is not None else None
        if restored is not None:
            return await _or_accepted(result, restored, context, ask)
        denied = _denied(result, context)
        if not denied:
            return result
        is_offered = result.is_error or wanted_shared(result.text[-_MOST_CHARS:])
        if not is_offered or ask is None or call in self._said:
            return _with_line(result, denied)
        try:
            given = await ask(QUESTION.format(denied=denied.replace(ADVICE, "")), "again")  # also where it ended well
            if given.scope != "once" or not given.allowed:
                self._said[call] = given.allowed
            if not given.allowed:
                return _with_line(result, denied, *filter(None, (STAYED_INSIDE, given.reason)))
            free = await run(_where_it_began(context))
        except Stopped:
            return _with_line(result, denied)
        changed = tuple(dict.fromkeys((*result.files_changed, *free.files_changed)))
        return dataclasses.replace(free, text=RAN_OUTSIDE + free.text, files_changed=changed)


async def _or_accepted(
    result: Result, restored: Restored, context: ToolContext, ask: Callable[[str, Walls], Awaitable[ApprovalGiven]] | None
) -> Result:
    """The command has changed protected files, which are as they were before; the user may want its version."""
    names = _names(restored.paths, context)
    denied = f"{PREFIX} {RESTORED.format(names=names)}{LOST if restored.lost else ''}"
    if ask is None:
        return _with_line(result, denied + ADVICE)
    try:
        given = await ask(KEEP.format(denied=denied), "restored")
        if not given.allowed:
            return _with_line(result, denied, *filter(None, (STAYED_RESTORED, given.reason)))
        restored.accept()
    except Stopped:
        return _with_line(result, denied)
    except OSError as error:
        return _with_line(result, f"{denied} The user wanted its version, but it cannot be moved back: {error.strerror}.")
    return _with_line(result, ACCEPTED.format(names=names))


def _names(paths: Sequence[str], context: ToolContext) -> str:
    """A name is data: a line break in it must not begin a line of its own."""
    named = [context.workspace.relative(Path(path)) for path in paths[:_MOST_NAMED]]
    shown = [name if name.isprintable() else name.encode("unicode_escape").decode() for name in named]
    more = len(paths) - len(named)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def why_it_never_ran(result: Result, context: ToolContext) -> str:
    """The walls' own words where they could not be put up, and nobody let the call run without them; empty otherwise."""
    never = context.confined and result.is_error and result.outcome is None and result.view is None
    return result.text.splitlines()[0] if never and result.text.startswith(PREFIX) else ""


def _denied(result: Result, context: ToolContext) -> str:
    if not context.confined or result.outcome is not None:
        return ""
    if not result.is_error:
        return _perhaps_denied(result, context)
    return why_it_never_ran(result, context) or what_was_denied(result.text, _roots(context), _hides(context))


def _perhaps_denied(result: Result, context: ToolContext) -> str:
    """`make || true` ends well whatever happened inside; of a program that shows texts these are no complaints."""
    if context.only_reads or not isinstance(result.view, Output) or _SHOWS_TEXTS.match(result.view.command):
        return ""
    said = what_was_denied(result.text[-_MOST_CHARS:], _roots(context), _hides(context))
    return f"{said} The command itself ended well." if said else ""


def _hides(context: ToolContext) -> Callable[[str], bool]:
    """For paths as a command prints them."""
    walls, cwd = context.walls, context.shell.cwd
    return lambda path: walls is not None and walls.hides(str(Path(cwd, Path(path).expanduser())))


def _roots(context: ToolContext) -> list[str]:
    return [str(root) for root in (context.workspace.root, *context.workspace.extra)]


def _where_it_began(context: ToolContext) -> ToolContext:
    """Free of walls, and in the directory that a `cd` of the failed attempt may have left."""
    began = [intent.cwd for intent in context.judged or () if isinstance(intent, RunIntent)]
    if began:
        context.shell.cwd = began[0]
    return dataclasses.replace(context, confined=False)


def _with_line(result: Result, denied: str, *more: str) -> Result:
    text = result.text.rstrip("\n")
    lines = [text, *more] if denied in text else [text, denied, *more]
    return dataclasses.replace(result, text="\n".join(lines) + "\n")
