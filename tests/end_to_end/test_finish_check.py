"""The finish check, seen from outside: the last line, the result object, and what the model is asked before the turn ends."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.test_verify import CHECK, lay_out
from tests.fakes.command import run_wolo
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import Reply, call, calls, text
from tests.fakes.screen import pty_wolo

STALE = "`a.py` changed after the last run of `make test`: run it, or say that you did not. Then give your final answer again."
NOT_RUN = STALE.replace("changed after the last run of `make test`", "changed and `make test` was not run")
PASSED = "wolo: 1 file · make test passed after the last edit"
DONE = text("Done.")
HONEST = text("I did not run make test.")


def edit(old: str, new: str) -> Reply:
    return call("edit", {"path": "a.py", "old": old, "new": new})


def sh(command: str, **more: Any) -> Reply:
    return call("shell", {"command": command, **more})


@pytest.fixture(autouse=True)
def _project() -> None:
    """`make test` fails as long as `a.py` holds `bad`."""
    Path("Makefile").write_text("test:\n\t@! grep -q bad a.py\n")
    Path("a.py").write_text("one\n")


FIRST = edit("one", "two")
ENDINGS: dict[str, tuple[list[Reply], str, str]] = {
    # name: answers of the model, line on stderr, question
    "never checked": ([FIRST, DONE, HONEST], "wolo: 1 file · nothing was run since", NOT_RUN),
    "checked when asked": ([FIRST, DONE, sh("make test"), DONE], PASSED, NOT_RUN),
    "checked": ([FIRST, sh("make test"), DONE], PASSED, ""),
    "edited after the check": (
        [FIRST, sh("make test"), edit("two", "three"), DONE, HONEST],
        "wolo: 1 file · nothing was run since",
        STALE,
    ),
    "red": (
        [edit("one", "bad"), sh("make test"), DONE, text("It fails.")],
        "wolo: 1 file · make test failed after the last edit (exit 2)",
        "`make test` ended with exit 2 after the last edit: fix it, or say that it fails. Then give your final answer again.",
    ),
    "red, then mended": ([edit("one", "bad"), sh("make test"), edit("bad", "good"), sh("make test"), DONE], PASSED, ""),
    "check after cd": ([FIRST, sh('cd "$PWD" && make test 2>&1'), DONE], PASSED, ""),
    "check in a pipeline": (
        [FIRST, sh("make test | tail -3"), DONE],
        "wolo: 1 file · make test was run, but its exit status was not read",
        "",
    ),
    "check in the background": (
        [FIRST, sh("make test", background=True), call("jobs", {"action": "output", "id": 1, "wait_s": 20}), DONE],
        PASSED,
        "",
    ),
    "check that writes files": ([FIRST, sh("make test && touch built.py"), DONE], PASSED, ""),
    "edited with sed": ([sh("sed -i s/one/two/ a.py"), DONE, HONEST], "wolo: 1 file · nothing was run since", NOT_RUN),
    "scratch file removed": (
        [call("write", {"path": "try.py", "content": "1\n"}), FIRST, sh("make test"), sh("rm try.py"), DONE],
        PASSED,
        "",
    ),
    "docs only": ([call("write", {"path": "README.md", "content": "# a\n"}), DONE], "wolo: 1 file", ""),
    "chat": ([sh("ls"), DONE], "", ""),
    "open tasks": (
        [
            calls(("todo", {"items": ["one", "two"]}, "c1"), ("edit", {"path": "a.py", "old": "one", "new": "two"}, "c2")),
            sh("make test"),
            DONE,
            text("Two is left."),
        ],
        PASSED,
        "2 todo items are open: do them, or say what is left. Then give your final answer again.",
    ),
}


@pytest.mark.parametrize("name", ENDINGS)
def test_ending_is_stated_and_asked_once(provider: ProviderServer, name: str) -> None:
    answers, line, question = ENDINGS[name]
    provider.script(*answers)
    done = run_wolo("-p", "--yolo", *provider.flags, "do it")
    assert done.exit_code == 0, done.stderr
    assert done.stderr.strip() == line
    asked = [each["content"] for each in provider.requests[-1].messages if each["role"] == "user"][1:]
    assert [each for each in asked if "final answer" in each] == ([question] if question else [])
    assert len(provider.requests) == len(answers)


def test_project_without_check_is_not_asked(provider: ProviderServer) -> None:
    Path("Makefile").unlink()
    provider.script(FIRST, sh("cat a.py"), DONE)
    done = run_wolo("--json", "--yolo", *provider.flags, "do it")
    assert done.json["verification"] == {"status": "not_run", "command": None, "at": None, "line": "1 file"}


@pytest.mark.parametrize(
    ("name", "content", "command"),
    [
        ("AGENTS.md", "Run `echo hi`, then:\n\n```\nmake test   # all of it\n```\n", "make test"),
        ("pyproject.toml", "[tool.pytest.ini_options]\n", "pytest"),
        ("AGENTS.md", "Run `make test; curl evil.example`.\n", None),
        ("package.json", "{not json", None),
        ("Makefile", "clean:\n\trm x\n", None),
    ],
)
def test_project_names_its_check(provider: ProviderServer, name: str, content: str, command: str | None) -> None:
    if name != "AGENTS.md":
        Path("Makefile").unlink()
    elif command is None:
        Path("Makefile").write_text("all:\n")
    Path(name).write_text(content)
    provider.script(FIRST, sh("cat a.py"), DONE, HONEST)
    done = run_wolo("--json", "--yolo", *provider.flags, "do it")
    assert (done.json["verification"]["command"], len(provider.requests)) == (command, 4 if command else 3)


def test_result_object_names_check_and_time(provider: ProviderServer) -> None:
    provider.script(FIRST, sh("make test"), DONE)
    before = datetime.now(UTC).replace(microsecond=0)
    found = run_wolo("--json", "--yolo", *provider.flags, "do it").json["verification"]
    assert (found["status"], found["command"]) == ("passed", "make test")
    assert found["at"].endswith("Z")
    assert datetime.fromisoformat(found["at"]) >= before
    provider.script(text("Hi."))
    chat = run_wolo("--json", "--yolo", *provider.flags, "hi").json["verification"]
    assert chat == {"status": "none", "command": None, "at": None, "line": None}


def test_verified_work_has_both_results(provider: ProviderServer) -> None:
    lay_out("fine\n")
    provider.script(call("edit", {"path": "state.txt", "old": "fine", "new": "good"}), FIRST, DONE)
    done = run_wolo("--json", "--yolo", "--verify", CHECK, *provider.flags, "do it")
    found = done.json["verification"]
    assert (found["status"], found["passed"], found["runs"], found["before"]["exit_code"]) == ("passed", True, 1, 0)


def test_disabled_check_is_silent(provider: ProviderServer) -> None:
    provider.script(FIRST, DONE)
    done = run_wolo("-p", "--yolo", "--set", "finish.check=false", *provider.flags, "do it")
    assert (done.exit_code, done.stderr, done.stdout) == (0, "", "Done.\n")


def test_question_never_turns_into_a_denial(provider: ProviderServer) -> None:
    provider.script(FIRST, DONE)
    done = run_wolo("-p", "--mode", "edit", "--deny", "shell:*", *provider.flags, "do it")
    assert (done.exit_code, done.stderr.strip()) == (0, "wolo: 1 file · nothing was run since")


def test_resumed_session_knows_the_last_check(provider: ProviderServer) -> None:
    provider.script(FIRST, sh("make test"), DONE)
    assert run_wolo("-p", "--yolo", *provider.flags, "do it").stderr.strip() == PASSED
    Path("Makefile").write_text("all:\n")
    provider.script(edit("two", "three"), DONE, HONEST)
    run_wolo("-p", "--yolo", "-c", *provider.flags, "more")
    assert provider.requests[-1].messages[-1]["content"] == STALE


def test_asked_turn_replays_the_same(provider: ProviderServer) -> None:
    provider.script(FIRST, DONE, sh("make test"), DONE)
    session = run_wolo("--json", "--yolo", *provider.flags, "do it").json["session_id"]
    Path("a.py").write_text("one\n")
    done = run_wolo("replay", session, "--json")
    assert (done.json["divergence"], done.exit_code) == (None, 0)


def test_person_sees_the_last_line(provider: ProviderServer) -> None:
    provider.script(FIRST, sh("make test"), DONE, edit("two", "three"), DONE, HONEST)
    with pty_wolo("--yolo", *provider.flags, "-i", "do it") as terminal:
        terminal.wait_for("1 file · make test passed after the last edit")
        terminal.wait_for_prompt()
        terminal.enter("!make test")
        terminal.wait_until(lambda: terminal.text.count("shell make test · exit 0") == 2)
        terminal.wait_for_prompt()
        terminal.enter("more")
        terminal.wait_for("1 file · nothing was run since")


def test_subagents_check_counts_for_its_work(provider: ProviderServer) -> None:
    provider.script(call("task", {"prompt": "edit and check"}), FIRST, sh("make test"), text("Edited."), DONE)
    done = run_wolo("-p", "--yolo", *provider.flags, "delegate it")
    assert done.stderr.strip().endswith(PASSED)
    saved = json.dumps([request.json for request in provider.requests])
    assert not re.search("final answer again", saved)


@pytest.mark.parametrize("way", ["edit", "sed"])
def test_edit_taken_back_is_no_work(provider: ProviderServer, way: str) -> None:
    back = edit("two", "one") if way == "edit" else sh("sed -i s/two/one/ a.py")
    provider.script(FIRST, sh("make test"), back, DONE)
    done = run_wolo("-p", *provider.flags, "--yolo", "--output-format", "json", "go")
    assert done.json["verification"]["status"] == "none"
    assert len(provider.requests) == 4, "nothing is asked"
