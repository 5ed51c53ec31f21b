"""The finish check: the last line of a turn and what the model is asked, for the many ways in which a turn ends."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from wolo.agent.events import Check, Verification, WorkCheck
from wolo.agent.finish.check_lines import read_line
from wolo.agent.finish.finish_check import FinishCheck
from wolo.messages.message import UNCHECKED, Message, nudge, user
from wolo.messages.parts import CHANGED, EXIT_CODE, FINISH, TASK, Outcome, ToolPart
from wolo.models.tokens import BYTES_PER_TOKEN
from wolo.tools.background.background_jobs import Job, JobEnd
from wolo.tools.tool import UserRun

ROOT = Path("/repo")


def edit(path: str = "src/a.py", *, kind: str = "changed") -> ToolPart:
    input = {"path": path, "old": "a", "new": "b"}
    return ToolPart(
        tool="edit", kind="edit", input=input, status="completed", outcome="ok", metadata={CHANGED: {kind: [str(ROOT / path)]}}
    )


def sh(command: str, code: int | None = 0, *paths: str, output: str = "", outcome: Outcome | None = None) -> ToolPart:
    """A command that ended with this code and changed these files."""
    metadata: dict[str, Any] = {EXIT_CODE: code} | ({CHANGED: {"changed": [f"/repo/{path}" for path in paths]}} if paths else {})
    if outcome in ("denied_by_person", "denied_by_rule"):
        metadata = {}
    outcome = outcome or ("ok" if code == 0 else "error")
    return ToolPart(
        tool="shell", kind="execute", input={"command": command}, outcome=outcome, output=output, metadata=metadata, end_time=1e9
    )


def job(command: str) -> ToolPart:
    input = {"command": command, "background": True}
    return ToolPart(tool="shell", kind="execute", input=input, outcome="ok", metadata={EXIT_CODE: None}, start_time=1e9)


def task(work: WorkCheck, *paths: str) -> ToolPart:
    fields = {"status": work.status, "command": work.command, "exit_code": work.exit_code, "unread": work.unread}
    changed = {CHANGED: {"changed": [f"/repo/{path}" for path in paths]}} if paths else {}
    return ToolPart(tool="task", outcome="ok", metadata={TASK: {"agent": "general", FINISH: fields}, **changed})


def todos(*statuses: str) -> ToolPart:
    items = [{"text": f"step {at}", "status": status} for at, status in enumerate(statuses)]
    return ToolPart(tool="todo", kind="think", input={"items": items}, outcome="ok")


def external(tool: str) -> ToolPart:
    return ToolPart(tool=tool, kind="other", input={}, outcome="ok")


TURN = user("and then")
"""Begins the turn that ends; what is before it belongs to earlier ones."""
STALE = "`src/a.py` changed after the last run of `pytest -q`: run it, or say that you did not."
NOT_RUN = "`src/a.py` changed and `make test` was not run: run it, or say that you did not."
QUIET = ""
MAKE = ("make test",)
FULL, DOCS = "pytest -q", "docs/guide.md"

ENDINGS: dict[str, tuple[list[ToolPart | Message], tuple[str, ...], str, str, str]] = {
    # name: calls, checks of the project, status, line, question
    "chat": ([], MAKE, "none", "", QUIET),
    "chat with commands": ([sh("ls"), sh("git log")], MAKE, "none", "", QUIET),
    "red check without changes": ([sh(FULL, 1)], MAKE, "none", "", QUIET),
    "docs only": ([edit(DOCS), edit("README")], MAKE, "none", "2 files", QUIET),
    "docs after a check": (
        [edit(), sh(FULL), edit(DOCS)],
        MAKE,
        "passed",
        "2 files · pytest -q passed after the last edit",
        QUIET,
    ),
    "requirements are code": ([edit("requirements.txt")], (), "not_run", "1 file", QUIET),
    "no check exists": ([edit()], (), "not_run", "1 file", QUIET),
    "no check exists, the program ran": ([edit(), sh("python src/a.py")], (), "not_run", "1 file", QUIET),
    "never checked": ([edit()], MAKE, "not_run", "1 file · nothing was run since", NOT_RUN),
    "only the program ran": ([edit(), sh("python src/a.py")], MAKE, "not_run", "1 file · make test was not run since", NOT_RUN),
    "checked": ([edit(), sh(FULL)], MAKE, "passed", "1 file · pytest -q passed after the last edit", QUIET),
    "checked three files": (
        [edit("a.py"), edit("b.py"), edit("c.py"), sh(FULL)],
        MAKE,
        "passed",
        "3 files · pytest -q passed after the last edit",
        QUIET,
    ),
    "red": (
        [edit(), sh(FULL, 1)],
        MAKE,
        "failed",
        "1 file · pytest -q failed after the last edit (exit 1)",
        "`pytest -q` ended with exit 1 after the last edit: fix it, or say that it fails.",
    ),
    "red, then green": ([edit(), sh(FULL, 1), sh(FULL)], MAKE, "passed", "1 file · pytest -q passed after the last edit", QUIET),
    "red, then green in another way": (
        [edit(), sh(FULL, 1), sh("uv run pytest -x")],
        MAKE,
        "passed",
        "1 file · uv run pytest -x passed after the last edit",
        QUIET,
    ),
    "red, then a part is green": (
        [edit(), sh(FULL, 1), sh("pytest tests/test_a.py")],
        MAKE,
        "failed",
        "1 file · pytest -q failed after the last edit (exit 1)",
        "`pytest -q` ended with exit 1",
    ),
    "red before the fix": ([edit(), sh(FULL, 1), edit()], MAKE, "stale", "1 file · nothing was run since", STALE),
    "edited after the check": ([edit(), sh(FULL), edit()], MAKE, "stale", "1 file · nothing was run since", STALE),
    "something else ran": ([edit(), sh(FULL), edit(), sh("ls")], MAKE, "stale", "1 file · pytest -q was not run since", STALE),
    "checked in an earlier turn": ([edit(), sh(FULL), TURN, edit()], MAKE, "stale", "1 file · nothing was run since", STALE),
    "chat after unchecked work": ([edit(), TURN, sh("ls")], MAKE, "none", "", QUIET),
    "check after cd": (
        [edit(), sh("cd src && A=1 pytest -q 2>&1")],
        MAKE,
        "passed",
        "1 file · pytest -q passed after the last edit",
        QUIET,
    ),
    "red after cd": (
        [edit(), sh("cd nowhere && pytest -q", 1)],
        MAKE,
        "failed",
        "1 file · cd nowhere && pytest -q failed after the last edit (exit 1)",
        "`cd nowhere && pytest -q` ended with exit 1",
    ),
    "check in a pipeline": (
        [edit(), sh("pytest -q | tail -5")],
        MAKE,
        "not_run",
        "1 file · pytest -q was run, but its exit status was not read",
        QUIET,
    ),
    "pipeline that fails whole": (
        [edit(), sh("set -o pipefail; pytest -q | tail -5")],
        MAKE,
        "passed",
        "1 file · pytest -q passed after the last edit",
        QUIET,
    ),
    "check whose failure is ignored": (
        [edit(), sh("pytest -q || true")],
        MAKE,
        "not_run",
        "1 file · pytest -q was run, but its exit status was not read",
        QUIET,
    ),
    "check that hung": (
        [edit(), sh(FULL, None)],
        MAKE,
        "not_run",
        "1 file · pytest -q did not run to its end",
        QUIET,
    ),
    "check that is not installed": ([edit(), sh(FULL, 127)], MAKE, "not_run", "1 file · pytest -q cannot be run here", QUIET),
    "module that is not installed": (
        [edit(), sh("python -m pytest", 1, output="/usr/bin/python: No module named pytest\n")],
        MAKE,
        "not_run",
        "1 file · python -m pytest cannot be run here",
        QUIET,
    ),
    "check without tests": ([edit(), sh(FULL, 5)], MAKE, "not_run", "1 file · pytest -q found no tests", QUIET),
    "container that is not there": (
        [edit(), sh("docker exec app pytest -q", 1, output="Error response from daemon: No such container: app\n")],
        MAKE,
        "not_run",
        "1 file · pytest -q cannot be run here",
        QUIET,
    ),
    "check that was denied": (
        [edit(), sh(FULL, outcome="denied_by_person")],
        MAKE,
        "not_run",
        "1 file · pytest -q was denied",
        QUIET,
    ),
    "check that writes files": (
        [edit(), sh("ruff check --fix .", 0, "src/b.py")],
        MAKE,
        "passed",
        "1 file · ruff check --fix . passed after the last edit",
        QUIET,
    ),
    "formatter after the check": (
        [edit(), sh(FULL), sh("black src/a.py", 0, "src/a.py")],
        MAKE,
        "passed",
        "1 file · pytest -q passed after the last edit",
        QUIET,
    ),
    "build output after the check": (
        [edit(), sh(FULL), sh("python gen.py", 0, "out/data.json")],
        MAKE,
        "passed",
        "1 file · pytest -q passed after the last edit",
        QUIET,
    ),
    "edited with sed after the check": (
        [edit(), sh(FULL), sh("sed -i s/a/b/ src/*.py", 0, "src/a.py")],
        MAKE,
        "stale",
        "1 file · nothing was run since",
        STALE,
    ),
    "edited and checked in one line": (
        [sh("sed -i s/a/b/ src/a.py && pytest -q", 0, "src/a.py")],
        MAKE,
        "passed",
        "1 file · pytest -q passed after the last edit",
        QUIET,
    ),
    "checked and edited in one line": (
        [edit(), sh("pytest -q && echo 1 > src/a.py", 0, "src/a.py")],
        MAKE,
        "stale",
        "1 file · nothing was run since",
        STALE,
    ),
    "scratch file removed after the check": (
        [edit(), edit("try.py", kind="made"), sh(FULL), sh("rm try.py", 0, "try.py")],
        MAKE,
        "passed",
        "1 file · pytest -q passed after the last edit",
        QUIET,
    ),
    "file elsewhere": ([edit("/tmp/a.py")], MAKE, "none", "", QUIET),
    "subagent checked its work": (
        [task(WorkCheck(status="passed", command=FULL, exit_code=0), "src/a.py")],
        MAKE,
        "passed",
        "1 file · pytest -q passed after the last edit",
        QUIET,
    ),
    "subagent edited after its check": (
        [task(WorkCheck(status="stale", command=FULL, exit_code=0), "src/a.py")],
        MAKE,
        "stale",
        "1 file · nothing was run since",
        STALE,
    ),
    "tool of a server may have checked": (
        [edit(), external("mcp__ci__run_tests")],
        MAKE,
        "not_run",
        "1 file · make test was not run since",
        QUIET,
    ),
    "open tasks": (
        [todos("completed", "pending", "in_progress"), edit(), sh(FULL)],
        MAKE,
        "passed",
        "1 file · pytest -q passed after the last edit",
        "2 todo items are open: do them, or say what is left.",
    ),
    "tasks done": (
        [todos("pending"), edit(), sh(FULL), todos("completed")],
        MAKE,
        "passed",
        "1 file · pytest -q passed after the last edit",
        QUIET,
    ),
}


def history(calls: list[ToolPart | Message]) -> tuple[list[Message], int]:
    """Messages and the beginning of the last turn."""
    messages = [user("do it")]
    start = 0
    for each in calls:
        start = len(messages) if each is TURN else start
        messages.append(each if isinstance(each, Message) else Message(role="assistant", parts=(each,)))
    return [*messages, Message(role="assistant", finished=True)], start


def policy(*checks: str, **more: Any) -> FinishCheck:
    return FinishCheck(root=ROOT, list_checks=lambda: checks, **more)


def question(finish: FinishCheck, messages: list[Message], start: int, *, is_verified: bool = False) -> str:
    asked = finish.ask(messages, start, is_verified=is_verified)
    return "" if asked is None else asked.text


@pytest.mark.parametrize("name", ENDINGS)
def test_ending_gets_its_line_and_question(name: str) -> None:
    calls, checks, status, line, asked = ENDINGS[name]
    finish, (messages, start) = policy(*checks), history(calls)
    report = finish.report(messages, start)
    assert (report.status, report.line) == (status, line)
    text = question(finish, messages, start)
    assert text.startswith(asked) if asked else text == ""
    assert len(text) <= 60 * BYTES_PER_TOKEN


def test_question_comes_once_per_turn() -> None:
    messages, start = history([edit()])
    asked = policy(*MAKE).ask(messages, start, is_verified=False)
    assert asked is not None
    assert policy(*MAKE).ask([*messages, asked, messages[-1]], start, is_verified=False) is None
    earlier = [user("do it"), nudge("", UNCHECKED), *messages]
    assert policy(*MAKE).ask(earlier, 2, is_verified=False) is not None


def running(command: str, ending: JobEnd | None) -> Callable[[], list[Job]]:
    return lambda: [cast(Job, SimpleNamespace(command=command, ending=ending))]


@pytest.mark.parametrize(
    ("calls", "ending", "line"),
    [
        ([edit(), job(FULL)], None, "1 file · pytest -q still runs"),
        ([edit(), job(FULL)], JobEnd("exited", 0, 2.0), "1 file · pytest -q passed after the last edit"),
        ([edit(), job(FULL)], JobEnd("exited", 1, 2.0), "1 file · pytest -q failed after the last edit (exit 1)"),
        ([edit(), job(FULL)], JobEnd("stopped", -15, 2.0), "1 file · pytest -q did not run to its end"),
        ([edit(), job(FULL), edit()], JobEnd("exited", 0, 2.0), "1 file · nothing was run since"),
    ],
    ids=["runs", "passed", "failed", "stopped", "edited meanwhile"],
)
def test_background_check_counts_from_its_start(calls: list[ToolPart | Message], ending: JobEnd | None, line: str) -> None:
    messages, start = history(calls)
    assert policy(jobs=running(FULL, ending)).report(messages, start).line == line


def test_the_users_own_check_is_the_last_run() -> None:
    runs = [UserRun(command=FULL, exit_code=0, ended_at=1.0)]
    messages, start = history([edit()])
    assert question(policy(user_runs=lambda: runs), messages, start).startswith(STALE)


def test_forbidden_check_is_not_asked_for() -> None:
    messages, start = history([edit(), sh(FULL), edit()])
    assert question(policy(*MAKE, may_run=lambda command: False), messages, start) == ""


def test_forbidden_project_check_is_not_asked_for() -> None:
    messages, start = history([edit()])
    assert question(policy("make test", "pytest", may_run=lambda command: command == "pytest"), messages, start).startswith(
        "`src/a.py` changed and `pytest` was not run"
    )
    assert question(policy(*MAKE, may_run=lambda command: False), messages, start) == ""


@pytest.mark.parametrize("outcome", ["denied_by_person", None])
def test_unrunnable_check_is_not_asked_for_again(outcome: Outcome | None) -> None:
    messages, start = history([edit(), sh("make test", 127 if outcome is None else 0, outcome=outcome), edit("src/b.py")])
    assert question(policy(*MAKE), messages, start) == ""


def test_verified_work_is_asked_about_tasks_only() -> None:
    messages, start = history([todos("pending"), edit()])
    assert question(policy(*MAKE), messages, start, is_verified=True).startswith("1 todo item is open")
    passed = Verification(command="make test", before=Check(exit_code=0), after=Check(exit_code=0), runs=1)
    assert policy().report(messages, start, passed).line == "1 file · make test passed after the last edit"
    broke = Verification(command="make test", before=Check(exit_code=0), after=Check(exit_code=2), new_failures=("a",), runs=1)
    assert policy().report(messages, start, broke).status == "failed"


@pytest.mark.parametrize(
    ("code", "then"), [(None, "make test did not run to its end"), (127, "make test cannot be run here")], ids=["hung", "missing"]
)
def test_verification_without_a_result_is_stated(code: int | None, then: str) -> None:
    messages, start = history([edit()])
    check = Check(exit_code=code, timed_out=code is None)
    report = policy(*MAKE).report(messages, start, Verification(command="make test", before=check, after=check, runs=1))
    assert (report.status, report.line) == ("not_run", f"1 file · {then}")
    messages, start = history([edit(), sh(FULL)])
    report = policy().report(messages, start, Verification(command="make test", before=check, after=check, runs=1))
    assert report.status == "passed"


def test_long_names_fit_into_sixty_tokens() -> None:
    long = f"src/{'deep/' * 30}a.py"
    messages, start = history([todos(*["pending"] * 40), edit(long), sh(f"pytest {'tests/very/long/name.py ' * 20}"), edit(long)])
    assert 0 < len(question(policy(), messages, start)) <= 60 * BYTES_PER_TOKEN


def test_control_sequences_of_a_command_are_escaped() -> None:
    messages, start = history([edit("a\x1b[2J.py"), sh("pytest '\x1b]0;title\x07'"), edit("a\x1b[2J.py")])
    report = policy().report(messages, start)
    assert "\x1b" not in report.line + report.command + question(policy(), messages, start)


def test_disabled_check_neither_asks_nor_shows() -> None:
    messages, start = history([edit(), sh(FULL), edit()])
    finish = policy(*MAKE, asks=False, shows=False)
    assert (finish.report(messages, start).status, finish.report(messages, start).line) == ("stale", "")
    assert finish.ask(messages, start, is_verified=False) is None


@pytest.mark.parametrize(
    "line",
    [
        *(
            "pytest --version",
            "mypy --help",
            "pytest --collect-only -q",
            "make -n test",
            "python -m pytest --co",
            "npx jest --listTests",
        ),
    ],
)
def test_description_of_a_check_is_none(line: str) -> None:
    assert read_line(line).checks == ()


@pytest.mark.parametrize(
    ("line", "is_read"),
    [
        ("pytest -q; set -e; ls", False),
        ("set -e; pytest -q; ls", True),
        ("set -e; set +e; pytest -q; ls", False),
        ("echo pipefail; pytest -q | tail", False),
        ("pytest -q | tail; set -o pipefail", False),
        ("set -euo pipefail; pytest -q | tail", True),
        ("set -o pipefail && pytest -q | tail", True),
        ("ruff check --exit-zero .", False),
        ("make -i test", False),
        ("pytest -n 4", True),
        ("npm test -- --version", True),
    ],
)
def test_exit_status_of_a_line_is_its_checks(line: str, is_read: bool) -> None:
    assert [check.is_read for check in read_line(line).checks] == [is_read]


@pytest.mark.parametrize(
    ("line", "label"),
    [
        ("docker compose run --rm app pytest -q", "pytest -q"),
        ("docker exec -w /app web npm test", "npm test"),
        ('docker run -e A="b c" img bash -lc "cd /w && pytest -q"', "pytest -q"),
        ("conda run -n x pytest", "pytest"),
        ('ssh host "cd a && make test"', "make test"),
        ("nix develop -c pytest", "pytest"),
        ("find . -name 'test_*.py' | xargs pytest", "pytest"),
        ("pipx run pytest", "pipx run pytest"),
        ("yarn workspace a test", "yarn workspace a test"),
        ("npm --prefix web test", "npm --prefix web test"),
        ("pnpm -w test", "pnpm -w test"),
        ("bun run lint", "bun run lint"),
        ("poetry run test", "poetry run test"),
        ("flutter test", "flutter test"),
        ("scripts/ci.sh", "scripts/ci.sh"),
        ("bash scripts/verify-all.sh", "bash scripts/verify-all.sh"),
        ("script/test", "script/test"),
        ("python tools/lint.py", "python tools/lint.py"),
    ],
)
def test_check_behind_another_program_is_recognized(line: str, label: str) -> None:
    assert [(check.label, check.is_read) for check in read_line(line).checks] == [(label, True)]


def test_detached_container_hides_the_exit_status() -> None:
    assert [check.is_read for check in read_line("docker exec -d app pytest").checks] == [False]


@pytest.mark.parametrize(
    "line",
    [
        *(
            "npm ci",
            "npm ci --prefix web",
            "bun build a.ts",
            "npm install test",
            "docker exec app npm ci",
            "docker exec app cat test.py",
        ),
        *("/usr/bin/test -f a", "test -f a", "cat scripts/ci.sh", "./deploy.sh", "python latest.py", "bash contest.sh"),
        *("docker build -t test .", "conda install pytest", "pipx install pytest", "kubectl get pods test", "yarn install"),
    ],
)
def test_installation_or_reading_is_no_check(line: str) -> None:
    assert read_line(line).checks == ()
