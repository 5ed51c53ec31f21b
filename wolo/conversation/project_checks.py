"""Finds the commands that check a project, and makes the finish check of an agent."""

from __future__ import annotations

import json
import os
import re
import shutil
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from wolo.agent.finish.check_lines import read_line
from wolo.agent.finish.finish_check import FinishCheck
from wolo.extensions.instructions.file_reading import read_named
from wolo.guard.intents import RunIntent
from wolo.guard.judge import Judge
from wolo.places import Notices
from wolo.tools.tool import ToolServices

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
