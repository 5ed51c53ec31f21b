"""Commands in the background, seen from outside: what is printed, what the model is told, what is left."""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path

import pytest

from tests.end_to_end.waiting import wait_for
from tests.fakes.command import run_wolo, start_wolo
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import Reply, call, text
from tests.fakes.screen import pty_wolo
from tests.workspace.living import alive, gone, unique_seconds

BOTH = pytest.mark.parametrize("mode", ["--yolo", "--mode=auto"])


def background(command: str) -> Reply:
    return call("shell", {"command": command, "background": True})


@BOTH
def test_job_is_reported_everywhere_and_ends_with_run(provider: ProviderServer, mode: str) -> None:
    n = unique_seconds()
    provider.script(
        background("sleep 1.5; echo built"),
        background(f"echo serving; sleep {n}"),
        call("jobs", {"action": "output", "id": 1, "wait_s": 20}),
        call("jobs", {}),
        text("Done."),
    )
    done = run_wolo("-p", "--output-format", "stream-json", mode, *provider.flags, "go")
    assert done.exit_code == 0
    system = [line for line in map(json.loads, done.stdout.splitlines()) if line["type"] == "system"]
    jobs = [(line["subtype"], line["id"]) for line in system if line["subtype"].startswith("job_")]
    assert jobs == [("job_started", 1), ("job_started", 2), ("job_ended", 1)]
    begun, serving, output, listed = (provider.requests[at].results[-1] for at in (1, 2, 3, 4))
    assert begun.startswith("(nothing new was printed)\n[job 1 (sleep 1.5; echo built): runs, 1 s, pid ")
    assert serving.startswith(f"serving\n[job 2 (echo serving; sleep {n}): runs, ")
    assert output == "built\n[job 1 (sleep 1.5; echo built): ended: exit 0 after 2 s]\n" or output.startswith("built\n")
    assert "job 1 (sleep 1.5; echo built): ended: exit 0" in listed
    assert gone(n)


@BOTH
def test_model_continues_at_a_line_of_a_job(provider: ProviderServer, mode: str) -> None:
    n = unique_seconds()
    wait = {"action": "wait", "id": 1, "pattern": "error|listening on", "wait_s": 60}
    provider.script(background(f"sleep 1.5; echo listening on 8000; sleep {n}"), call("jobs", wait), text("It serves."))
    assert run_wolo("-p", mode, *provider.flags, "serve").exit_code == 0
    result = provider.requests[2].results[-1]
    assert result.startswith("listening on 8000\n[job 1")
    assert result.endswith("[a line matches: listening on 8000]\n")
    assert gone(n)


def test_model_reads_of_an_end_before_next_request(provider: ProviderServer) -> None:
    provider.script(background("sleep 1.2; exit 3"), call("shell", {"command": "sleep 1"}), text("I see."))
    run_wolo("-p", "--yolo", *provider.flags, "go")
    last = provider.requests[2].messages[-1]
    assert last["role"] == "user"
    assert re.fullmatch(r"\[job 1 \(sleep 1\.2; exit 3\) has ended: exit 3 after \d+ s\]", last["content"])


def test_repeated_asking_for_news_is_no_loop(provider: ProviderServer) -> None:
    polls = [call("jobs", {"action": "output", "id": 1, "wait_s": 0})] * 8
    provider.script(background("sleep 60"), *polls, text("Enough."))
    assert run_wolo("-p", "--yolo", *provider.flags, "go").exit_code == 0


def test_job_needs_the_permission_of_a_command(provider: ProviderServer) -> None:
    provider.script(background("touch marker"), text("ok"))
    done = run_wolo("--json", "--mode=ask", *provider.flags, "go")
    assert done.exit_code == 4
    assert done.json["permission_denials"][0]["input"] == {"command": "touch marker", "background": True}
    assert not Path("marker").exists()


@pytest.mark.sweep(every=2)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_signal_ends_jobs_that_hide_and_ignore_it(provider: ProviderServer, number: signal.Signals) -> None:
    n = unique_seconds()
    hidden = f"trap '' TERM HUP INT; (env -i setsid sleep {n} &); echo up > up; while :; do sleep {n}; done"
    provider.script(background(hidden), call("shell", {"command": "sleep 60"}))
    with start_wolo("-p", "--yolo", *provider.flags, "go") as process:
        provider.wait_for_requests(2)
        wait_for(lambda: len(alive(n)) == 2)
        process.send_signal(number)
        process.wait(30)
    assert gone(n)


def test_jobs_of_a_killed_run_end_next_start(provider: ProviderServer) -> None:
    n = unique_seconds()
    provider.script(background(f"(env -i setsid sleep {n} &); sleep {n}"), call("shell", {"command": "sleep 60"}))
    with start_wolo("-p", "--yolo", *provider.flags, "go") as process:
        provider.wait_for_requests(2)
        wait_for(lambda: len(alive(n)) == 2)
        process.kill()
        process.wait()
    assert alive(n)
    provider.script(text("hello"))
    assert run_wolo("-p", *provider.flags, "go").exit_code == 0
    assert gone(n)


