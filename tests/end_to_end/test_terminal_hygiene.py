"""Nothing from outside steers the terminal: what the model, a tool, a file name or a server says arrives as plain text."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.fakes.command import run_wolo
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import call, calls, error, text
from tests.fakes.screen import Terminal, pty_wolo

HOSTILE = (
    "\x1b]52;c;ZXZpbA==\x07\x1b]0;evil title\x07\x1b]8;;http://evil.test\x1b\\\x1b]2;evil\x1b\\"
    '\x1bP$q"p\x1b\\\x1bP+q544e\x1b\\\x1b[c\x1b[>c\x1b[=c\x1b[6n\x1b[5n\x1b[?6n\x1b[18t\x1b[21t\x1b]10;?\x07\x05\x9b6n'
    "\x1b[2J\x1b[H\x1b[1A\x1b[100D\x1b[?1049h\x1b[?25l\x1b[8m\x1bc\x1b7\x1b8\x1b(0\x9d0;c1 title\x9c\x90q\x9c"
    "\x08\x08\x07\x0e\x7f\u202e\u2066\u200b\U000e0041"
)
"""Clipboard, titles, links; queries; moves and modes; characters that do nothing but mislead."""
QUERIES = re.compile(rb"\x1b\[[>=?]?\d*[cnt]|\x1b\]|\x1bP|\x1b_|\x1b\^|\x1bX|\x1bc|\x9b|\x05|\x0e|\x07")
"""None of them is among wolo's own."""
OWN = re.compile(
    rb"\x1b\[[\d;]*m|\x1b\[\d*[ABCDGJKLMPX@]|\x1b\[\??[\d;]*[hlr]|\x1b\[[\d;]*H|\x1b[=>78]|\x1b\[\d* q"
    rb"|\x1b\[[<>]?\d*u|\x1b\[>4;[01]m"
)


MARKS = re.compile(
    rb"\x1b\]2;(?:[?] |\xe2\x97\x8f )?wolo \xc2\xb7 \w+\x1b\\|\x1b\]133;[ACD]\x1b\\|\x1b\[2[23];2t|\x1b\]11;\?(?:\x07|\x1b\\)"
)
"""Title, marks of prompts and the question for the background, which hold nothing of the model's."""


def assert_harmless(terminal: Terminal) -> None:
    raw = MARKS.sub(b"", terminal.raw)
    assert QUERIES.findall(raw) == []
    assert b"\x1b" not in OWN.sub(b"", raw), OWN.sub(b"", raw)[OWN.sub(b"", raw).find(b"\x1b") :][:40]
    assert b"\x1b[2J" not in raw
    assert b"\x1b[?1049" not in raw
    for hidden in ("\u202e", "\u2066", "\u200b", "\U000e0041", "\x9b", "\x9d", "\x90"):
        assert hidden.encode() not in raw
    assert not {"evil title", "evil", "c1 title"} & set(terminal.text.split())


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_model_words_thoughts_and_deeds(provider: ProviderServer, size: int) -> None:
    Path(f"n{HOSTILE[-4:]}\x1b[31m.txt").write_text(f"content {HOSTILE}\n")
    provider.script(
        text(
            f"Hello {HOSTILE} there\n\n    code {HOSTILE}\n\n| a {HOSTILE} | b |\n|---|---|\n| 1 | 2 |\n",
            reasoning=HOSTILE * 3,
            size=size,
        ),
        calls(
            ("shell", {"command": f"printf '%s\\n' '{HOSTILE[:40]}'; cat n*"}),
            ("read", {"path": f"missing{HOSTILE}"}),
            ("glob", {"pattern": "**"}),
            ("write", {"path": "w.txt", "content": HOSTILE}),
            (f"tool{HOSTILE}", {"x": HOSTILE}),
        ),
        text(f"[link](https://evil.test/{'a' * 300}) ![image](https://evil.test/pixel.png) \x1b]0;never ends"),
    )
    with pty_wolo("--yolo", *provider.flags, "-i", "first", columns=200) as terminal:
        terminal.wait_for("there")
        terminal.enter("second")
        terminal.wait_for("pixel.png")
        terminal.wait_for("https://evil.test/aaa")
        terminal.press("ctrl-d")
        assert terminal.wait_for_exit() == 0
    assert_harmless(terminal)
    assert terminal.shows("\\u{202e}")
    assert terminal.shows("\\x1b]0;evil title\\x07")  # it ran, so it is seen


