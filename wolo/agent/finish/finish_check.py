"""The finish check: which files a turn edited, which checks ran after that, and what the model is asked once before it ends.

All of it follows from the messages, so a resumed session comes to the same result. Only the ends of background jobs and the
user's own commands are not in them.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path, PurePath

from msgspec import Struct, convert
from msgspec.structs import replace

from wolo.agent.events import Verification, WorkCheck
from wolo.agent.finish.check_lines import LineCheck, clip, names_edit, read_line
from wolo.errors import ToolError
from wolo.messages.message import NUDGE, UNCHECKED, Message, nudge
from wolo.messages.parts import CHANGED, EXIT_CODE, FINISH, TASK, ToolPart
from wolo.messages.terminal_text import quantity
from wolo.tools.background.background_jobs import Job
from wolo.tools.shell import FILES, Shell, ShellArgs
from wolo.tools.todo import todos_of
from wolo.tools.tool import UserRun
from wolo.tools.tool_arguments import decode_arguments

STALE = "`{file}` changed after the last run of `{check}`: run it, or say that you did not."
NOT_RUN = "`{file}` changed and `{check}` was not run: run it, or say that you did not."
FAILED = "`{check}` ended with exit {code} after the last edit: fix it, or say that it fails."
TODOS = "{todos} open: do them, or say what is left."
AGAIN = "Then give your final answer again."

DENIED, STOPPED, ABSENT, RUNS_ON = "was denied", "did not run to its end", "cannot be run here", "still runs"
NOT_READ, EMPTY = "was run, but its exit status was not read", "found no tests"
"""Reasons why nothing can be concluded from a run."""

_DOCUMENTS = frozenset(".adoc .bmp .gif .ico .jpeg .jpg .log .md .mdx .org .pdf .png .rst .svg .tex .txt .webp".split())  # noqa: SIM905
_CODE_AS_TEXT = r"(?:.*require.*|constraints.*|CMakeLists)\.txt"
_DOCUMENT_NAMES = r"(?:LICEN[CS]E|COPYING|NOTICE|AUTHORS|CHANGE(?:S|LOG)|README|TODO|CODEOWNERS|\.gitignore|\.mailmap)(?:\..*)?"
_MAY_CHECK = r"(?i)test|check|lint|verify|build|compile|diagnos|run|exec"
"""Names of tools of servers and users that may have checked the work."""
_MISSING = (
    r"No module named|command not found|[Mm]issing script|No rule to make target|No targets specified"
    r"|Could not read package\.json|not found in PATH|[Cc]annot find module|EnvironmentLocationNotFound"
    r"|Cannot connect to the Docker daemon|No such container|[Cc]ontainer \S+ is not running|no such service"
    r"|Could not resolve hostname|ssh: connect to host"
)
_ABSENT_CODES = (126, 127)
_NO_TESTS = 5
"""Exit code of pytest that collected nothing."""


class _Step(Struct, frozen=True, kw_only=True):
    """An edit, the run of a check, or another command, in the order of the conversation."""

    edited: str = ""
    """Absolute path."""
    is_made: bool = False
    """The file did not exist before."""
    check: LineCheck | None = None
    line: str = ""
    """The command that ran the check, or another one."""
    exit_code: int | None = None
    ended_at: float | None = None
    unread: str = ""
    """The reason why nothing can be concluded; empty: the exit status was read."""
    is_in_turn: bool = True


class FinishCheck(Struct, frozen=True, kw_only=True):
    """The policy of one agent. `report` and `ask` take the history and the position at which the turn begins."""

    root: Path
    asks: bool = True
    """False: the model is not asked, the report stays the same."""
    shows: bool = True
    """False: the report has no line."""
    list_checks: Callable[[], Sequence[str]] = tuple
    """Commands that check this project, the most important one first. Reads files."""
    may_run: Callable[[str], bool] = lambda command: True
    """False: nobody could allow the command."""
    jobs: Callable[[], Sequence[Job]] = tuple
    is_as_before: Callable[[str], bool] = lambda path: False
    """True: the file was edited in this turn, and edited back."""
    user_runs: Callable[[], Sequence[UserRun]] = tuple
    """The user's own commands of this conversation."""

    def report(self, messages: Sequence[Message], start: int, verification: Verification | None = None) -> WorkCheck:
        """`verification`: the user's check, which ran after the last edit."""
        work = _TurnWork(self, messages, start)
        report = work.conclude(verification)
        return report if self.shows else replace(report, line="")

    def ask(self, messages: Sequence[Message], start: int, *, is_verified: bool) -> Message | None:
        """A message of at most 60 tokens, once per turn. `is_verified`: the user's check runs after each turn anyway."""
        if not self.asks or any(message.metadata.get(NUDGE) == UNCHECKED for message in messages[start:]):
            return None
        work = _TurnWork(self, messages, start)
        if work.last_edit < 0:
            return None
        lists = (todos_of(part) for message in messages[start:] for part in message.calls)
        todos = next((items for items in reversed([*lists]) if items is not None), ())
        num_open = sum(item.status in ("pending", "in_progress") for item in todos)
        sentences = (
            "" if is_verified else work.question(),
            TODOS.format(todos=quantity(num_open, "todo item is", "todo items are")) if num_open else "",
        )
        return nudge(" ".join(filter(None, (*sentences, AGAIN))), UNCHECKED) if any(sentences) else None


