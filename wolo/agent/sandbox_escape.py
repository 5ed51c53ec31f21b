"""Reports what the sandbox denied to a command, and offers to run it again outside."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from wolo.agent.approvals import RunningCall
from wolo.agent.cancellation import Cancelled
from wolo.guard.denial_detection import ADVICE, PREFIX, refuses_shared, what_was_denied
from wolo.guard.intents import FetchIntent, RunIntent
from wolo.guard.precedence import Grants
from wolo.guard.sandbox_contract import Restored
from wolo.tools.shell import CONNECTIONS
from wolo.tools.tool import CallContext
from wolo.tools.tool_values import CallResult, Output

RAN_OUTSIDE = "[it failed inside the sandbox; the user allowed it to run again outside]\n"
STAYED_INSIDE = "The user did not allow it to run outside the sandbox."
QUESTION = "{denied} Run it once more outside the sandbox?"
RESTORED = "inside the sandbox it changed protected files, which run code or steer agents: {names}. They were restored."
LOST = (
    "inside the sandbox it changed protected files, which run code or steer agents, and these are not what they were: {names}. "
    "Check them before you use them."
)
HOST = "It wants to connect to {host}, which sandbox.allowed_domains does not have."
KEEP = "{denied} Keep its version of them?"
ACCEPTED = "[the user kept what it changed in protected files: {names}]"
STAYED_RESTORED = "The user did not want to keep its version."
_MOST_NAMED = 6
_SHOWS_TEXTS = r"\s*(?:\S*/)?(?:[efr]?grep|rg|ag|cat|head|tail|less|sed|awk|jq|diff|git|find|tree)\b"
_MOST_CHARS = 2000


async def ask_host(running: RunningCall, grants: Grants, host: str, may_ask: bool) -> bool:
    """Whether the user lets commands connect to the host; without `may_ask` only an earlier answer for the session counts."""
    key = f"connect {host}"
    if grants.allows(key) or grants.refusal(key) is not None or not may_ask:
        return grants.allows(key)
    try:
        approval = await running.ask(HOST.format(host=host), "host", FetchIntent(f"https://{host}/"))
    except Cancelled:
        return False
    if (approval.scope != "once" or not approval.allowed) and not approval.is_dismissed:
        grants.remember(key, allowed=approval.allowed)
    return approval.allowed


class SandboxEscape:
    """Remembers the user's answer for exactly the same call: a yes for the session, a no until the next prompt."""

    def __init__(self, grants: Grants) -> None:
        self._grants = grants

    def is_allowed(self, key: str) -> bool:
        return self._grants.allows(_outside(key))

    async def retry_outside(
        self, key: str, result: CallResult, call: CallContext, running: RunningCall, *, may_ask: bool
    ) -> CallResult:
        """Returns the final result of a sandboxed call. `key` is its fingerprint."""
        restored = (
            call.services.sandbox.walls.take_restored() if call.confined and call.services.sandbox.walls is not None else None
        )
        if restored is not None:
            return await _offer_changes(result, restored, call, running if may_ask else None)
        denied = ""
        if call.confined and result.outcome is None:
            denied = _find_denial(result, call)
        if not denied:
            return result
        is_offered = result.is_error or refuses_shared(result.text[-_MOST_CHARS:])
        if not is_offered or not may_ask or self.is_allowed(key) or self._grants.refusal(_outside(key)) is not None:
            return _with_line(result, denied)
        try:
            approval = await running.ask(
                QUESTION.format(denied=denied.replace(ADVICE, "")), "again"
            )  # the command may have succeeded
            if (approval.scope != "once" or not approval.allowed) and not approval.is_dismissed:
                self._grants.remember(_outside(key), allowed=approval.allowed)
            if not approval.allowed:
                return _with_line(result, denied, *filter(None, (STAYED_INSIDE, approval.reason)))
            for intent in call.judged or () if result.view is not None else ():
                if isinstance(intent, RunIntent):  # back to the directory before the failed attempt
                    call.services.shell.cwd = intent.cwd
                    break
            free = await running.run(replace(call, confined=False))
        except Cancelled:
            return _with_line(result, denied)
        changed = tuple(dict.fromkeys((*result.files_changed, *free.files_changed)))
        return replace(free, text=RAN_OUTSIDE + free.text, files_changed=changed)

    @staticmethod
    def why_it_never_ran(result: CallResult, call: CallContext) -> str:
        """Returns the sandbox's error when the command could not start inside it, otherwise an empty string."""
        never = call.confined and result.is_error and result.outcome is None and result.view is None
        return result.text.splitlines()[0] if never and result.text.startswith(PREFIX) else ""


def _outside(key: str) -> str:
    """The call outside the sandbox is another one than the call."""
    return f"outside {key}"


async def _offer_changes(result: CallResult, restored: Restored, call: CallContext, running: RunningCall | None) -> CallResult:
    """Offers the command's version of protected files, which the sandbox has restored."""
    names = _names(restored.paths, call)
    said = [LOST.format(names=_names(restored.lost, call))] if restored.lost else []
    said += [RESTORED.format(names=names)] if restored.paths else []
    denied = f"{PREFIX} {' '.join(said)}"
    if running is None or not restored.paths:
        return _with_line(result, denied + ADVICE)
    try:
        told = RESTORED.format(names=_names(restored.paths, call, most=len(restored.paths)))
        given = await running.ask(KEEP.format(denied=f"{PREFIX} {told}{LOST if restored.lost else ''}"), "restored")
        if not given.allowed:
            return _with_line(result, denied, *filter(None, (STAYED_RESTORED, given.reason)))
        restored.accept()
    except Cancelled:
        return _with_line(result, denied)
    except OSError as error:
        return _with_line(result, f"{denied} The user wanted its version, but it cannot be moved back: {error.strerror}.")
    return _with_line(result, ACCEPTED.format(names=names))


def _names(paths: Sequence[str], call: CallContext, *, most: int = _MOST_NAMED) -> str:
    """Escapes names: a line break in a file name must not start a new line."""
    named = [call.services.workspace.relative(Path(path)) for path in paths[:most]]
    shown = [name if name.isprintable() else name.encode("unicode_escape").decode() for name in named]
    more = len(paths) - len(named)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def _find_denial(result: CallResult, call: CallContext) -> str:
    """Reads what the sandbox denied from the output, also of a command that succeeded, such as `make || true`. Output of programs
    that display files is ignored."""
    workspace, walls, cwd = call.services.workspace, call.services.sandbox.walls, call.services.shell.cwd
    roots = [str(root) for root in (workspace.root, *workspace.extra)]
    has_connected = CONNECTIONS in result.metadata  # the proxy has said what failed, and the user has been asked

    def is_hidden(path: str) -> bool:  # as a command prints it
        return walls is not None and walls.hides(str(Path(cwd, Path(path).expanduser())))

    if result.is_error:
        return SandboxEscape.why_it_never_ran(result, call) or what_was_denied(
            result.text, roots, is_hidden, of_network=not has_connected
        )
    if call.only_reads or not isinstance(result.view, Output) or re.match(_SHOWS_TEXTS, result.view.command):
        return ""
    denied = what_was_denied(result.text[-_MOST_CHARS:], roots, is_hidden, of_network=not has_connected)
    return f"{denied} The command itself succeeded." if denied else ""


def _with_line(result: CallResult, denied: str, *more: str) -> CallResult:
    text = result.text.rstrip("\n")
    lines = [text, *more] if denied in text else [text, denied, *more]
    return replace(result, text="\n".join(lines) + "\n")
