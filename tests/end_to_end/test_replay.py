"""A session is a test: it is run again without a model, and the first thing that goes another way is named."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.waiting import wait_for
from tests.fakes.command import Completed, run_wolo, start_wolo
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import Hold, call, calls, error, text, usage
from tests.fakes.screen import pty_wolo

CASSETTES = Path(__file__).parent.parent / "cassettes"


def run(provider: ProviderServer, *options: str, prompt: str = "go", exit_code: int = 0) -> None:
    done = run_wolo("-p", *options, *provider.flags, prompt)
    assert done.exit_code == exit_code, done.stderr


def replay(*options: str) -> Completed:
    """Nobody could be asked: the address and the key of the run are gone."""
    return run_wolo("replay", *options)


def divergence(*options: str) -> dict[str, Any]:
    done = replay("--json", *options)
    assert done.exit_code == 1, done
    assert done.json["same"] is False
    return dict(done.json["divergence"])


def assert_same(provider: ProviderServer, steps: int, *options: str) -> None:
    asked = len(provider.requests)
    before = {path: path.read_bytes() for path in Path.cwd().rglob("*") if path.is_file()}
    done = replay("--json", "--strict", *options)
    assert done.exit_code == 0, done
    assert (done.json["same"], done.json["steps"], done.json["divergence"]) == (True, steps, None)
    assert done.stderr == ""
    assert len(provider.requests) == asked
    assert {path: path.read_bytes() for path in Path.cwd().rglob("*") if path.is_file()} == before


# What goes as it went


def test_task_with_every_tool_replays_without_provider(provider: ProviderServer) -> None:
    Path("notes.txt").write_text("one\ntwo\n")
    provider.script(
        calls(("read", {"path": "notes.txt"}), ("grep", {"pattern": "two"}), ("glob", {"pattern": "*"})),
        call("edit", {"path": "notes.txt", "old": "two", "new": "three"}),
        call("write", {"path": "sub/calculator.py", "content": "print(1 + 2)\n"}),
        call("shell", {"command": "python3 sub/calculator.py > made.txt; cat made.txt; ls -a; ls -l made.txt; date; mktemp"}),
        call("write", {"path": "notes.txt", "content": "four\n"}, content="All of it anew."),
        text("Done."),
    )
    run(provider, "--yolo")
    assert_same(provider, 6)
    assert "6 steps, all as recorded" in replay().stdout


def test_full_paths_and_other_directories_lead_into_copy(provider: ProviderServer) -> None:
    here = Path.cwd()
    provider.script(
        call("write", {"path": str(here / "a.txt"), "content": "a\n"}),
        call("shell", {"command": f"mkdir -p deep && cd deep && pwd && cat {here}/a.txt && echo b > '{here}/b.txt'"}),
        call("shell", {"command": "pwd; ls ..; rm ../a.txt"}),
        text("Done."),
    )
    run(provider, "--yolo")
    Path("b.txt").write_text("kept\n")
    assert replay().exit_code == 0
    assert Path("b.txt").read_text() == "kept\n"


def test_command_file_changes_are_undone_as_known(provider: ProviderServer) -> None:
    for name in ("edited.txt", "gone.txt"):
        Path(name).write_text("one\ntwo\n")
    provider.script(
        calls(("read", {"path": "edited.txt"}), ("read", {"path": "gone.txt"})),
        call(
            "shell", {"command": "sed -i s/two/three/ edited.txt; rm gone.txt; echo x >> made.txt; cat made.txt edited.txt; ls"}
        ),
        call("edit", {"path": "edited.txt", "old": "three", "new": "four"}),
        text("Done."),
    )
    run(provider, "--yolo")
    assert Path("edited.txt").read_text() == "one\nfour\n"
    assert_same(provider, 4)


def test_patch_file_changes_are_undone_too(provider: ProviderServer) -> None:
    for name in ("edited.txt", "gone.txt", "moved.txt"):
        Path(name).write_text(f"one\ntwo\n{name}\n")
    lines = (
        *("*** Begin Patch", "*** Update File: edited.txt", "@@", " one", "-two", "+2", "@@", "-edited.txt", "+end"),
        *("*** Add File: sub/new.txt", "+new", "*** Delete File: gone.txt"),
        *("*** Update File: moved.txt", "*** Move to: there.txt", "@@", "-two", "+2", "*** End Patch"),
    )
    provider.script(
        calls(*(("read", {"path": name}) for name in ("gone.txt", "moved.txt"))),
        call("apply_patch", {"patch": "\n".join(lines)}),
        call("glob", {"pattern": "**/*.txt"}),
        text("Done."),
    )
    run(provider, "--yolo")
    assert sorted(path.name for path in Path().rglob("*.txt")) == ["edited.txt", "new.txt", "there.txt"]
    assert_same(provider, 4)


def test_calls_that_failed_fail_again(provider: ProviderServer) -> None:
    provider.script(
        calls(("read", {"path": "nothing"}), ("nosuch", {"x": 1}), ("read", {"paths": 3}), ("shell", {"command": "exit 3"})),
        call("write", '{"path": "a.txt", "content": ', finish_reason="tool_calls"),
        call("write", {"path": "a.txt", "content": "x"}, finish_reason="length"),
        text("Given up."),
    )
    run(provider, "--yolo")
    assert_same(provider, 4)


def test_retried_and_empty_answers_are_replayed(provider: ProviderServer) -> None:
    provider.script(error(500, "no"), call("glob", {"pattern": "*"}), text(""), text("", finish_reason="tool_calls"))
    provider.otherwise = text("Done.")
    run_wolo("-p", *provider.flags, "go")
    run(provider, "-c", prompt="on")
    assert replay("--strict").exit_code == 0


def test_rule_denials_repeat_and_command_line_rules_count(provider: ProviderServer) -> None:
    provider.script(
        calls(("shell", {"command": "rm -rf x"}), ("shell", {"command": "make it so"}), ("shell", {"command": "true; echo hi"})),
        text("Done."),
    )
    run(provider, "--mode", "edit", "--deny", "shell:rm *", "--allow", "shell:true", "--allow", "shell:echo *", exit_code=4)
    assert_same(provider, 2)


def test_a_person_answers_as_then(provider: ProviderServer) -> None:
    for command, answer in (("touch one", "y"), ("touch two", "use the other folder")):
        provider.script(call("shell", {"command": command}), text("I see."))
        with pty_wolo("--mode", "edit", "-s", "mine", *provider.flags, "go") as terminal:
            terminal.wait_for("or type why not ›")
            terminal.enter(answer)
            assert terminal.wait_for_exit() == 0
    assert Path("one").exists()
    assert not Path("two").exists()
    assert_same(provider, 4, "mine")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=["interrupted", "killed"])
def test_stopped_call_stops_again_and_next_turn_continues(provider: ProviderServer, number: signal.Signals) -> None:
    commands = ("echo x >> quick; cat quick", "echo x > slow; sleep 60", "echo x > never")
    provider.script(
        calls(*(("shell", {"command": command}, f"call_{at}") for at, command in enumerate(commands))), text("Went on.")
    )
    with start_wolo("-p", "--yolo", *provider.flags, "go") as process:
        wait_for(lambda: Path("slow").exists())
        process.send_signal(number)
        process.communicate(timeout=60)
    run(provider, "-c", "--yolo", prompt="go on")
    assert_same(provider, 2)


def test_stopped_stream_replays_as_far_as_received(provider: ProviderServer) -> None:
    hold = Hold()
    provider.script(text("a beginning that is kept").then(hold), text("On we go."))
    with start_wolo("-p", *provider.flags, "-s", "mine", "first") as process:
        hold.wait_until_reached()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    hold.release()
    run(provider, "-s", "mine", prompt="go on")
    assert replay("mine", "--strict").exit_code == 0


def test_another_process_has_seen_no_files(provider: ProviderServer) -> None:
    """A write over a file that only an earlier process had read was refused, and is refused again."""
    Path("a.txt").write_text("old\n")
    provider.script(
        call("read", {"path": "a.txt"}), text("Read."), call("write", {"path": "a.txt", "content": "new\n"}), text("Refused.")
    )
    run(provider)
    run(provider, "-c", prompt="write")
    assert "have not read it" in provider.requests[3].results[-1]
    assert_same(provider, 4)


def test_summarized_conversation_replays_with_its_summary(provider: ProviderServer) -> None:
    story = " ".join(f"Once upon a time there was word {number}." for number in range(750))
    provider.otherwise = text(story, size=4_000)
    options = ("-s", "long", "--set", "context.window=30000")
    for number in range(4):
        run(provider, *options, prompt=f"story {number}")
    provider.summary = text("## Goal\nTell stories. SENTINEL-S")
    provider.otherwise = text("And so on.")
    provider.script(call("glob", {"pattern": "*"}))
    run(provider, *options, prompt="more")
    assert "SENTINEL-S" in str(provider.requests[-1].messages)
    assert_same(provider, 6, "long")


def test_session_of_text_calls_is_replayed(provider: ProviderServer) -> None:
    written = '<tool>{"server_name":"local","tool_name":"write","arguments":{"path":"a.txt","content":"a\\n"}}</tool>'
    finished = '<tool>{"server_name":"local","tool_name":"task_completion","arguments":{"result":"Done."}}</tool>'
    provider.script(text('<tool>{"server_name":"local","arguments":{}}</tool>'), text(written), text(finished))
    run(provider, "--api", "xml", "--yolo")
    assert Path("a.txt").read_text() == "a\n"
    assert_same(provider, 3)


def test_an_interrupted_replay_leaves_nothing(provider: ProviderServer, isolated: Path) -> None:
    spare = isolated / "tmp"
    spare.mkdir()
    Path("fast").touch()
    provider.script(call("shell", {"command": "[ -e fast ] || { touch begun; sleep 60; }"}), text("Done."))
    run(provider, "--yolo")
    Path("fast").unlink()
    with start_wolo("replay", env={"TMPDIR": str(spare)}) as process:
        wait_for(lambda: any(spare.rglob("begun")))
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode == 130
    assert list(spare.iterdir()) == []


# What goes another way


@pytest.fixture
def reading(provider: ProviderServer) -> ProviderServer:
    Path("a.txt").write_text("one\ntwo\n")
    Path("AGENTS.md").write_text("Be brief.\n")
    provider.script(call("read", {"path": "a.txt"}), call("shell", {"command": "cat b.txt || echo none"}), text("Done."))
    run(provider, "--yolo")
    return provider


def test_changed_file_is_the_first_difference(reading: ProviderServer) -> None:
    Path("a.txt").write_text("one\nTWO\n")
    found = divergence()
    assert (found["step"], found["kind"]) == (1, "result")
    assert "a.txt" in found["where"]
    assert "2→two" in found["expected"]
    assert "2→TWO" in found["got"]
    shown = replay()
    assert shown.exit_code == 1
    assert "Step 1 of 3" in shown.stdout
    assert "-2→two" in shown.stdout
    assert "+2→TWO" in shown.stdout


def test_different_command_output_is_found_at_its_step(reading: ProviderServer) -> None:
    Path("b.txt").write_text("here\n")
    found = divergence()
    assert (found["step"], found["kind"]) == (2, "result")
    assert "none" in found["expected"]
    assert "here" in found["got"]


def test_rule_denying_now_is_named_before_running(reading: ProviderServer) -> None:
    found = divergence("--deny", "shell:cat *")
    assert (found["step"], found["kind"]) == (2, "call")
    assert "shell:cat *" in found["got"]
    config = Path(os.environ["WOLO_HOME"]) / "config" / "config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text('[permissions]\ndeny = ["read:a.txt"]\n')
    assert divergence()["step"] == 1


def test_a_stricter_mode_stops_the_command(provider: ProviderServer) -> None:
    provider.script(call("shell", {"command": "touch made"}), text("Made."))
    run(provider, "--mode", "yolo")
    assert divergence("--mode", "edit")["kind"] == "call"


def test_denied_call_that_would_run_now_stays_denied(provider: ProviderServer) -> None:
    provider.script(call("shell", {"command": "touch made"}), text("Denied."))
    run(provider, "--mode", "edit", exit_code=4)
    found = divergence("--mode", "yolo")
    assert (found["step"], found["kind"]) == (1, "call")
    assert "would run now" in found["got"]


def test_other_instructions_are_told_by_strict_alone(reading: ProviderServer) -> None:
    assert replay("--strict").exit_code == 0
    Path("AGENTS.md").write_text("Be verbose.\n")
    assert replay().exit_code == 0
    found = divergence("--strict")
    assert (found["step"], found["kind"], found["where"]) == (1, "preamble", "system")


def test_other_tools_are_told_by_strict(provider: ProviderServer, isolated: Path) -> None:
    provider.script(text("Hi."))
    run(provider, "--disallow-tools", "fetch")
    assert replay("--strict").exit_code == 0
    config = isolated / "wolo" / "config" / "config.toml"
    config.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    config.write_text('[tools]\noffer = ["read"]\n')
    config.chmod(0o600)
    assert divergence("--strict")["where"] == "tools"


def test_nothing_is_written_outside_the_copy(provider: ProviderServer, isolated: Path) -> None:
    outside = isolated / "outside.txt"
    provider.script(call("shell", {"command": f"echo x >> {outside}; echo done"}), text("Done."))
    run(provider, "--yolo")
    replay()
    assert outside.read_text() == "x\n"
    provider.script(call("write", {"path": str(isolated / "new.txt"), "content": "x"}), text("Done."))
    run(provider, "--yolo", "-s", "second")
    (isolated / "new.txt").unlink()
    found = divergence("second")
    assert found["kind"] == "call"
    assert "only inside its copy" in found["got"]
    assert not (isolated / "new.txt").exists()


# Where it starts


def test_another_directory_is_the_start_as_it_is(reading: ProviderServer, isolated: Path) -> None:
    there = isolated / "there"
    there.mkdir()
    (there / "a.txt").write_text("one\ntwo\n")
    Path("a.txt").unlink()
    assert divergence()["step"] == 1
    assert replay("--at", str(there)).exit_code == 0
    assert replay("--at", str(isolated / "nowhere")).exit_code == 3


def test_a_directory_that_is_gone_needs_another_one(reading: ProviderServer, isolated: Path) -> None:
    session = run_wolo("sessions", "list", "--json").json[0]["id"]
    work = Path.cwd()
    os.chdir(isolated)
    shutil.move(work, isolated / "moved")
    gone = replay(session)
    assert gone.exit_code == 3
    assert "--at" in gone.stderr
    assert replay(session, "--at", str(isolated / "moved")).exit_code == 0


def test_links_stay_links_and_lead_into_the_copy(provider: ProviderServer) -> None:
    Path("real.txt").write_text("kept\n")
    Path("inside").symlink_to(Path("real.txt").resolve())
    provider.script(call("shell", {"command": "echo new > inside; cat real.txt; readlink inside"}), text("Done."))
    run(provider, "--yolo")
    Path("real.txt").write_text("kept\n")
    assert_same(provider, 2)
    assert Path("real.txt").read_text() == "kept\n"


def test_keep_leaves_only_the_copy(reading: ProviderServer, isolated: Path) -> None:
    spare = isolated / "tmp"
    spare.mkdir()
    assert run_wolo("replay", env={"TMPDIR": str(spare)}).exit_code == 0
    assert list(spare.iterdir()) == []
    kept = run_wolo("replay", "--keep", env={"TMPDIR": str(spare)})
    (folder,) = spare.iterdir()
    assert str(folder) in kept.stderr
    assert next(folder.rglob("a.txt")).read_text() == "one\ntwo\n"


def test_unknown_or_empty_session_is_refused(provider: ProviderServer) -> None:
    assert replay("nothing-like-it").exit_code == 3
    assert replay().exit_code == 3
    assert "Traceback" not in replay("session_1").stderr


def test_prompt_beginning_with_the_word_is_a_prompt(provider: ProviderServer) -> None:
    provider.script(text("Which game?"))
    assert run_wolo("-p", *provider.flags, "replay the last game").stdout == "Which game?\n"


# Cassettes


def test_a_cassette_is_played_anywhere(reading: ProviderServer, isolated: Path) -> None:
    made = replay("--record", str(isolated / "it.cassette"), "--json")
    assert (made.exit_code, made.json["same"]) == (0, True)
    elsewhere = isolated / "elsewhere"
    elsewhere.mkdir()
    environment = {"WOLO_HOME": str(isolated / "other")}
    for path in Path.cwd().iterdir():
        path.unlink()
    played = run_wolo("replay", "--strict", "--yes", "../it.cassette", cwd=elsewhere, env=environment)
    assert played.exit_code == 0, played
    assert list(elsewhere.iterdir()) == []
    taken = run_wolo("sessions", "import", "../it.cassette", "--json", cwd=elsewhere, env=environment)
    assert taken.exit_code == 0, taken


def test_export_replays_with_a_given_directory(reading: ProviderServer, isolated: Path) -> None:
    assert run_wolo("sessions", "export", "-o", "../it.jsonl").exit_code == 0
    assert replay("../it.jsonl", "--at", ".", "--yes").exit_code == 0
    alone = replay("../it.jsonl")
    assert alone.exit_code == 1
    assert "contains no workspace" in alone.stderr


def test_no_secret_goes_into_a_cassette(provider: ProviderServer) -> None:
    Path("a.txt").write_text("the key is sk-proj-0123456789abcdefghijklmnop\n")
    Path(".env").write_text("PASSWORD=hunter2hunter2\n")
    provider.script(call("read", {"path": "a.txt"}), text("Done."))
    run(provider)
    replay("--record", "it.cassette")
    written = Path("it.cassette").read_text()
    assert "sk-proj-0123456789" not in written
    files = [json.loads(line) for line in written.splitlines() if '"wolo":"file"' in line]
    assert [file["path"] for file in files] == ["a.txt"]


@pytest.mark.parametrize("name", ["calculator", "detours"])
def test_our_own_recordings_still_go_as_they_went(name: str) -> None:
    played = replay("--yes", "--mode", "yolo", str(CASSETTES / f"{name}.cassette"))
    assert played.exit_code == 0, played.stdout + played.stderr


# Recordings of others


@pytest.fixture
def foreign(provider: ProviderServer, isolated: Path) -> Callable[..., Path]:
    """Makes a cassette on another machine: with another home of wolo."""

    def make(*commands: str, options: Sequence[str] = ("--yolo",)) -> Path:
        environment = {"WOLO_HOME": str(isolated / "theirs")}
        provider.script(calls(*(("shell", {"command": command}) for command in commands)), text("Done."))
        done = run_wolo("-p", *options, *provider.flags, "go", env=environment)
        assert done.exit_code == 0, done.stderr
        run_wolo("replay", "--record", "../it.cassette", env=environment)
        return isolated / "it.cassette"

    return make


def test_foreign_recording_shows_commands_and_runs_nothing(foreign: Callable[..., Path], isolated: Path) -> None:
    file = foreign("touch made; echo \x1b[2Ahidden")
    refused = replay(str(file))
    assert refused.exit_code == 2
    assert "command: touch made; echo " in refused.stderr
    assert "\x1b" not in refused.stderr
    assert "--yes" in refused.stderr
    assert not any(path.name == "made" for path in isolated.rglob("wolo-replay-*/**/made"))


def test_foreign_command_shows_every_character(foreign: Callable[..., Path]) -> None:
    """Terminals hide what is in a title, and what cannot be seen runs too."""
    file = foreign("echo one \x1b]0;; touch made #\x07\u202e; echo two\n command: nothing")
    assert (
        "command: echo one ⟨U+001B⟩]0;; touch made #⟨U+0007⟩⟨U+202E⟩; echo two\nwolo:      |  command: nothing\n"
        in replay(str(file)).stderr
    )


def test_foreign_call_is_shown_as_hooks_changed_it(foreign: Callable[..., Path]) -> None:
    file = foreign("echo one")
    hooks = {event: {"updated_input": {"command": f"echo {event}"}} for event in ("PreToolUse", "PermissionRequest")}
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    parts = [part for line in lines for part in line.get("body", {}).get("parts", ()) if part.get("status") == "completed"]
    assert parts
    for part in parts:
        part["metadata"]["hooks"] = hooks
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    shown = replay(str(file)).stderr
    assert [f"command: echo {each}\n" in shown for each in ("one", *hooks)] == [True] * 3


def test_a_yes_holds_for_exactly_this_recording(foreign: Callable[..., Path], isolated: Path) -> None:
    file = foreign("echo one")
    assert replay("--yes", str(file)).exit_code == 0
    assert replay(str(file)).exit_code == 0
    (isolated / "renamed.cassette").write_bytes(file.read_bytes())
    assert replay("../renamed.cassette").exit_code == 0
    file.write_bytes(file.read_bytes().replace(b"echo one", b"echo two"))
    assert replay(str(file)).exit_code == 2


def test_terminal_is_asked_once_about_foreign_recordings(foreign: Callable[..., Path]) -> None:
    file = str(foreign("echo one"))
    for answer, code in (("n", 2), ("y", 0)):
        with pty_wolo("replay", file) as terminal:
            terminal.wait_for("[y/N]")
            terminal.enter(answer)
            assert terminal.wait_for_exit() == code
    assert replay(file).exit_code == 0


def test_imported_session_is_a_foreign_recording(foreign: Callable[..., Path]) -> None:
    taken = run_wolo("sessions", "import", str(foreign("echo one")), "--json").json
    assert replay(taken["id"]).exit_code == 2
    assert replay("--yes", taken["id"]).exit_code == 0


def test_recorded_commands_reach_neither_network_nor_home(foreign: Callable[..., Path]) -> None:
    loot = Path.home() / "loot"
    loot.parent.mkdir(exist_ok=True)
    loot.write_text("sesame-opens-it")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        file = foreign(f"cat {loot} || true; (echo x > /dev/tcp/127.0.0.1/{port}) 2> /dev/null && echo called || true")
        for options in ((), ("--mode", "yolo"), ("--allow", "shell:*")):
            found = divergence("--yes", *options, str(file))
            assert "sesame-opens-it" in found["expected"]
            assert "called" in found["expected"]
            assert "sesame-opens-it" not in found["got"]
            assert "called" not in found["got"]


def test_foreign_mode_and_approvals_decide_nothing(foreign: Callable[..., Path], isolated: Path) -> None:
    file = foreign("touch made")
    found = divergence("--yes", "--mode", "edit", str(file))
    assert (found["kind"], "Denied now" in found["got"] or "approval" in found["got"]) == ("call", True)
    config = isolated / "wolo" / "config" / "config.toml"
    config.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    config.write_text('mode = "plan"\n')
    config.chmod(0o600)
    assert divergence(str(file))["kind"] == "call"


def test_foreign_approval_approves_nothing(foreign: Callable[..., Path], provider: ProviderServer, isolated: Path) -> None:
    environment = {"WOLO_HOME": str(isolated / "theirs")}
    provider.script(call("shell", {"command": "touch one"}), text("I see."))
    with pty_wolo("--mode", "edit", *provider.flags, "go", env=environment) as terminal:
        terminal.wait_for("or type why not ›")
        terminal.enter("y")
        assert terminal.wait_for_exit() == 0
    run_wolo("replay", "--record", "../it.cassette", env=environment)
    found = divergence("--yes", "--mode", "edit", "../it.cassette")
    assert "needs an approval now" in found["got"]


def test_foreign_hook_approves_nothing(provider: ProviderServer, isolated: Path) -> None:
    environment = {"WOLO_HOME": str(isolated / "theirs")}
    said = {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow"}}
    (isolated / "allow.json").write_text(json.dumps(said))
    config = isolated / "theirs" / "config" / "config.toml"
    config.parent.mkdir(parents=True, mode=0o700)
    config.write_text(f"[[hooks.PreToolUse]]\ncommand = 'cat {isolated / 'allow.json'}'\n")
    provider.script(call("shell", {"command": "touch one"}), text("Done."))
    assert run_wolo("-p", "--mode", "edit", *provider.flags, "go", env=environment).exit_code == 0
    own = run_wolo("replay", "--record", "../it.cassette", env=environment)
    assert own.exit_code == 0, own.stdout
    assert "needs an approval" in divergence("--yes", "--mode", "edit", "../it.cassette")["got"]


def test_foreign_directories_are_not_read(provider: ProviderServer, isolated: Path) -> None:
    environment = {"WOLO_HOME": str(isolated / "theirs")}
    added = isolated / "notes"
    added.mkdir()
    (added / "a.txt").write_text("sesame-opens-it")
    provider.script(call("shell", {"command": f"cat {added}/a.txt"}), text("Done."))
    run_wolo("-p", "--yolo", "--add-dir", str(added), *provider.flags, "go", env=environment)
    run_wolo("sessions", "export", "-o", "../it.jsonl", env=environment)
    taken = run_wolo("sessions", "import", "../it.jsonl", "--json").json
    found = divergence("--yes", "--mode", "yolo", taken["id"])
    assert "sesame-opens-it" not in found["got"]


def test_replay_uses_the_usual_sandbox_only(reading: ProviderServer) -> None:
    assert replay("--sandbox", "maybe").exit_code == 2


# The rest


def test_instructions_of_subfolders_are_repeated_as_they_were(provider: ProviderServer) -> None:
    Path("sub").mkdir()
    Path("sub/AGENTS.md").write_text("Speak softly.")
    Path("sub/a.txt").write_text("a")
    provider.script(call("read", {"path": "sub/a.txt"}), call("remember", {"note": "A."}), text("Done."))
    run(provider)
    assert "Speak softly." in provider.requests[-1].body.decode()
    Path("sub/AGENTS.md").write_text("Speak loudly.")
    assert_same(provider, 3)


def test_usage_is_no_part_of_it(provider: ProviderServer) -> None:
    provider.script(text("Hi.", usage=usage(1, 1)))
    run(provider)
    assert_same(provider, 1)
