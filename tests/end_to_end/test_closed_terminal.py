"""A terminal that closes ends wolo, whatever is open in it: nothing of it stays, and the session can be opened again."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.end_to_end.test_first_run import WITHOUT_ENGINE, first_run
from tests.end_to_end.test_pickers import CHOOSE_FILE
from tests.fakes.command import run_wolo
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import call, text, whole
from tests.fakes.screen import PATIENCE_S, Terminal, pty_wolo

STUBBORN = "#!/bin/sh\ntrap '' HUP TERM\necho in the editor\nexec sleep 1000\n"
PAIR = {"question": "Which database?", "options": ["Postgres", "SQLite"]}


def waited_for(terminal: Terminal) -> int:
    """The exit status, without reading from the terminal."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        pid, status = os.waitpid(terminal.child.pid, os.WNOHANG)
        if pid:
            process = terminal.child.ptyproc
            process.closed = process.terminated = terminal.child.terminated = True
            return os.waitstatus_to_exitcode(status)
        assert time.monotonic() < deadline, "it did not end"
        time.sleep(0.01)


def closed(terminal: Terminal) -> int:
    terminal.child.ptyproc.fileobj.close()
    return waited_for(terminal)


def hung_up(terminal: Terminal) -> int:
    os.kill(terminal.child.pid, signal.SIGHUP)
    return terminal.wait_for_exit()


def terminated(terminal: Terminal) -> int:
    os.kill(terminal.child.pid, signal.SIGTERM)
    return terminal.wait_for_exit()


def nothing_open(terminal: Terminal) -> None:
    """The empty prompt."""


def typed(line: str, shown: str) -> Callable[[Terminal], None]:
    def open_it(terminal: Terminal) -> None:
        terminal.type(line)
        terminal.wait_for(shown)

    return open_it


def entered(line: str, shown: str) -> Callable[[Terminal], None]:
    return typed(f"{line}\r", shown)


def login(terminal: Terminal) -> None:
    terminal.enter("/login openai")
    terminal.wait_for("API key")


SCENES = {
    "empty prompt": nothing_open,
    "approval": entered("make it", "Yes"),
    "questions": entered("ask me", "Which database?"),
    "sessions": entered("/resume", "Enter select"),
    "models": entered("/model", "Enter select"),
    "prompts": entered("/rewind", "Enter select"),
    "providers": entered("/login", "Enter select"),
    "secret": login,
    "files": typed(CHOOSE_FILE, "Enter select"),
    "mentions": typed("@", "notes.md"),
    "commands": typed("/re", "/resume"),
    "editor": typed("\x07", "in the editor"),
    "doctor": entered("/doctor", "/doctor"),
}


@contextmanager
def standing(provider: ProviderServer, tmp_path: Path, scene: str, *, forked: bool = True) -> Iterator[Terminal]:
    Path("notes.md").write_text("Notes.\n")
    editor = tmp_path / "editor"
    editor.write_text(STUBBORN)
    editor.chmod(0o755)
    if scene in ("sessions", "prompts"):
        provider.script(text("Some answer."), text("Some answer."))
        for words in ("some words", "other words"):
            assert run_wolo(*provider.flags, "-p", words).exit_code == 0
        provider.forget_prefix()  # with a person there, one tool more is offered
    provider.script({"questions": call("ask", {"questions": [PAIR]})}.get(scene, call("shell", {"command": "touch made"})))
    args = [*provider.flags, "--mode", "edit", *(["--continue"] if scene == "prompts" else [])]
    with pty_wolo(*args, env={"VISUAL": str(editor)}, forked=forked) as terminal:
        terminal.wait_for_prompt()
        SCENES[scene](terminal)
        yield terminal


def left_behind(tmp_path: Path) -> list[str]:
    """Locks of sessions, and processes that were started here."""
    locks = [str(path) for path in tmp_path.rglob("session_*.lock")]
    here = str(Path.cwd())
    processes = [path for path in Path("/proc").iterdir() if path.name.isdecimal() and path.name != str(os.getpid())]
    return locks + [each.name for each in processes if _directory(each) == here]


def _directory(process: Path) -> str:
    try:
        return str((process / "cwd").readlink())
    except OSError:
        return ""


@pytest.mark.sweep(every=3)
@pytest.mark.unfit("small", reason="it does not show the whole of what is open")
@pytest.mark.parametrize(
    ("scene", "ends", "status"),
    [
        *((scene, closed, 129) for scene in SCENES),
        *(pytest.param(scene, hung_up, 129, marks=() if scene == "approval" else pytest.mark.soak) for scene in SCENES),
        *(pytest.param(scene, terminated, 143, marks=() if scene == "editor" else pytest.mark.soak) for scene in SCENES),
    ],
)
def test_wolo_ends_with_its_terminal(
    provider: ProviderServer, tmp_path: Path, scene: str, ends: Callable[[Terminal], int], status: int
) -> None:
    with standing(provider, tmp_path, scene) as terminal:
        assert ends(terminal) == status
    assert left_behind(tmp_path) == []
    assert not Path("made").exists()


@pytest.mark.unfit("small", reason="it does not show the whole of what is open")
@pytest.mark.parametrize("scene", ["sessions", "editor"])
def test_a_terminal_that_ends_silently_ends_wolo(provider: ProviderServer, tmp_path: Path, scene: str) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as under nohup: a new interpreter inherits it
    try:
        with standing(provider, tmp_path, scene, forked=False) as terminal:
            assert closed(terminal) == 129
    finally:
        signal.signal(signal.SIGHUP, before)
    assert left_behind(tmp_path) == []


@pytest.mark.parametrize("ends", [closed, hung_up])
def test_the_list_of_sessions_ends_with_it(provider: ProviderServer, ends: Callable[[Terminal], int]) -> None:
    provider.script(text("Some answer."))
    assert run_wolo(*provider.flags, "-p", "some words").exit_code == 0
    with pty_wolo("--resume", *provider.flags) as terminal:
        terminal.wait_for("some words")
        assert ends(terminal) == 129


@pytest.mark.parametrize("ends", [closed, hung_up])
@pytest.mark.parametrize("prompt", [(), ("go",)])
def test_the_question_of_trust_ends_with_it(
    provider: ProviderServer, tmp_path: Path, prompt: tuple[str, ...], ends: Callable[[Terminal], int]
) -> None:
    Path(".git").mkdir()
    Path(".wolo").mkdir()
    Path(".wolo/config.toml").write_text('permissions.deny = ["read:secret.txt"]\n')
    with pty_wolo(*prompt, *provider.flags) as terminal:
        terminal.wait_for("rust it")
        assert ends(terminal) == 129
    assert provider.requests == []


@pytest.mark.parametrize("ends", [closed, hung_up])
def test_the_first_run_ends_with_it(provider: ProviderServer, tmp_path: Path, ends: Callable[[Terminal], int]) -> None:
    provider.pages["/v1/models"] = whole({"object": "list", "data": [{"id": "qwen3:8b"}]})
    with first_run(tmp_path, WITHOUT_ENGINE, OLLAMA_HOST=provider.origin) as terminal:
        terminal.wait_for("No model is set up")
        assert ends(terminal) == 129
