"""A folder that brings something along: what is asked at the keyboard, what is kept of the answer, and what holds then."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pexpect
import pytest

from tests.fakes.command import run_wolo
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import call, text
from tests.fakes.screen import Terminal, pty_wolo
from wolo.config import consents
from wolo.places import find_places

QUESTION = "Trust it? [y]es  [N]ot now  [never]"
DENY = '[permissions]\ndeny = ["read:secret.txt"]\n'
IN_A_SECOND = (
    "import wolo.frontends.terminal.dialogs.project_consent as asking; asking.ANSWER_WITHIN_S = 1.0; "
    "from wolo.__main__ import main; main()"
)


@pytest.fixture
def store(isolated: Path) -> Path:
    return isolated / "wolo" / "state" / "trust.json"


@pytest.fixture
def project() -> Path:
    Path(".wolo").mkdir()
    Path(".wolo/config.toml").write_text(DENY)
    Path("secret.txt").write_text("CANARY")
    return Path.cwd()


def wants_secret(provider: ProviderServer) -> None:
    provider.forget_prefix()
    provider.script(call("read", {"path": "secret.txt"}), text("Done."))


def kept(store: Path) -> dict[str, Any]:
    return json.loads(store.read_text()) if store.exists() else {}


def test_nothing_to_trust_asks_nobody(provider: ProviderServer, store: Path) -> None:
    provider.script(text("Hello."))
    with pty_wolo("hi", *provider.flags) as terminal:
        terminal.wait_for("Hello.")
        assert terminal.wait_for_exit() == 0
    assert not terminal.shows("Trust it?")
    assert not store.exists()


def test_yes_is_kept_and_project_rules_hold_afterwards(provider: ProviderServer, project: Path, store: Path) -> None:
    wants_secret(provider)
    with pty_wolo("go", *provider.flags) as terminal:
        terminal.wait_for(QUESTION)
        terminal.wait_for("settings  .wolo/config.toml")
        terminal.enter("y")
        terminal.wait_for("Done.")
        assert terminal.wait_for_exit() == 4
    assert provider.requests[-1].results[0].startswith("Denied")
    assert [(folder, each["answer"]) for folder, each in kept(store).items()] == [(str(project), "trusted")]
    wants_secret(provider)
    with pty_wolo("go", *provider.flags) as terminal:
        terminal.wait_for("Done.")
        assert terminal.wait_for_exit() == 4
    assert not terminal.shows("Trust it?")
    assert provider.requests[-1].results[0].startswith("Denied")
    wants_secret(provider)
    done = run_wolo("-p", "--json", "go", *provider.flags)
    assert done.json["permission_denials"][0]["reason"].startswith("Reading secret.txt is denied by the rule")
    assert run_wolo("trust", "--json").json["trusted"] is True
    assert run_wolo("trust", "forget").exit_code == 0
    assert kept(store) == {}


@pytest.mark.sweep(every=3)
@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(lambda terminal: terminal.press("enter"), id="Enter"),
        pytest.param(lambda terminal: terminal.enter("n"), id="n"),
        pytest.param(lambda terminal: terminal.enter("yess"), id="another word"),
        pytest.param(lambda terminal: terminal.enter("y y"), id="two words"),
        pytest.param(lambda terminal: terminal.press("ctrl-d"), id="Ctrl-D"),
    ],
)
def test_other_answers_leave_it_untrusted_and_ask_again(
    provider: ProviderServer, project: Path, store: Path, answer: Callable[[Terminal], None]
) -> None:
    wants_secret(provider)
    with pty_wolo("go", *provider.flags) as terminal:
        terminal.wait_for(QUESTION)
        answer(terminal)
        terminal.wait_for("Done.")
        assert terminal.wait_for_exit() == 0
    assert "CANARY" in provider.requests[-1].results[0]
    assert terminal.shows("is not trusted, so these are not used")
    assert kept(store) == {}
    with pty_wolo("go", *provider.flags) as terminal:
        terminal.wait_for(QUESTION)


def test_ctrl_c_leaves_and_keeps_nothing(provider: ProviderServer, project: Path, store: Path) -> None:
    with pty_wolo("go", *provider.flags) as terminal:
        terminal.wait_for(QUESTION)
        terminal.press("ctrl-c")
        assert terminal.wait_for_exit() == 130
    assert (kept(store), provider.requests) == ({}, [])


def test_a_terminal_that_is_closed_keeps_nothing(provider: ProviderServer, project: Path, store: Path) -> None:
    with pty_wolo("go", *provider.flags) as terminal:
        terminal.wait_for(QUESTION)
        terminal.child.kill(signal.SIGHUP)
        assert terminal.wait_for_exit() == 129
    assert (kept(store), provider.requests) == ({}, [])


def test_unanswered_question_continues_untrusted(provider: ProviderServer, project: Path, store: Path) -> None:
    wants_secret(provider)
    child = pexpect.spawn(
        sys.executable, ["-c", IN_A_SECOND, "go", *provider.flags], env={**os.environ, "TERM": "xterm-256color"}
    )
    child.expect_exact("Trust it?")
    child.expect_exact("Done.")
    child.expect(pexpect.EOF)
    child.close()
    assert (child.exitstatus, kept(store)) == (0, {})
    assert "CANARY" in provider.requests[-1].results[0]


def test_never_is_kept_silently(provider: ProviderServer, project: Path, store: Path) -> None:
    for asked in (True, False):
        wants_secret(provider)
        with pty_wolo("go", *provider.flags) as terminal:
            if asked:
                terminal.wait_for(QUESTION)
                terminal.enter("never")
            terminal.wait_for("Done.")
            assert terminal.wait_for_exit() == 0
        assert (terminal.shows("Trust it?")) == asked
        assert "is not trusted" not in terminal.text.replace("\n", "")
        assert "CANARY" in provider.requests[-1].results[0]
    assert [each["answer"] for each in kept(store).values()] == ["never"]


def test_early_typing_answers_no_trust_question(provider: ProviderServer, project: Path, store: Path) -> None:
    provider.script(text("Done."))
    with pty_wolo("go", *provider.flags) as terminal:
        terminal.type("y\ry\ry\r")
        terminal.wait_for("This folder contains files")
        terminal.type("y\ry\r")
        terminal.wait_for(QUESTION)
        terminal.press("enter")
        terminal.wait_for("Done.")
        assert terminal.wait_for_exit() == 0
    assert kept(store) == {}


def test_headless_runs_ask_nobody_and_trust_lasts_once(provider: ProviderServer, project: Path, store: Path) -> None:
    wants_secret(provider)
    with pty_wolo("-p", "go", *provider.flags) as terminal:
        assert terminal.wait_for_exit() == 0
    assert not terminal.shows("Trust it?")
    assert "CANARY" in provider.requests[-1].results[0]
    wants_secret(provider)
    assert run_wolo("-p", "go", "--trust", *provider.flags, stdin="y\n").exit_code == 4
    assert provider.requests[-1].results[0].startswith("Denied")
    wants_secret(provider)
    with pty_wolo("go", "--trust", *provider.flags) as terminal:
        terminal.wait_for("Done.")
        assert terminal.wait_for_exit() == 4
    assert not terminal.shows("Trust it?")
    assert provider.requests[-1].results[0].startswith("Denied")
    assert kept(store) == {}
    wants_secret(provider)
    done = run_wolo("-p", "go", *provider.flags, stdin="y\n")
    assert done.exit_code == 0
    assert done.stderr.count("is not trusted") == 1


def test_trust_covers_one_folder_only(provider: ProviderServer, project: Path, tmp_path: Path) -> None:
    consents.save_trust(find_places(), project, "trusted")
    inner, beside, above = project / "inner", tmp_path / f"{project.name}-evil", tmp_path
    (inner / ".git").mkdir(parents=True)
    for folder in (inner, beside, above):
        shutil.copytree(project / ".wolo", folder / ".wolo")
        shutil.copy(project / "secret.txt", folder)
    alias = tmp_path / "alias"
    alias.symlink_to(project)

    def is_trusted(folder: Path) -> bool:
        wants_secret(provider)
        run_wolo("-p", "go", *provider.flags, cwd=folder)
        return provider.requests[-1].results[0].startswith("Denied")

    assert [is_trusted(folder) for folder in (project, alias)] == [True, True]
    assert [is_trusted(folder) for folder in (inner, beside, above)] == [False, False, False]
    alias.unlink()
    alias.symlink_to(beside)
    moved = project.rename(tmp_path / "moved")
    beside.rename(project)
    assert [is_trusted(folder) for folder in (project, moved)] == [False, False]


@pytest.mark.parametrize(("env", "rows", "columns"), [({"TERM": "dumb"}, 24, 80), ({"LC_ALL": "C"}, 24, 80), ({}, 5, 20)])
def test_it_can_be_answered_on_every_terminal(
    provider: ProviderServer, project: Path, store: Path, env: dict[str, str], rows: int, columns: int
) -> None:
    provider.script(text("Done."))
    with pty_wolo("go", *provider.flags, env=env, rows=rows, columns=columns) as terminal:
        terminal.wait_until(lambda: "never]" in terminal.text.replace("\n", ""))
        terminal.enter("y")
        terminal.wait_for("Done.")
        assert terminal.wait_for_exit() == 0
    assert [each["answer"] for each in kept(store).values()] == ["trusted"]


def test_unkeepable_answer_is_reported_and_void(provider: ProviderServer, project: Path, store: Path) -> None:
    store.parent.parent.mkdir(parents=True)
    store.parent.write_text("a file where the directory should be")
    wants_secret(provider)
    with pty_wolo("go", "--no-session", *provider.flags, columns=200) as terminal:
        terminal.wait_for(QUESTION)
        terminal.enter("y")
        terminal.wait_for("Cannot save your answer")
        terminal.wait_for("Done.")
    assert "CANARY" in provider.requests[-1].results[0]


def test_names_in_the_question_are_spelled_out(provider: ProviderServer) -> None:
    folder = Path("a\n  Trust it? [y]\x1b[2J\u202e")
    folder.mkdir()
    (folder / ".mcp.json").touch()
    with pty_wolo("go", *provider.flags, cwd=folder) as terminal:
        terminal.wait_for(QUESTION)
    assert b"\x1b[2J" not in terminal.raw
    assert terminal.shows("a\\n  Trust it? [y]\\x1b[2J\\u{202e}")


def test_trust_does_not_change_the_mode(provider: ProviderServer, project: Path) -> None:
    shown = set()
    for answer in ("y", "n"):
        run_wolo("trust", "forget")
        with pty_wolo("--mode", "ask", *provider.flags, columns=80) as terminal:
            terminal.wait_for("› 3")
            terminal.type(answer)
            terminal.wait_for("/help shows the rest")
        shown.add(next(line for line in terminal.text.split("\n") if line.startswith("wolo · ")))
    assert len(shown) == 1
    assert " · ask ·" in shown.pop()


def test_session_of_another_folder_asks_there_too(provider: ProviderServer, project: Path, tmp_path: Path, store: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / ".mcp.json").touch()
    provider.script(text("Hello."))
    assert run_wolo("-p", "hi", "-s", "there", *provider.flags, cwd=other).exit_code == 0
    provider.forget_prefix()
    provider.script(text("Here I am."))
    with pty_wolo("-s", "there", "go", "--trust", *provider.flags) as terminal:
        terminal.wait_for("Continue there?")
        terminal.enter("y")
        terminal.wait_for(QUESTION)
        terminal.press("enter")
        terminal.wait_for("Here I am.")
        assert terminal.wait_for_exit() == 0
    assert kept(store) == {}