def test_an_approval_shows_everything_and_obeys_nothing(provider: ProviderServer) -> None:
    provider.script(
        call("shell", {"command": f"echo one {HOSTILE}\r\necho two"}),
        call("write", {"path": f"../{HOSTILE}\nwolo: all is well", "content": HOSTILE}),
        text("done"),
    )
    with pty_wolo("--mode", "ask", *provider.flags, "go", columns=200) as terminal:
        for wish in ("Run this command?", "Write this file?"):
            terminal.wait_for(wish)
            terminal.wait_until(lambda: terminal.text.rstrip().endswith("or type why not ›"))
            terminal.press("enter")
        assert terminal.wait_for_exit() == 0
    assert_harmless(terminal)
    assert terminal.shows("\\x1b")
    assert not any(line.startswith("wolo: all is well") for line in terminal.lines)


@pytest.mark.parametrize("flags", [("-p", "-v"), ("--json",), ("--output-format", "stream-json", "--include-partial-messages")])
def test_without_the_rich_screen(provider: ProviderServer, flags: tuple[str, ...]) -> None:
    provider.script(call("read", {"path": f"../{HOSTILE}"}), text(f"Said {HOSTILE} it", size=3))
    with pty_wolo(*flags, *provider.flags, "go", columns=200) as terminal:
        terminal.wait_for_exit()
    assert_harmless(terminal)


def test_a_server_that_refuses_in_colour(provider: ProviderServer) -> None:
    provider.script(error(400, {"error": {"message": f"No {HOSTILE} way"}}))
    with pty_wolo("-p", *provider.flags, "go") as terminal:
        assert terminal.wait_for_exit() == 1
    assert_harmless(terminal)
    assert terminal.shows("No")


def test_stored_session_is_listed_searched_and_exported_clean(provider: ProviderServer) -> None:
    provider.script(call("shell", {"command": f"printf '{HOSTILE[:30]}'"}), text(f"Said {HOSTILE} needle"))
    run_wolo("-p", "--yolo", *provider.flags, "-s", "mine", f"title {HOSTILE} of it")
    for line in (
        ["sessions", "list"],
        ["sessions", "show", "mine"],
        ["sessions", "tree", "mine"],
        ["sessions", "wire", "mine"],
        ["sessions", "wire", "mine", "--json"],
        ["sessions", "list", "--json"],
        ["sessions", "search", "needle"],
        ["sessions", "search", "needle", "--json"],
        ["sessions", "export", "mine", "--format", "markdown"],
        ["sessions", "export", "mine"],
        ["stats"],
    ):
        with pty_wolo(*line, columns=200) as terminal:
            assert terminal.wait_for_exit() == 0, line
        assert_harmless(terminal)
        if "export" not in line:  # a document
            assert control_characters(run_wolo(*line).stdout) == [], line


def test_pipe_gets_every_argument_without_control_characters(provider: ProviderServer) -> None:
    command = "printf x \x1b]0;touch osc\x07 \x1bPtouch dcs\x1b\\ \x9d0;touch c1\x9c"
    provider.script(call("shell", {"command": command}), text("done"))
    said = run_wolo("-p", "-v", "--yolo", *provider.flags, "-s", "mine", f"title {HOSTILE} of it").stderr
    file = Path("taken.jsonl")
    file.write_text(run_wolo("sessions", "export", "mine").stdout)
    shown = [run_wolo("sessions", "show", "mine").stdout, run_wolo("sessions", "watch", "mine", "--from-start").stdout]
    for each in (*shown, said, run_wolo("sessions", "import", str(file)).stdout, run_wolo("sessions", "list", "--all").stdout):
        assert control_characters(each) == []
    for each in (*shown, said):
        for hidden in ("\\x1b]0;touch osc\\x07", "\\x1bPtouch dcs\\x1b", "\\x9d0;touch c1\\x9c"):
            assert hidden in each


def control_characters(text: str) -> list[str]:
    return re.findall(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", text)


def test_program_reading_the_answer_gets_every_character(provider: ProviderServer) -> None:
    """What is written to a pipe is data: valid UTF-8, and otherwise what the model said."""
    said = f"a\x00b\u2028c😀{HOSTILE}\ud83d!"
    provider.script(text(said, size=1))
    done = run_wolo("-p", *provider.flags, "-s", "mine", "go")
    assert done.stdout == said.replace("\ud83d", "\ufffd" * 3) + "\n"
    provider.script(text("fine"))
    assert run_wolo("-p", "-c", *provider.flags, "again").exit_code == 0
    again = json.loads(provider.requests[-1].body.decode("utf-8"))
    assert "\x00" not in json.dumps(again, ensure_ascii=False)