def test_command_ignoring_term_is_gone_after_ctrl_c(provider: ProviderServer) -> None:
    n = unique_seconds()
    provider.script(call("shell", {"command": f"trap '' TERM INT; touch up; sleep {n}; sleep {n}"}))
    with start_wolo("-p", "--yolo", *provider.flags, "go") as process:
        wait_for(Path("up").exists)
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
    assert gone(n)


def test_keyboard_jobs_are_counted_shown_detached_and_named(provider: ProviderServer) -> None:
    n = unique_seconds()
    provider.script(
        background("while [ ! -e go ]; do sleep 0.05; done; echo built; exit 2"),
        background(f"echo serving; while [ ! -e on ]; do sleep 0.05; done; echo later; sleep {n}"),
        text("Both run."),
        text("Fine."),
    )
    with pty_wolo("--yolo", *provider.flags, rows=40, columns=150) as terminal:
        terminal.wait_for_prompt()
        terminal.enter("start them")
        terminal.wait_for("Both run.")
        terminal.wait_for("2 jobs · /jobs")
        Path("go").touch()
        terminal.wait_for("Job 1 (while [ ! -e go ]; do sleep 0.05; done; echo built; exit 2) has ended: exit 2 after")
        terminal.wait_for("1 job · /jobs")
        terminal.enter("/jobs output 1")
        terminal.wait_for("\nbuilt\n")
        terminal.enter("/jobs output 9")
        terminal.wait_for("There is no job 9; there are 1, 2.")
        terminal.enter("/jobs dance")
        terminal.wait_for("Unknown action: dance.")
        terminal.enter("/jobs detach 2")
        terminal.wait_for("keeps running after you quit")
        terminal.enter("and now?")
        terminal.wait_for("Fine.")
        terminal.press("ctrl-d")
        assert terminal.wait_for_exit() == 0
        terminal.wait_for("Still running: job 2 (echo serving")
    assert provider.requests[3].messages[-1]["content"].startswith("[job 1 (while")
    folder = Path(os.environ["WOLO_HOME"]) / "state" / "jobs"
    (file,) = folder.iterdir()
    provider.script(text("hello"))
    assert run_wolo("-p", *provider.flags, "go").exit_code == 0
    Path("on").touch()
    wait_for(lambda: file.read_text() == "serving\nlater\n")
    assert len(alive(n)) == 1
    os.kill(alive(n)[0], signal.SIGKILL)
    assert gone(n)


def test_other_model_inherits_jobs_new_session_ends_them(provider: ProviderServer) -> None:
    n = unique_seconds()
    provider.script(background(f"sleep {n}"), text("It runs."), call("jobs", {}), text("Still there."))
    with pty_wolo("--yolo", *provider.flags, rows=40, columns=150) as terminal:
        terminal.wait_for_prompt()
        terminal.enter("start it")
        terminal.wait_for("It runs.")
        terminal.enter("/model custom/other-model")
        terminal.wait_for("custom/other-model · yolo")
        terminal.wait_for("1 job · /jobs")
        terminal.enter("is it there?")
        terminal.wait_for("Still there.")
        assert provider.requests[-1].results[-1].startswith(f"job 1 (sleep {n}): runs, ")
        terminal.enter("/new")
        terminal.wait_for(f"Ended with the conversation: job 1 (sleep {n}).")
        assert gone(n)
        terminal.press("ctrl-d")
        assert terminal.wait_for_exit() == 0


@pytest.mark.parametrize("way", ["window", "kill"])
def test_jobs_end_with_wolo_unless_detached(provider: ProviderServer, way: str) -> None:
    mine, free = unique_seconds(), unique_seconds()
    served = f"echo serving; while [ ! -e on ]; do sleep 0.05; done; echo later; sleep {free}"
    provider.script(background(f"trap '' HUP; sleep {mine}"), background(served), text("Both run."))
    with pty_wolo("--yolo", *provider.flags, rows=40, columns=150) as terminal:
        terminal.wait_for_prompt()
        terminal.enter("start them")
        terminal.wait_for("Both run.")
        terminal.wait_for("2 jobs · /jobs")
        terminal.enter("/jobs detach 2")
        terminal.wait_for("1 job · /jobs")
        process = terminal.child.ptyproc
        if way == "kill":
            process.kill(signal.SIGKILL)
        process.fileobj.close()
        os.waitpid(terminal.child.pid, 0)
        process.closed = process.terminated = terminal.child.terminated = True
    if way == "kill":
        assert alive(mine)
    provider.script(text("hello"))
    assert run_wolo("-p", *provider.flags, "go").exit_code == 0
    assert gone(mine)
    Path("on").touch()
    wait_for(lambda: len(alive(free)) == 1)
    files = list((Path(os.environ["WOLO_HOME"]) / "state" / "jobs").iterdir())
    wait_for(lambda: any(file.read_text() == "serving\nlater\n" for file in files))
    os.kill(alive(free)[0], signal.SIGKILL)
    assert gone(free)