class _TurnWork:
    """The edits and checks of a turn, and what follows from them."""

    def __init__(self, policy: FinishCheck, messages: Sequence[Message], start: int) -> None:
        self._policy = policy
        steps: list[_Step] = []
        for at, message in enumerate(messages):
            if at == start:
                steps += (step for run in policy.user_runs() for step in self._steps_of_user(run))
            steps += (replace(step, is_in_turn=at >= start) for part in message.calls for step in self._steps_of(part))
        self._steps = steps
        self._files: dict[str, int] = {}
        """Position of the last edit of each file; without files that are as they were before."""
        made: set[str] = set()
        for at, step in enumerate(steps):
            if step.edited and step.is_in_turn and PurePath(step.edited).is_relative_to(self._policy.root):
                made |= {step.edited} if step.is_made and step.edited not in self._files else set()
                self._files[step.edited] = at
        self._files = {
            path: at
            for path, at in self._files.items()
            if (path not in made or os.path.lexists(path)) and not self._policy.is_as_before(path)
        }
        self.last_edit = max((at for path, at in self._files.items() if not is_document(path)), default=-1)
        self._after = [step for step in steps[self.last_edit + 1 :] if step.check is not None]

    def conclude(self, verification: Verification | None) -> WorkCheck:
        if self.last_edit < 0:
            return WorkCheck(line=self._line(""))
        if verification is not None and verification.after is not None and verification.after.is_conclusive:
            is_bad, code = bool(verification.new_failures), verification.after.exit_code
            label, how = clip(verification.command), "failed" if is_bad else "passed" if code == 0 else "found nothing new"
            step = _Step(line=label, exit_code=code, ended_at=time.time())
            return self._as_report("failed" if is_bad else "passed", step, label, f"{label} {how} after the last edit")
        if failed := self._last_failure():
            label = clip(failed.line)
            return self._as_report("failed", failed, label, f"{label} failed after the last edit (exit {failed.exit_code})")
        read = [step for step in self._after if not step.unread]
        if read and read[-1].check:
            label = read[-1].check.label
            return self._as_report("passed", read[-1], label, f"{label} passed after the last edit")
        if verification is not None and verification.after is not None:
            label, why = clip(verification.command), STOPPED if verification.after.exit_code is None else ABSENT
            return WorkCheck(status="not_run", command=label, unread=why, line=self._line(f"{label} {why}"))
        if self._after and (check := self._after[-1].check):
            why = self._after[-1].unread
            return WorkCheck(status="not_run", command=check.label, unread=why, line=self._line(f"{check.label} {why}"))
        last = self._last_read()
        project = () if last else self._policy.list_checks()
        label = last.check.label if last and last.check else clip(project[0]) if project else ""
        is_idle = not any(step.line for step in self._steps[self.last_edit + 1 :])
        then = "" if not label else "nothing was run since" if is_idle else f"{label} was not run since"
        if last:
            return self._as_report("stale", last, label, then)
        return WorkCheck(status="not_run", command=label, line=self._line(then))

    def question(self) -> str:
        """What the model is asked about its checks; empty: nothing."""
        if failed := self._last_failure():
            return FAILED.format(check=clip(failed.line), code=failed.exit_code)
        is_external = any(step.line and step.check is None and step.unread for step in self._steps[self.last_edit + 1 :])
        if self._after or is_external:
            return ""
        last = self._last_read()
        after = self._steps.index(last) if last else -1
        edited = [path for path, at in self._files.items() if at > after and not is_document(path)]
        file = clip(os.path.relpath(edited[0], self._policy.root)) if edited else ""
        if last is not None and last.check is not None:
            return STALE.format(file=file, check=last.check.label) if self._policy.may_run(last.line) else ""
        project = [check for check in self._policy.list_checks() if self._policy.may_run(check)]
        is_absent = any(step.unread in (ABSENT, DENIED) for step in self._steps if step.check)
        return NOT_RUN.format(file=file, check=clip(project[0])) if project and not is_absent else ""

    def _as_report(self, status: str, step: _Step, label: str, then: str) -> WorkCheck:
        fields = {"status": status, "command": label, "at": step.ended_at, "exit_code": step.exit_code}
        return convert({**fields, "line": self._line(then)}, WorkCheck)

    def _line(self, then: str) -> str:
        return " · ".join(filter(None, (quantity(len(self._files), "file"), then))) if self._files else ""

    def _last_failure(self) -> _Step | None:
        """The last failure after the last edit that no later run of the same check, or of all of it, took back."""
        for at, step in enumerate(reversed(self._after)):
            if step.check is None or step.unread or not step.exit_code:
                continue
            later = self._after[len(self._after) - at :]
            keys = {each.check.key for each in later if each.check and not each.unread and not each.exit_code}
            if not keys & {step.check.key, step.check.key.split()[0]}:
                return step
        return None

    def _last_read(self) -> _Step | None:
        return next((step for step in reversed(self._steps) if step.check and not step.unread), None)

    # Steps

    def _steps_of(self, part: ToolPart) -> list[_Step]:
        if isinstance(task := part.metadata.get(TASK), dict):
            # A subagent's checks ran after its edits, or before them, as its own report says
            report = task.get(FINISH)
            edits = [*_edits(part)]
            work = convert(report, WorkCheck) if report else WorkCheck()
            if not work.command or (work.status == "not_run" and not work.unread):
                return edits
            check = LineCheck(label=work.command, key=work.command, is_read=not work.unread)
            run = _Step(check=check, line=work.command, exit_code=work.exit_code, ended_at=work.at, unread=work.unread)
            return [run, *edits] if work.status == "stale" else [*edits, run]
        try:
            args = decode_arguments(Shell(), part.input) if part.kind == "execute" or EXIT_CODE in part.metadata else None
        except ToolError:
            args = None
        if isinstance(args, ShellArgs):
            facts = read_line(args.command)
            runs = [_Step(line=args.command, check=check) for check in facts.checks] or [_Step(line=args.command)]
            runs = [self._with_end(step, part, is_job=args.background) for step in runs]
            if part.outcome in ("denied_by_person", "denied_by_rule"):
                return [step for step in runs if step.check]
            if part.outcome in ("never_started", "invalid", "cut_off", None):
                return []
            # Check, formatter, build: what they write is no edit. Nor is it when the line does not name the file.
            edits = [step for step in _edits(part) if facts.edits and names_edit(args.command, PurePath(step.edited).name)]
            return [*runs, *edits] if facts.edits_last else [*edits, *runs]
        if part.kind in (None, "other", "execute") and part.outcome == "ok" and re.search(_MAY_CHECK, part.tool):
            return [*_edits(part), _Step(line=part.tool, unread=NOT_READ)]
        return [*_edits(part)]

    def _with_end(self, step: _Step, part: ToolPart, *, is_job: bool) -> _Step:
        code, ended_at, unread = part.metadata.get(EXIT_CODE), part.end_time, ""
        job = next((job for job in reversed(self._policy.jobs()) if job.command == step.line), None) if is_job else None
        if (part.outcome or "").startswith("denied"):
            unread = DENIED
        elif is_job and job is not None and job.ending is None:
            unread = RUNS_ON
        elif is_job and job is not None and job.ending is not None and job.ending.cause == "exited":
            code, ended_at = job.ending.shell_code, part.start_time + job.ending.elapsed_s
        elif is_job or code is None:
            unread = STOPPED
        if code in _ABSENT_CODES or (code and re.search(_MISSING, part.output[-2000:])):
            unread = ABSENT
        elif code == _NO_TESTS and step.check and "pytest" in step.check.key:
            unread = EMPTY
        elif step.check and not step.check.is_read:
            unread = unread or NOT_READ
        return replace(step, exit_code=code, ended_at=ended_at, unread=unread if step.check else "")

    def _steps_of_user(self, run: UserRun) -> Iterator[_Step]:
        for check in read_line(run.command).checks:
            is_read = check.is_read and run.exit_code is not None and run.exit_code not in _ABSENT_CODES
            unread = "" if is_read else NOT_READ
            yield _Step(
                check=check, line=run.command, exit_code=run.exit_code, ended_at=run.ended_at, unread=unread, is_in_turn=False
            )


def _edits(part: ToolPart) -> Iterator[_Step]:
    kinds = part.metadata.get(FILES) or part.metadata.get(CHANGED) or {}
    for kind, paths in kinds.items() if isinstance(kinds, dict) else ():
        yield from (_Step(edited=path, is_made=kind == "made") for path in paths)


def is_document(path: str) -> bool:
    """True for files that no check looks at."""
    name = PurePath(path).name
    if re.fullmatch(_CODE_AS_TEXT, name):
        return False
    return PurePath(name).suffix.lower() in _DOCUMENTS or re.fullmatch(_DOCUMENT_NAMES, name) is not None
