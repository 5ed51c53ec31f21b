"""Exit codes are the same in every output format; JSON stays JSON on every failure."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.end_to_end.waiting import wait_for
from tests.fakes.command import run_wolo, start_wolo
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import Hold, Reply, call, delta, error, finish, sse, text
from wolo.places import find_places

QUICK = ("--set", "retry.tries=1")


def glm(code: str, message: str = "told by the provider") -> Reply:
    return error(429, {"error": {"code": code, "message": message}})


CASES: list[tuple[str, list[Reply], int, str]] = [
    ("done", [text("fine")], 0, "success"),
    ("wrong key", [error(401, {"error": {"message": "invalid api key"}})], 1, "error_model"),
    ("no such model", [error(404, {"error": {"message": "model not found"}})], 1, "error_model"),
    ("bad request", [error(400, {"error": {"message": "no"}})], 1, "error_model"),
    ("server down", [error(503, "busy")], 75, "error_unavailable"),
    ("GLM 1308 with a reset", [glm("1308", "Your limit will reset at 2031-01-02 03:04:05")], 75, "error_unavailable"),
    ("GLM 1310", [glm("1310", "Weekly limit exhausted. Your limit will reset at 2031-01-02 03:04:05")], 75, "error_unavailable"),
    ("GLM 1113", [glm("1113")], 1, "error_model"),
    ("GLM 1301", [error(400, {"error": {"code": "1301", "message": "sensitive"}})], 1, "error_model"),
    ("cut at the output limit", [text("half", finish_reason="length")], 1, "error_model"),
    ("empty for ever", [text(""), text(""), text("")], 1, "error_model"),
    ("stream ends early", [sse(delta("half"), done=False)], 75, "error_unavailable"),
    ("HTML page", [error(200, "<html><b>Please log in</b></html>", {"content-type": "text/html"})], 1, "error_model"),
    ("needs approval", [call("shell", {"command": "touch made"}), text("could not")], 4, "error_denied"),
]


@pytest.mark.sweep(every=3)
@pytest.mark.parametrize(("replies", "exit_code", "subtype"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
@pytest.mark.parametrize("format", ["text", "json", "stream-json"])
def test_exit_code_and_output(provider: ProviderServer, replies: list[Reply], exit_code: int, subtype: str, format: str) -> None:
    provider.script(*replies)
    done = run_wolo("-p", "--mode", "edit", "--output-format", format, *QUICK, *provider.flags, "go")
    assert done.exit_code == exit_code, done.stderr
    assert "Traceback" not in done.stderr + done.stdout
    if format != "text":
        result = json.loads(done.stdout.splitlines()[-1])
        assert (result["subtype"], result["exit_code"]) == (subtype, exit_code)
        assert result["is_error"] == (exit_code != 0)
        assert (result["error"] is None) == (subtype in ("success", "error_denied"))
    elif exit_code:
        assert done.stderr.startswith("wolo: ")


def test_a_quota_says_when_it_resets(provider: ProviderServer) -> None:
    provider.script(glm("1308", "Usage limit reached. Your limit will reset at 2031-01-02 03:04:05"))
    assert run_wolo("--json", *provider.flags, "go").json["error"]["resets_at"] == "2031-01-02T03:04:05+08:00"


def test_the_text_of_a_cut_answer_is_kept(provider: ProviderServer) -> None:
    provider.script(text("the first half", finish_reason="length"))
    done = run_wolo("-p", *provider.flags, "go")
    assert (done.exit_code, done.stdout) == (1, "the first half\n")


@pytest.mark.sweep(every=3)
@pytest.mark.parametrize(
    ("argv", "exit_code"),
    [
        (("--no-such-option",), 2),
        (("-m",), 2),
        (("--mode", "loose", "go"), 2),
        (("--set", "retry.trise=3", "go"), 2),
        (("--set", "retry.tries=many", "go"), 2),
        (("--allow", "shel:ls", "go"), 2),
        (("--output-format", "xml", "go"), 2),
        (("--max-cost", "1", "--base-url", "http://127.0.0.1:1/v1", "-m", "m", "go"), 2),
        (("-C", "nowhere", "go"), 2),
        (("-o", ".", "--base-url", "http://127.0.0.1:1/v1", "-m", "m", "go"), 2),
        (("-o", "missing/answer.txt", "--base-url", "http://127.0.0.1:1/v1", "-m", "m", "go"), 2),
        (("-f", "missing.txt", "--base-url", "http://127.0.0.1:1/v1", "-m", "m", "go"), 2),
        (("-m", "zai/glm-99", "go"), 2),
        (("-m", "nobody/nothing", "go"), 2),
        (("-r", "--base-url", "http://127.0.0.1:1/v1", "-m", "m", "go"), 2),
        (("-c", "-s", "mine", "--base-url", "http://127.0.0.1:1/v1", "-m", "m", "go"), 2),
        (("-r", "this", "-s", "that", "--base-url", "http://127.0.0.1:1/v1", "-m", "m", "go"), 2),
        (("--fork", "--base-url", "http://127.0.0.1:1/v1", "-m", "m", "go"), 2),
        (("-r", "session_unknown", "--base-url", "http://127.0.0.1:1/v1", "-m", "m", "go"), 3),
        (("   ",), 2),
        ((), 2),
    ],
)
def test_bad_line_sends_nothing_and_says_the_remedy(argv: tuple[str, ...], exit_code: int) -> None:
    done = run_wolo("-p", *argv, env={"ZAI_API_KEY": "k"})
    assert (done.exit_code, done.stdout) == (exit_code, ""), done.stderr
    assert done.stderr.startswith("wolo: ")
    assert "Traceback" not in done.stderr
    as_json = run_wolo("--json", *argv, env={"ZAI_API_KEY": "k"})
    if "--output-format" not in argv:
        assert as_json.json["exit_code"] == exit_code
        assert as_json.json["subtype"] in ("error_config", "error_session")


@pytest.mark.parametrize(
    "argv",
    [
        ("--json", "--no-such-option"),
        ("--no-such-option", "--json"),
        ("--output-format", "stream-json", "--yolo=1", "go"),
        ("--output-format=json", "go", "-m"),
    ],
)
def test_unreadable_line_is_answered_in_json_too(argv: tuple[str, ...]) -> None:
    done = run_wolo(*argv)
    assert (done.exit_code, done.json["exit_code"], done.json["subtype"]) == (2, 2, "error_config")
    assert done.json["error"]["message"] in done.stderr


def test_json_after_two_dashes_is_a_prompt_word() -> None:
    assert run_wolo("--no-such-option", "--", "--json").stdout == ""


WITHOUT_ENGINE = """
import sys
sys.modules["xllamacpp"] = None
sys.argv = ["wolo", "-p", "hi"]
from wolo.__main__ import main
main()
"""


def test_unconfigured_start_prints_five_lines_of_help() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_ENGINE], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=30
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.strip().splitlines()) == 5
    assert "ZAI_API_KEY" in done.stderr
    assert "--base-url" in done.stderr
    assert "wolo-cli[local" in done.stderr


@pytest.mark.parametrize(
    ("number", "exit_code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)], ids=["INT", "TERM", "HUP"]
)
def test_signal_ends_the_run_with_the_session_whole(provider: ProviderServer, number: signal.Signals, exit_code: int) -> None:
    hold = Hold()
    provider.script(text("unfinished").then(hold), text("again"))
    with start_wolo("--json", *provider.flags, "-s", "mine", "go") as process:
        hold.wait_until_reached()
        process.send_signal(number)
        stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == exit_code, stderr
    result = json.loads(stdout)
    assert (result["subtype"], result["exit_code"]) == ("error_interrupted", exit_code)
    hold.release()
    assert run_wolo("-p", *provider.flags, "-s", "mine", "go on").stdout == "again\n"


@pytest.mark.skipif(sys.platform != "linux", reason="reads from /proc which signals are caught")
@pytest.mark.parametrize("format", ["text", "json"])
def test_signal_before_the_turn_sets_the_exit_status(format: str) -> None:
    argv = [sys.executable, "-m", "wolo", "--output-format", format, "-p", "--base-url", "http://127.0.0.1:1/v1", "-m", "m"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        while not catches(process.pid, signal.SIGTERM):
            pass  # looked at without pause: what is imported from here on takes some milliseconds
        process.send_signal(signal.SIGTERM)
        stdout, stderr = process.communicate(timeout=60)
    assert (process.returncode, stderr) == (143, b"")
    if format == "text":
        assert stdout == b""
    else:
        assert (json.loads(stdout)["subtype"], json.loads(stdout)["exit_code"]) == ("error_interrupted", 143)


SIGNALLED_WHILE_IT_PARSES = """
import os, signal, sys
from wolo.__main__ import main

