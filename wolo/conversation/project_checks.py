"""Finds the commands that check a project, makes the finish check of an agent, and runs the command of `--verify`."""

from __future__ import annotations

import json
import os
import re
import shutil
import tomllib
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from wolo.agent.events import Check
from wolo.agent.finish.check_lines import read_line
from wolo.agent.finish.finish_check import FinishCheck
from wolo.agent.verification import CHECKS, UNVERIFIED, VerificationSettings, Verify
from wolo.extensions.instructions.file_reading import read_named
from wolo.guard.command_judge import Confine
from wolo.guard.intents import RunIntent
from wolo.guard.judge import Judge
from wolo.guard.sandbox_contract import MOST_TRIES
from wolo.messages.message import NUDGE, Message
from wolo.places import Notices
from wolo.tools.clipping import clean
from wolo.tools.tool import CallContext, ToolServices
from wolo.workspace.processes.command_environment import find_program
from wolo.workspace.processes.output_capture import CapturedOutput
from wolo.workspace.processes.process_runner import ProgramStart

INSTRUCTIONS = ("AGENTS.md", "CLAUDE.md")
_MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
_FIRST = ("check", "test", "tests", "ci", "verify", "lint", "build")
"""Targets and scripts in order of preference."""
MOST_CHARS = 60
"""A longer command is not named to the model."""


def open_finish_check(
    services: ToolServices, judge: Judge, *, verify: str, asks: bool, shows: bool, attended: bool, offers_shell: bool
) -> FinishCheck:
    """`verify` is the user's check. `attended`: a user can allow a command."""
    root = services.workspace.root

    def may_run(command: str) -> bool:
        decision = judge.judge("shell", [RunIntent(command, services.shell.cwd)]).decision
        return offers_shell and (decision == "allow" or (attended and decision == "ask"))

    return FinishCheck(
        root=root,
        asks=asks,
        shows=shows,
        list_checks=lambda: tuple(filter(None, (verify, *find_checks(root)))),
        may_run=may_run,
        is_as_before=lambda path: services.tracker is not None and services.tracker().is_as_before(os.path.realpath(path)),
        jobs=lambda: services.shell.jobs.all if services.shell.jobs else (),
        user_runs=lambda: tuple(services.shell.user_runs),
    )


def find_checks(root: Path) -> tuple[str, ...]:
    """Checks that the project names and whose program is there, the most important first."""
    checks: dict[str, None] = {}
    for command in _named_checks(root):
        program = command.split()[0]
        if (root / program).is_file() if "/" in program else shutil.which(program) is not None:
            checks[command] = None
    return tuple(checks)


def _named_checks(root: Path) -> Iterator[str]:
    texts = {name: _read(root, name) for name in (*INSTRUCTIONS, *_MAKEFILES, "package.json", "pyproject.toml")}
    for name in INSTRUCTIONS:
        spans = re.findall(r"`([^`\n]+)`|^(?: {4}|\t|\$ )?([a-z./][^`\n]*)$", texts[name], re.MULTILINE)
        lines = (re.sub(r"\s+#.*", "", one or other).strip().removeprefix("$ ") for one, other in spans)
        for line in lines:  # one command without shell syntax, so that naming it to the model says nothing else
            is_plain = len(line) <= MOST_CHARS and re.fullmatch(r"[\w./:=@%+, -]+", line)
            if is_plain and len(read_line(line).checks) == 1:
                yield line
    makefile = next(filter(None, (texts[name] for name in _MAKEFILES)), "")
    targets = set(re.findall(r"^([\w.-]+)\s*:(?!=)", makefile, re.MULTILINE))
    yield from (f"make {target}" for target in _FIRST if target in targets)
    scripts = _table(json.loads, texts["package.json"], "scripts")
    for script in _FIRST:
        if script in scripts and "no test specified" not in str(scripts[script]):
            yield "npm test" if script == "test" else f"npm run {script}"
    tools = _table(tomllib.loads, texts["pyproject.toml"], "tool")
    yield from (command for tool, command in (("pytest", "pytest"), ("mypy", "mypy"), ("ruff", "ruff check")) if tool in tools)
    for name, command in (("Cargo.toml", "cargo test"), ("go.mod", "go test ./...")):
        if (root / name).is_file():
            yield command


def _read(root: Path, name: str) -> str:
    file = read_named(root / name, root, Notices())
    return file.text if file else ""


def _table(parse: Callable[[str], Any], text: str, name: str) -> dict[str, Any]:
    """One table of a file; empty for a file that cannot be read."""
    try:
        file = parse(text)
    except (ValueError, RecursionError):
        return {}
    table = file.get(name) if isinstance(file, dict) else None
    return table if isinstance(table, dict) else {}


_KEPT_BYTES = 2 << 20
"""Length of each end of the output."""
_SHOWN_CHARS = 8000


def make_verify(settings: VerificationSettings, services: ToolServices, confine: Confine) -> Verify:
    """It is sandboxed because it runs code that the model wrote."""
    confined = services.sandbox.walls is not None and confine != "never"
    return Verify(
        command=settings.command,
        run=partial(check, settings.command, settings.timeout_s, services, confined=confined),
        max_rounds=settings.rounds,
    )


def recorded_verify(new: Iterable[Message]) -> Verify | None:
    """Returns recorded results in a replay. None: the model got none."""
    recorded = [message.metadata[CHECKS] for message in new if message.metadata.get(NUDGE) == UNVERIFIED]
    if not recorded:
        return None
    checks = iter([recorded[0]["before"], *(each["after"] for each in recorded)])

    async def run() -> Check:
        seen = next(checks, None)
        return msgspec.convert(seen, Check) if seen is not None else Check(exit_code=0)

    return Verify(command=recorded[0]["command"], run=run, max_rounds=len(recorded))


async def check(command: str, timeout_s: float, services: ToolServices, *, confined: bool) -> Check:
    """Does not raise for a failing command; cancellation ends all its processes."""
    from wolo.agent.verification import failures  # noqa: PLC0415  # its many forms are compiled when it is loaded

    place = services.workspace.start
    shell = find_program("bash", services.workspace) or "/bin/sh"
    options = ("--noprofile", "--norc") if shell.endswith("bash") else ()
    call = CallContext(services, confined=confined)
    await call.prepare()
    for _ in range(MOST_TRIES):
        printed = CapturedOutput(_KEPT_BYTES)
        enclosed = call.enclose([shell, *options, "-c", command], place, proxy=call.open_proxy())
        start = ProgramStart(
            argv=enclosed.argv,
            cwd=place,
            env=call.environment(),
            pass_fds=enclosed.pass_fds,
            cleanup=enclosed.cleanup,
            why_ended=enclosed.why_ended,
            is_alone=enclosed.is_alone,
        )
        finished = await services.shell.processes.run(start, timeout_s, printed)
        if finished.cause != "exited" or enclosed.has_begun():
            break
    output = "".join(b"".join(clean(end)).decode() for end in printed.take())
    if why := enclosed.why_ended():
        output += f"[the sandbox ended it: {why}]\n"
    output = services.secrets.hide(output)
    notes = call.explain_hidden(f"{command}\n{output}") if finished.exit_code else ()
    return Check(
        exit_code=None if finished.timed_out else finished.exit_code,
        failures=() if finished.exit_code == 0 else failures(output),
        output="".join((output, *(f"[{note}]\n" for note in notes)))[-_SHOWN_CHARS:],
        duration_s=finished.elapsed_s,
        timed_out=finished.timed_out,
    )
