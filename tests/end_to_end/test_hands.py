"""Tools that change files, end to end: the disk, and what the provider receives."""

from __future__ import annotations

import json
import os
import random
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.end_to_end.waiting import wait_for
from tests.fakes.command import run_wolo, start_wolo
from tests.fakes.provider_server import Asked, ProviderServer
from tests.fakes.replies import Reply, call, calls, text
from tests.fakes.screen import pty_wolo
from tests.workspace.living import alive, gone

LINES = "".join(f"line {n}\n" for n in range(2000))

# Commands around one that is allowed; each would leave the file `marker` if any part of it ran.
AROUND = r"""
./allowed go; touch marker
./allowed go && touch marker
./allowed go | tee marker
./allowed go > marker
./allowed go 2> marker
./allowed go & touch marker
touch marker; ./allowed go
./allowed "$(touch marker)"
./allowed `touch marker`
./allowed <(touch marker)
./allowed go <<< "$(touch marker)"
X=1 ./allowed go
(./allowed go; touch marker)
{ ./allowed go; touch marker; }
trap 'touch marker' EXIT; ./allowed go
eval './allowed go; touch marker'
bash -c './allowed go; touch marker'
./allowed go\; touch marker
./allowed go'; touch marker'
./allowedly go
"""
KINDS_OF_BREAK = ("./allowed go\ntouch marker", "./allowed go\r\ntouch marker", "touch marker\n./allowed go")


def test_nothing_runs_around_an_allowed_command_without_answers(provider: ProviderServer) -> None:
    Path("allowed").write_text("#!/bin/sh\necho allowed ran\n")
    Path("allowed").chmod(0o755)
    wanted = [*AROUND.strip().split("\n"), *KINDS_OF_BREAK]
    provider.script(calls(*(("shell", {"command": command}) for command in (*wanted, "./allowed  'go'"))), text("ok"))
    done = run_wolo("--json", "--mode", "edit", "--allow", "shell:./allowed go", *provider.flags, "go", stdin="y\n" * 1000)
    *refused, ran = provider.requests[1].results
    assert [command for command, result in zip(wanted, refused, strict=True) if not result.startswith("Denied")] == []
    assert ran == "allowed ran\n[exit 0]\n"
    assert not Path("marker").exists()
    assert (done.exit_code, done.json["subtype"], done.json["is_error"]) == (4, "error_denied", True)
    assert [denial["input"]["command"] for denial in done.json["permission_denials"]] == wanted


def test_model_text_steers_no_plain_terminal(provider: ProviderServer) -> None:
    hostile = "\x1b]0;title\x07\x1b[2J\x9b5n"
    named = call("write", {"path": f"../{hostile}\nwolo: all is well", "content": ""})
    provider.script(named, text(f"Said{hostile}."))
    with pty_wolo("-p", "-v", *provider.flags, "-s", "mine", "go") as terminal:
        assert terminal.wait_for_exit() == 4
    with pty_wolo("sessions", "show", "mine") as shown:
        assert shown.wait_for_exit() == 0
    for each in (terminal, shown):
        assert b"\x1b" not in each.raw
        assert "\x9b".encode() not in each.raw
        assert "Said" in each.text
    assert not any(line.startswith("wolo: all is well") for line in terminal.lines)
    provider.script(text(f"Said{hostile}."))
    assert run_wolo("-p", *provider.flags, "go").stdout == f"Said{hostile}.\n"


def test_two_runs_edit_one_file_without_lost_updates(provider: ProviderServer) -> None:
    file = Path("shared.txt")
    file.write_text("".join(f"a{n}=0\nb{n}=0\n" for n in range(40)))
    size, torn, stop = file.stat().st_size, [], threading.Event()

    def watch() -> None:
        while not stop.is_set():
            if len(content := file.read_bytes()) != size:
                torn.append(content)

    def next_edit(asked: Asked) -> Reply:
        who, done = str(asked.messages[1]["content"])[-1], len(asked.results)
        return call("edit", {"path": "shared.txt", "old": f"{who}{done}=0", "new": f"{who}{done}=1"}) if done < 40 else text("ok")

    provider.otherwise = next_edit
    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        with start_wolo("-p", *provider.flags, "a") as one, start_wolo("-p", *provider.flags, "b") as other:
            assert [each.communicate(timeout=60) and each.returncode for each in (one, other)] == [0, 0]
    finally:
        stop.set()
        watcher.join()
    assert file.read_text() == "".join(f"a{n}=1\nb{n}=1\n" for n in range(40))
    assert torn == []
    assert list(Path().iterdir()) == [file]


def test_spilled_output_is_private_and_removed_at_end(provider: ProviderServer, isolated: Path) -> None:
    waiting = "seq 50000; touch ready; until test -e seen; do sleep 0.02; done"
    provider.script(call("shell", {"command": "seq 50000"}), call("shell", {"command": waiting}), text("ok"))
    before = os.umask(0)
    try:
        with start_wolo("-p", "--yolo", "--no-session", *provider.flags, "go") as run:
            wait_for(lambda: Path("ready").exists())
            assert list((isolated / "wolo" / "state").glob("unkept-*/*"))
            Path("seen").touch()
            assert run.wait() == 0
    finally:
        os.umask(before)
    assert Path("ready").stat().st_mode & 0o777 == 0o666
    assert [str(path) for path in (isolated / "wolo").rglob("*") if path.stat().st_mode & 0o077] == []
    assert list((isolated / "wolo" / "state").glob("unkept-*")) == []