def test_session_with_jobs_replays_unchanged(provider: ProviderServer) -> None:
    provider.script(
        background("echo up; sleep 30"),
        call("jobs", {"action": "stop", "id": 1}),
        background("sleep 1.3; echo x"),
        call("shell", {"command": "sleep 2"}),
        text("ok"),
    )
    assert run_wolo("-p", "--yolo", *provider.flags, "go").exit_code == 0
    played = run_wolo("replay", "--json")
    assert (played.exit_code, played.json["same"]) == (0, True), played.stdout


def keyboard(command: str) -> Reply:
    return call("shell", {"command": command, "background": True, "pty": True})


def typed(text: str, id: int = 1) -> Reply:
    return call("jobs", {"action": "input", "id": id, "text": text, "wait_s": 20})


@BOTH
def test_model_answers_program_and_interrupts_it(provider: ProviderServer, mode: str) -> None:
    n = unique_seconds()
    ask = "read -p 'Package name? ' name </dev/tty; echo created $name; trap 'echo stopped; exit 9' INT"
    wait = call("jobs", {"action": "wait", "id": 1, "pattern": "name?".replace("?", "\\?"), "wait_s": 60})
    end = call("jobs", {"action": "output", "id": 1, "wait_s": 60})
    provider.script(keyboard(f"{ask}; sleep {n}"), wait, typed("demo\n"), typed("\x03"), end, text("Done."))
    assert run_wolo("-p", mode, *provider.flags, "create it").exit_code == 0
    answered, interrupted, ended = (provider.requests[at].results[-1] for at in (3, 4, 5))
    assert answered.startswith("Package name? demo\ncreated demo\n[screen of 80×24;")
    assert "stopped" in interrupted
    assert "ended: exit 9" in ended
    assert gone(n)


@pytest.mark.parametrize("mode", ["ask", "auto"])
def test_allowed_job_asks_again_for_each_input(provider: ProviderServer, tmp_path: Path, mode: str) -> None:
    """In auto the job runs outside the sandbox because of the rule, and its input may not be typed there unasked."""
    (tmp_path / "ask.sh").write_text("read line\ntouch marker\n")
    provider.script(keyboard("sh ask.sh"), typed("rm -rf src\n"), text("No."))
    rule = ("--allow", "shell:sh ask.sh")
    done = run_wolo("--json", f"--mode={mode}", *rule, "-C", str(tmp_path), *provider.flags, "go")
    assert done.exit_code == 4
    (denial,) = done.json["permission_denials"]
    assert denial["input"] == {"action": "input", "id": 1, "text": "rm -rf src\n", "wait_s": 20}
    assert not (tmp_path / "marker").exists()


def test_secret_stays_untyped_placeholder(provider: ProviderServer, tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("API_KEY=sk-live-0123456789abcdef\n")
    provider.script(call("shell", {"command": "cat .env"}), text("read"))
    run_wolo("-p", "--yolo", "-C", str(tmp_path), *provider.flags, "read it")
    placeholder = re.search(r"SECRET_API_KEY_\w+", provider.requests[1].results[-1])
    assert placeholder is not None
    provider.script(keyboard("read line; echo got $line"), typed(f"{placeholder[0]}\n"), text("No."))
    run_wolo("-p", "--yolo", "-C", str(tmp_path), *provider.flags, "type it")
    assert "secrets are never typed" in provider.requests[-1].results[-1]


def test_watched_lines_reach_model_as_they_come(provider: ProviderServer) -> None:
    watch = call("jobs", {"action": "watch", "id": 1, "pattern": "ERROR"})
    line = call("jobs", {"action": "wait", "id": 1, "pattern": "ERROR two", "wait_s": 60})
    command = "while [ ! -e go ]; do sleep 0.05; done; echo ERROR one; echo fine; echo ERROR two; sleep 60"
    provider.script(background(command), watch, call("shell", {"command": "touch go"}), line, text("Seen."))
    run_wolo("-p", "--yolo", *provider.flags, "go")
    messages = [m["content"] for m in provider.requests[-1].messages if m["role"] == "user"]
    lines = [each for message in messages[1:] for each in message.splitlines()]
    assert [each.rpartition("] ")[2] for each in lines] == ["ERROR one", "ERROR two"]


def test_irreversible_command_typed_into_shell_is_denied(provider: ProviderServer) -> None:
    Path("build").mkdir()
    Path("build/kept").write_text("kept")
    typed = {"action": "input", "id": 1, "text": "true\nrm -rf build\n"}
    shell = call("shell", {"command": "bash", "background": True, "pty": True})
    provider.script(shell, call("jobs", typed), text("It was denied."))
    assert run_wolo("-p", "--mode=auto", *provider.flags, "go").exit_code == 4
    assert "`rm` cannot be undone: build: 1 file" in provider.requests[2].results[-1]
    assert Path("build/kept").exists()
