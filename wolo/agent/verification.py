"""Runs the user's check before the first change and after the last one of a turn, and reports new failures to the model."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, to_builtins

from wolo.agent import tool_calls, tool_execution, turn_policy
from wolo.agent.cancellation import Cancellation, Cancelled
from wolo.agent.events import Check, ErrorInfo, Noticed, Verification, Verified, VerifyStarted
from wolo.messages.message import Message, nudge

UNVERIFIED = "unverified"
CHECKS = "checks"
"""Metadata key of the check results, in the message that reports new failures."""
FEEDBACK = (
    "The check `{command}` was run after your work. It finds failures that were not there before:\n{new}\n\n"
    "The end of its output:\n{output}\n\nFix them, then give your final answer again."
)
NOT_RUN = "`{command}` cannot be run here, so nothing is verified."
MAX_LISTED = 40
_CANNOT_RUN = (126, 127)
"""Exit codes of a shell that cannot run the command."""
_SHOWN_CHARS = 6000


class VerificationSettings(Struct, frozen=True, forbid_unknown_fields=True):
    command: str = ""
    """Run before the first change and after the last one of every turn; empty: no check."""
    rounds: Annotated[int, Meta(ge=0)] = 3
    """Maximum number of times the model may fix its failures."""
    timeout_s: Annotated[float, Meta(gt=0)] = 600.0


class Verify(Struct, frozen=True, kw_only=True):
    """The check, and how often the model may fix its failures."""

    command: str
    run: Callable[[], Coroutine[Any, Any, Check]]
    max_rounds: int = 3


class Verifier:
    """The check of one turn. Runs only in turns that change something."""

    def __init__(self, verify: Verify, emit: tool_execution.Emit, cancellation: Cancellation) -> None:
        self._verify, self._emit, self._cancellation = verify, emit, cancellation
        self._before: Check | None = None
        self._after: Check | None = None
        self._runs = 0

    @property
    def outcome(self) -> Verification:
        return Verification(
            command=self._verify.command, before=self._before, after=self._after, new_failures=self._new(), runs=self._runs
        )

    async def before(self, planned: Sequence[tool_calls.PlannedCall]) -> None:
        """Call it with the calls that are about to run. A cancellation is left to the calls themselves."""
        changes = any(
            call.tool is not None and not call.only_reads and not (call.verdict is not None and call.verdict.decision == "deny")
            for call in planned
        )
        if self._before is None and changes:
            with suppress(Cancelled):
                self._before = await self._run(self._verify, "before")
                if self._before.exit_code in _CANNOT_RUN:
                    await self._emit(Noticed(text=NOT_RUN.format(command=self._verify.command), level="warning"))

    async def after(self) -> Message | None:
        """Call it when the model is done. Returns a message with new failures; None when there are none, or no rounds are left.

        Raises Cancelled.
        """
        if self._before is None:
            return None
        self._after = await self._run(self._verify, "after")
        self._runs += 1
        new = self._new()
        if not new or self._runs > self._verify.max_rounds:
            return None
        more = f"\n… and {len(new) - MAX_LISTED} more" if len(new) > MAX_LISTED else ""
        listed = "\n".join(f"- {name}" for name in new[:MAX_LISTED]) + more
        words = FEEDBACK.format(command=self._verify.command, new=listed, output=self._after.output[-_SHOWN_CHARS:])
        seen = {"command": self._verify.command, "before": to_builtins(self._before), "after": to_builtins(self._after)}
        return nudge(words, UNVERIFIED, **{CHECKS: seen})

    def judge_stop(self, stop: turn_policy.Stop) -> turn_policy.Stop:
        """Returns a stop with an error when new failures remain."""
        new = self._new()
        if stop.cause != "done" or not new:
            return stop
        words = "1 failure that was" if len(new) == 1 else f"{len(new)} failures that were"
        message = f"`{self._verify.command}` finds {words} not there before: {', '.join(new[:3])}{', …' if len(new) > 3 else ''}."
        error = ErrorInfo(kind=UNVERIFIED, message=message, hint="The work is saved: review it, or continue with -c.")
        return turn_policy.Stop(cause="unverified", error=error, exit_code=1)

    def _new(self) -> tuple[str, ...]:
        if self._before is None or self._after is None:
            return ()
        return new_failures(self._before, self._after)

    async def _run(self, verify: Verify, when: Literal["before", "after"]) -> Check:
        await self._emit(VerifyStarted(command=verify.command, when=when))
        check = await self._cancellation.run(verify.run())
        new = new_failures(self._before, check) if self._before is not None else ()
        await self._emit(Verified(command=verify.command, when=when, check=check, new_failures=new))
        return check


def new_failures(before: Check, after: Check) -> tuple[str, ...]:
    """Returns failures that the run before the changes did not have."""
    if after.exit_code == 0:
        return ()
    if after.timed_out and not before.timed_out:
        return ("it timed out",)
    known = set(before.failures)
    new = tuple(name for name in after.failures if name not in known)
    if new or before.exit_code != 0:
        return new
    return after.failures or (f"it exited with code {after.exit_code}",)


_NAMED = (
    r"(?:FAILED|ERROR) (?P<pytest>\S+\.py(?:::.+?)?)(?: - .*)?",
    r"(?:FAIL|ERROR): (?P<unittest>\S+ \([^)]*\).*)",
    r"\s*--- FAIL: (?P<go>\S+).*",
    r"FAIL[\t ]+(?P<package>[\w@][\w./@-]*)(?:[\t ].*)?",
    r"test (?P<cargo>\S+) \.\.\. FAILED",
    r"not ok \d+(?: -)? ?(?P<tap>.*?)(?: #.*)?",
    r"rspec (?P<rspec>\S+)(?: #.*)?",
    r"\s*[✕✗✘×] (?P<spec>.+?)(?: \(?\d+(?:\.\d+)? ?m?s\)?)?",
    r"\[(?:ERROR|FAIL)\]\s+(?P<maven>[\w.$]+[.#:]\w+).*",
    r"(?P<place>[^\s:(]+\.\w+)(?::\d+(?::\d+)?:?|\(\d+(?:,\d+)?\):?)\s+(?P<complaint>.+)",
)
"""An alternative per output format, with at most one name per line. A complaint about a file keeps file and words."""
_LINE = f"(?:{')|(?:'.join(_NAMED)})"
_COMPLAINS = r"(?i)error|fail|warn|\b[A-Z]{1,4}\d{3,4}\b"
_RAISED = r"[\w.]+"
"""Matches the last line of a traceback, which names no test."""
_TELLING = r"(?i)\b(?:fail(?:ed|ure|ures|s)?|errors?|exceptions?|panicked|fatal|abort(?:ed)?)\b"
_PASSING = r"(?i)\b(?:0|no) (?:fail|error|warning)"
_CHANGING = r"0x[0-9a-fA-F]+|\d+(?:[.,:]\d+)*"
_COLOURS = r"\x1b\[[0-9;]*m"
MOST_NAMES = 500


def failures(output: str) -> tuple[str, ...]:
    """Returns names in order of output. Lines in an unknown format are named by their words, without numbers."""
    lines = [re.sub(_COLOURS, "", line).rstrip() for line in output.splitlines()]
    named = [name for line in lines if (name := _name(line))]
    found = named or [_steady(line) for line in lines if re.search(_TELLING, line) and not re.search(_PASSING, line)]
    # Numbers repeated names.
    seen: Counter[str] = Counter()
    numbered = []
    for name in found:
        seen[name] += 1
        numbered.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return tuple(dict.fromkeys(numbered))[:MOST_NAMES]


def _name(line: str) -> str:
    if (match := re.fullmatch(_LINE, line)) is None:
        return ""
    if complaint := match["complaint"]:
        is_new = re.search(_COMPLAINS, complaint) and not re.fullmatch(_RAISED, complaint)
        return f"{match['place']}: {_steady(complaint)}" if is_new else ""
    return next(filter(None, match.groups()), "").strip()


def _steady(text: str) -> str:
    """Removes times, addresses and line numbers, which differ from run to run."""
    return re.sub(_CHANGING, "…", text.strip())