def test_next_start_ends_leftovers_of_a_killed_run(provider: ProviderServer, isolated: Path) -> None:
    """Also when it runs no command of its own."""
    left, kept = (f"{digit}{time.monotonic_ns() % 10**9}" for digit in (7, 8))
    for number in (left, kept):
        provider.script(call("shell", {"command": f"(env -i setsid sleep {number} &); touch {number}; sleep 60"}))
    with start_wolo("-p", "--yolo", *provider.flags, "go") as living, start_wolo("-p", "--yolo", *provider.flags, "go") as killed:
        wait_for(lambda: Path(left).exists() and Path(kept).exists())
        traces = list((isolated / "wolo" / "state" / "commands").iterdir())
        own = next(path for path in traces if f".{killed.pid}." in path.name)
        killed.kill()
        killed.wait()
        provider.script(text("hello"))
        assert run_wolo("-p", *provider.flags, "go").exit_code == 0
        assert not own.exists()
        assert sorted(map(bool, (alive(left), alive(kept)))) == [False, True]
        living.terminate()
        living.wait()
    assert gone(left)
    assert gone(kept)
    assert list((isolated / "wolo" / "state" / "commands").iterdir()) == []


@pytest.mark.parametrize("locale", [{"LC_ALL": "C"}, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}])
def test_names_in_any_script_work_under_any_locale(provider: ProviderServer, locale: dict[str, str]) -> None:
    Path("café.txt").write_text("héllo 你好\n")
    provider.script(
        calls(
            ("write", {"path": "你好.txt", "content": "ünï 🙂\n"}),
            ("edit", {"path": "café.txt", "old": "héllo", "new": "wörld"}),
            ("grep", {"pattern": "ünï"}),
            ("shell", {"command": "cat 你好.txt; echo ß"}),
            ("glob", {"pattern": "*"}),
        ),
        text("größer"),
    )
    done = run_wolo("-p", "--yolo", *provider.flags, "über", env={"PYTHONCOERCECLOCALE": "0", **locale})
    assert (done.exit_code, done.stdout) == (0, "größer\n")
    assert provider.requests[0].messages[-1]["content"] == "über"
    assert Path("café.txt").read_text() == "wörld 你好\n"
    assert provider.requests[1].results[2:] == ["你好.txt:1:ünï 🙂", "ünï 🙂\nß\n[exit 0]\n", "café.txt\n你好.txt"]


def next_step(asked: Asked) -> Reply:
    """Something with an effect, by how far the session has come."""
    if not asked.json:
        return text("killed while it asked")
    done = len(asked.results)
    edit = ("edit", {"path": "versions.txt", "old": "version", "new": "version I"})
    mark = ("shell", {"command": f"echo {done} >> marks; sleep 0.03; echo {done} >> ends"})
    steps = (
        call(*mark),
        call("write", {"path": f"made-{done}.txt", "content": f"{done}\n{LINES}"}),
        calls(mark, edit, ("shell", {"command": f"echo {done}b >> marks"})),
        call(*edit),
    )
    return steps[done % len(steps)]


@pytest.mark.parametrize("rounds", [10, pytest.param(200, marks=[pytest.mark.soak, pytest.mark.timeout(3600)])])
def test_kills_at_any_moment_lose_and_repeat_nothing(provider: ProviderServer, isolated: Path, rounds: int) -> None:
    chance = random.Random(rounds)
    Path("versions.txt").write_text(f"version\n{LINES}end\n")
    provider.otherwise = next_step
    printed: Counter[str] = Counter()
    for number in range(rounds):
        before = len(provider.requests)
        command = ("--output-format", "stream-json", "--yolo", *provider.flags, "-s", "storm", f"prompt {number}")
        with start_wolo(*command) as process:
            provider.wait_for_requests(before + chance.randint(1, 4))  # however slow the machine is, most runs have effects
            time.sleep(chance.uniform(0.002, 0.15))
            process.kill()
            stdout, _ = process.communicate(timeout=60)
        first = provider.requests[before]
        if first.json:
            assert not printed - Counter(first.results), "a result that was shown is not in the session"
        for line in stdout.split(b"\n")[:-1]:
            said = json.loads(line)
            if said["type"] == "user":
                printed[said["message"]["content"][0]["content"]] += 1
        versions = Path("versions.txt").read_text()
        assert versions.startswith("version")
        assert versions.endswith(f"\n{LINES}end\n")
        for path in Path().glob("made-*.txt"):
            assert path.read_text() == f"{path.stem.removeprefix('made-')}\n{LINES}"
    provider.otherwise = text("still here")
    assert run_wolo("-p", *provider.flags, "-s", "storm", "and now?").stdout == "still here\n"
    assert not printed - Counter(provider.requests[-1].results)
    asked = [made["function"] for message in provider.requests[-1].messages for made in message.get("tool_calls", ())]
    commands = [json.loads(made["arguments"])["command"] for made in asked if made["name"] == "shell"]
    marks = Counter(Path("marks").read_text().split())
    assert printed, "every run was killed before it showed a result"
    for mark, times in marks.items():
        assert times <= sum(f"echo {mark} >> marks" in command for command in commands), "a call ran twice"
    assert [path.name for path in Path().iterdir() if path.name.startswith(".wolo")] == []
    assert list((isolated / "wolo" / "state" / "file-locks").iterdir()) == []
    cut_off = "the body is not a JSON object: b''"  # killed between the head of a request and its body
    provider.problems[:] = [problem for problem in provider.problems if cut_off not in problem]
