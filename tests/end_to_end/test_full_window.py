"""A conversation that outgrows the model's window, seen from outside: it goes on, says so, and the session keeps everything."""

from __future__ import annotations

from pathlib import Path

from tests.fakes.command import run_wolo
from tests.fakes.provider_server import Asked, ProviderServer
from tests.fakes.replies import Reply, call, error, text
from tests.fakes.screen import pty_wolo

TOO_LONG = error(400, {"error": {"code": "context_length_exceeded", "message": "maximum context length is 9000 tokens"}})
LIMIT_BYTES = 34_000


def small_window(provider: ProviderServer) -> list[int]:
    """The server refuses what is larger than its window; what it took is returned, in bytes."""
    taken: list[int] = []

    def reply(asked: Asked) -> Reply:
        if len(asked.body) > LIMIT_BYTES:
            provider.forget_prefix()
            return TOO_LONG
        taken.append(len(asked.body))
        number = len(taken)
        return text(f"Read {number // 2} files.") if number % 2 == 0 else call("read", {"path": "long.txt"})

    provider.otherwise = reply
    return taken


def write_long_file() -> None:
    Path("long.txt").write_text("".join(f"line {number} of a long file\n" for number in range(250)), encoding="utf-8")


def test_session_continues_after_its_window_is_full(provider: ProviderServer) -> None:
    write_long_file()
    taken = small_window(provider)
    seen = []
    for number in range(8):
        provider.forget_prefix()  # a new process: what was cut before is cut anew
        done = run_wolo("-p", "--output-format", "stream-json", "-s", "long", *provider.flags, f"read it, number {number}")
        assert done.exit_code == 0, done.stderr
        seen += [line for line in done.lines if line.get("subtype") == "compaction"]
    assert len(taken) == 16
    assert {line["reason"] for line in seen} == {"overflow"}
    assert all(line["tokens_after"] < line["tokens_before"] for line in seen)
    assert len(provider.requests) <= 16 + 8 * 2
    shown = run_wolo("sessions", "show", "long").stdout
    assert all(f"read it, number {number}" in shown for number in range(8))


def test_declared_window_is_kept_without_refusals(provider: ProviderServer) -> None:
    write_long_file()
    provider.linted = False
    taken = small_window(provider)
    said = ""
    for number in range(6):
        done = run_wolo("-p", "-s", "long", "--set", "context.window=8000", *provider.flags, f"read it, number {number}")
        assert done.exit_code == 0, done.stderr
        said += done.stderr
    assert len(taken) == len(provider.requests) == 12
    assert max(taken) <= 8_000 * 4
    assert "no longer fits" in said


def test_disabled_compaction_is_an_error_without_loss(provider: ProviderServer) -> None:
    write_long_file()
    provider.script(call("read", {"path": "long.txt"}), TOO_LONG)
    done = run_wolo("-p", "--json", "-s", "long", "--set", "compaction.auto=false", *provider.flags, "read it")
    assert (done.exit_code, done.json["error"]["kind"]) == (1, "context_overflow")
    assert "compaction.auto" in done.json["error"]["hint"]
    assert len(provider.requests) == 2
    assert "line 249 of a long file" in run_wolo("sessions", "wire", "long", "--as", "openai-chat").stdout


def test_in_the_terminal_one_line_says_so(provider: ProviderServer) -> None:
    write_long_file()
    small_window(provider)
    with pty_wolo("--mode", "yolo", *provider.flags, columns=140) as terminal:
        for number in range(1, 6):
            terminal.say(f"number {number}", f"Read {number} files.")
        terminal.wait_for("The conversation no longer fits the model's window")
        terminal.press("ctrl-d")
        assert terminal.wait_for_exit() == 0
