"""`wolo "task"` in a real terminal: what a person sees."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import Hold, Reply, call, delta, error, finish, sse, text, usage
from tests.fakes.screen import pty_wolo


def held_stream(shown: str) -> tuple[Hold, Reply]:
    """An answer that stops in the middle until the test lets it go."""
    hold = Hold()
    return hold, sse(delta(shown), hold, delta(" The end."), finish("stop", usage()))


def test_task_shows_text_calls_changes_and_continuation(provider: ProviderServer) -> None:
    provider.script(
        call("write", {"path": "calculator.py", "content": "def add(a, b):\n    return a + b\n"}, content="I **write** it."),
        text("## Done\n\n- `calculator.py` adds"),
    )
    with pty_wolo("--sandbox", "off", *provider.flags, "create a calculator", columns=80) as terminal:
        assert terminal.wait_for_exit() == 0
    lines = [re.sub(r" \d+(\.\d)? s$", " 0.4 s", line) for line in terminal.text.split("\n") if line]
    session = next(line for line in lines if line.startswith("wolo --resume session_"))
    assert lines[1:] == [
        "I write it.",
        "● write calculator.py +2",
        "  │ 1 + def add(a, b):",
        "  │ 2 +     return a + b",
        "Done",
        "• calculator.py adds",
        "1 file",
        "100 tokens in · 10 out · in 2 requests · 0.4 s",
        session,
    ]
    assert lines[0].startswith("No sandbox is available here")
    assert Path("calculator.py").exists()


def test_five_hundred_lines_stay_in_scrollback_cheaply(provider: ProviderServer) -> None:
    answer = "".join(f"This is line {number} of an answer with many words.\n" for number in range(500))
    provider.script(text(answer, size=300).slow(0.01))
    with pty_wolo(*provider.flags, "go on") as terminal:
        assert terminal.wait_for_exit() == 0
    shown = " ".join(terminal.text.split())
    assert all(line in shown for line in answer.splitlines())
    assert len(terminal.raw) <= 3 * len(answer)
    for forbidden in (b"\x1b[2J", b"\x1b[3J", b"\x1b[?1049h", b"\x1b[?47h"):
        assert forbidden not in terminal.raw


def test_long_lines_are_left_to_the_terminal(provider: ProviderServer) -> None:
    long = " ".join(f"word{number}" for number in range(300))
    code = "x = '" + "y" * 200 + "'"
    provider.script(text(f"{long}\n\n```\n{code}\n```\n"))
    with pty_wolo(*provider.flags, "go on", columns=40) as terminal:
        assert terminal.wait_for_exit() == 0
    lines = terminal.text.split("\n")
    assert long in lines
    assert f"  {code}" in lines


def test_text_appears_while_the_answer_grows(provider: ProviderServer) -> None:
    hold, reply = held_stream("1. first\n2. second\n\n```python\nprint(1)\nprint(2)\n")
    provider.script(reply)
    with pty_wolo(*provider.flags, "go on") as terminal:
        terminal.wait_for("print(2)")
        terminal.wait_for("1. first")
        terminal.wait_for("writing ·")
        hold.release()
        assert terminal.wait_for_exit() == 0


def test_a_paragraph_without_end_appears_too(provider: ProviderServer) -> None:
    hold, reply = held_stream("endless words " * 60)
    provider.script(reply)
    with pty_wolo(*provider.flags, "go on") as terminal:
        terminal.wait_for("endless words " * 4)
        hold.release()
        terminal.wait_for("The end.")
        assert terminal.wait_for_exit() == 0


def test_thinking_shows_in_status_and_leaves_nothing(provider: ProviderServer) -> None:
    hold = Hold()
    thought = delta(reasoning_content="I wonder about the parser")
    provider.script(sse(thought, hold, delta("Answer."), finish("stop", usage())))
    with pty_wolo(*provider.flags, "go on") as terminal:
        terminal.wait_for("thinking ·")
        assert terminal.is_narrow or terminal.shows("I wonder about the parser")
        hold.release()
        assert terminal.wait_for_exit() == 0
    assert not terminal.shows("I wonder")


def test_newest_command_line_is_in_the_status(provider: ProviderServer) -> None:
    provider.script(call("shell", {"command": "echo step one; while [ ! -e go ]; do sleep 0.05; done; echo over"}), text("Good."))
    with pty_wolo(*provider.flags, "--yolo", "go on") as terminal:
        terminal.wait_for("step one ·")
        Path("go").touch()
        assert terminal.wait_for_exit() == 0
    assert terminal.shows("  │ step one\n  │ over")


def test_characters_torn_between_chunks_arrive_whole(provider: ProviderServer) -> None:
    provider.script(text("你好🙂é and 👩‍👩‍👧\n").split(1))
    with pty_wolo(*provider.flags, "go on") as terminal:
        assert terminal.wait_for_exit() == 0
    assert "你好🙂é and 👩‍👩‍👧".encode() in terminal.raw
    assert "�".encode() not in terminal.raw


def test_retry_declares_the_shown_text_void(provider: ProviderServer) -> None:
    broken = text("One line that stays on the screen.\nAnother one.\n" * 5)
    provider.script(broken.cut_at(len(broken.body) - 60), text("The real answer."))
    with pty_wolo(*provider.flags, "go on") as terminal:
        assert terminal.wait_for_exit() == 0
    assert terminal.shows("Discard the answer above.")
    assert terminal.text.index("Discard") < terminal.text.index("The real answer.")


def test_hostile_text_reaches_the_terminal_without_its_power(provider: ProviderServer) -> None:
    hostile = "\x1b]52;c;ZXZpbA==\x07\x1b[2J\x1b]0;title\x07\x1bP1$r\x1b\\\x9b5n\x1b[6n"
    Path("evil.txt").write_text(f"{hostile}harmless\n")
    provider.script(
        call("shell", {"command": "cat evil.txt"}, reasoning=f"{hostile}musing"),
        text(
            f"Said{hostile} \x1b]8;;http://evil.example\x07link\x1b]8;;\x07 and [red]plain[/red] [text](http://far.example/x)",
            size=1,
        ),
    )
    with pty_wolo(*provider.flags, "--yolo", "go on") as terminal:
        assert terminal.wait_for_exit() == 0
    for power in (b"\x1b]", b"\x1bP", b"\x1b[2J", b"\x1b[6n", b"\x9b5n".decode("latin-1").encode()):
        assert power not in terminal.raw
    assert terminal.shows("harmless")
    assert terminal.shows("Said link and [red]plain[/red] text (http://far.example/x)")


@pytest.mark.parametrize("environment", [{"TERM": "dumb"}, {"NO_COLOR": "1"}])
def test_without_colours_no_colour_is_sent(provider: ProviderServer, environment: dict[str, str]) -> None:
    provider.script(
        call("read", {"path": "a.txt"}), text("# Title\n\nwith **bold** and `code`\n\n| a | b |\n|---|---|\n| 1 | 2 |")
    )
    Path("a.txt").write_text("x\n")
    with pty_wolo(*provider.flags, "go on", env=environment) as terminal:
        assert terminal.wait_for_exit() == 0
    assert not re.search(rb"\x1b\[(?:[0-9;]*;)?(?:[34][0-8]|9[0-7]|10[0-7])[0-9;]*m", terminal.raw)
    if environment.get("TERM") == "dumb":
        assert terminal.shows("# Title\n\nwith **bold** and `code`")
        assert b"\x1b" not in terminal.raw
    else:
        assert terminal.shows("Title\n\nwith bold and code\n\na   b\n")
        assert b"\x1b[1mbold" in terminal.raw


def test_a_tiny_terminal_is_enough(provider: ProviderServer) -> None:
    provider.script(
        call("write", {"path": "a-rather-long-name.txt", "content": "hello\n"}, content="x " * 50),
        text("| one | two | three |\n|---|---|---|\n| a | b | c |\n\nGood bye."),
    )
    with pty_wolo(*provider.flags, "go on", rows=5, columns=20) as terminal:
        assert terminal.wait_for_exit() == 0
    assert terminal.shows("Good bye.")


def test_a_narrow_locale_gets_what_it_can_show(provider: ProviderServer) -> None:
    provider.script(text("naïve • 你好"))
    env = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii", "PYTHONCOERCECLOCALE": "0"}
    with pty_wolo(*provider.flags, "go on", env=env) as terminal:
        assert terminal.wait_for_exit() == 0
    assert terminal.shows("na?ve ? ??")


def test_resizing_during_a_stream_harms_nothing(provider: ProviderServer) -> None:
    hold, reply = held_stream("Some text.\n")
    provider.script(reply)
    with pty_wolo(*provider.flags, "go on") as terminal:
        terminal.wait_for("writing ·")
        for number in range(100):
            terminal.resize(24, 20 + number)
        hold.release()
        assert terminal.wait_for_exit() == 0
    assert terminal.shows("Some text.")
    assert not terminal.shows("Traceback")


def test_last_answer_goes_into_a_file_too(provider: ProviderServer) -> None:
    provider.script(text("It is 42."))
    with pty_wolo(*provider.flags, "-o", "answer.txt", "ask") as terminal:
        assert terminal.wait_for_exit() == 0
    assert Path("answer.txt").read_text() == "It is 42.\n"


@pytest.mark.parametrize(
    ("reply", "args", "exit_code"),
    [
        (error(401, {"error": {"message": "bad key"}}), (), 1),
        (text("Half of", finish_reason="length"), (), 1),
        (call("read", {"path": "x"}), ("--max-turns", "1"), 5),
        (call("shell", {"command": "true"}), ("--deny", "shell:*"), 4),
    ],
)
def test_exit_status_equals_a_headless_run(provider: ProviderServer, reply: Reply, args: tuple[str, ...], exit_code: int) -> None:
    provider.script(reply)
    provider.otherwise = text("So be it.")
    with pty_wolo(*provider.flags, *args, "go on") as terminal:
        assert terminal.wait_for_exit() == exit_code
    assert not terminal.shows("Traceback")


def test_failed_start_is_one_sentence(provider: ProviderServer) -> None:
    with pty_wolo(*provider.flags, "--resume", "nothing", "go on") as terminal:
        assert terminal.wait_for_exit() == 3
    assert terminal.shows("There is no session")
    assert not terminal.shows("Traceback")