def send(frame, event, argument):
    if frame.f_code.co_name == "parse" and frame.f_code.co_filename.endswith("options.py"):
        sys.setprofile(None)
        os.kill(os.getpid(), signal.SIGTERM)

sys.argv = ["wolo", *sys.argv[1:]]
sys.setprofile(send)
main()
"""


@pytest.mark.parametrize(("argv", "has_result"), [(("--json", "go"), True), (("sessions", "list", "--json"), False)])
def test_signal_while_parsing_ends_with_a_result(argv: tuple[str, ...], has_result: bool) -> None:
    command = [sys.executable, "-c", SIGNALLED_WHILE_IT_PARSES, *argv]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (143, "")
    assert [json.loads(line)["subtype"] for line in done.stdout.splitlines()] == ["error_interrupted"] * has_result


def test_hang_up_told_to_be_ignored_is_survived(provider: ProviderServer) -> None:
    hold = Hold()
    provider.script(sse(delta("still"), hold, delta(" here"), finish("stop")))
    argv = ["nohup", sys.executable, "-m", "wolo", "-p", *provider.flags, "go"]
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        hold.wait_until_reached()
        process.send_signal(signal.SIGHUP)
        hold.release()
        stdout, stderr = process.communicate(timeout=60)
    assert (process.returncode, stdout) == (0, b"still here\n"), stderr


def test_second_signal_during_cleanup_ends_at_once(provider: ProviderServer) -> None:
    """The hook that runs while the session is closed presses Ctrl-C as long as anybody is there."""
    config = find_places().config
    config.mkdir(parents=True)
    (config / "config.toml").write_text("[[hooks.SessionEnd]]\ncommand = 'while kill -INT $PPID; do sleep 0.1; done'\n")
    provider.script(text("Done."))
    with start_wolo("--json", *provider.flags, "go") as process:
        stdout, stderr = process.communicate(timeout=30)
    assert json.loads(stdout)["result"] == "Done."
    assert process.returncode == 130, stderr


def catches(pid: int, number: signal.Signals) -> bool:
    status = Path(f"/proc/{pid}/status").read_text()
    caught = int(next(line for line in status.splitlines() if line.startswith("SigCgt:")).split()[1], 16)
    return bool(caught >> (number - 1) & 1)


def test_signal_during_a_command_kills_and_reports_it(provider: ProviderServer) -> None:
    provider.script(call("shell", {"command": "echo part; touch begun; sleep 30"}), text("ok"))
    with start_wolo("-p", "--yolo", *provider.flags, "-s", "mine", "go") as process:
        wait_for(lambda: Path("begun").exists())
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr
    assert run_wolo("-p", *provider.flags, "-s", "mine", "go on").exit_code == 0
    told = provider.requests[1].results[0]
    assert "part" in told
    assert "interrupted" in told


@pytest.mark.parametrize(
    ("flags", "subtype"),
    [
        (("--max-turns", "2"), "error_max_turns"),
        (("--max-tokens", "150"), "error_max_tokens"),
        (("--max-seconds", "1"), "error_max_seconds"),
    ],
)
def test_a_budget_ends_the_run_with_five(provider: ProviderServer, flags: tuple[str, ...], subtype: str) -> None:
    Path("a").write_text("x\n" * 50)
    provider.otherwise = lambda asked: call("read", {"path": "a", "offset": len(asked.messages)})
    if subtype == "error_max_seconds":
        provider.otherwise = text("slow").slow(1.5)
    done = run_wolo("--json", *flags, *provider.flags, "go")
    assert (done.exit_code, done.json["subtype"]) == (5, subtype)


def test_a_reader_that_goes_away_is_no_crash(provider: ProviderServer) -> None:
    provider.script(text("one"))
    with start_wolo("-p", "--output-format", "stream-json", *provider.flags, "go") as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        stderr = process.stderr.read()
        process.wait(timeout=60)
    assert b"Traceback" not in stderr
    assert process.returncode == 1


@pytest.mark.sweep(every=2)
@pytest.mark.parametrize("argv", [("--version",), ("--help",), ("doctor",), ("models", "list"), ("config", "show", "--json")])
def test_unwritable_listing_exits_three_without_traceback(argv: tuple[str, ...]) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run([sys.executable, "-m", "wolo", *argv], stdout=full, stderr=subprocess.PIPE, timeout=30, check=False)
    assert done.returncode == 3
    assert (b"No space left" in done.stderr) or argv == ("--version",)
    assert b"Traceback" not in done.stderr
    assert b"Exception ignored" not in done.stderr


def test_a_full_disk_behind_stdout_is_said() -> None:
    with ProviderServer(text("hello")) as provider, open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "wolo", "-p", *provider.flags, "go"],
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=30,
            check=False,
        )
    assert done.returncode == 3
    assert b"Cannot write" in done.stderr
    assert b"Traceback" not in done.stderr


def test_server_text_ends_where_own_words_begin(provider: ProviderServer) -> None:
    provider.script(error(503, "down for repairs"), text("fine"))
    done = run_wolo("-p", *provider.flags, "--set", "retry.tries=2", "go")
    assert done.stdout == "fine\n"
    assert "down for repairs. Retrying in " in done.stderr
