"""Undo from the command line and in the REPL: files and conversation together, and nobody else's work."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import subprocess
import time
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import pytest

from tests.end_to_end.waiting import wait_for
from tests.fakes.command import run_wolo, start_wolo
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import call, calls, text
from tests.fakes.screen import pty_wolo
from tests.workspace.checkpoints.harness import Picture, picture
from wolo.places import find_places

Step = tuple[str, dict[str, object]]


def turn(
    provider: ProviderServer, *steps: Step, prompt: str = "go", flags: tuple[str, ...] = (), cwd: Path | None = None
) -> None:
    """One prompt, answered with these calls."""
    provider.forget_prefix()
    provider.script(*([calls(*steps)] if steps else []), text("done"))
    done = run_wolo("-p", "--yolo", *flags, *provider.flags, prompt, cwd=cwd)
    assert done.exit_code == 0, done.stderr


def shell(command: str) -> Step:
    return "shell", {"command": command}


def here() -> Picture:
    return picture(Path().resolve())


def git(*words: str) -> None:
    env = {
        **os.environ,
        "GIT_AUTHOR_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a@b",
        "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a@b",
    }
    subprocess.run(["git", *words], check=True, capture_output=True, env=env)


def repository() -> dict[str, str]:
    """Every byte of it."""
    return {str(path): sha256(path.read_bytes()).hexdigest() for path in sorted(Path(".git").rglob("*")) if path.is_file()}


def test_turn_and_files_go_back_and_forth(provider: ProviderServer) -> None:
    Path("a.txt").write_text("one\n")
    turn(provider, shell("echo two > a.txt; mkdir d; echo new > d/b.txt"), prompt="change a")
    undone = run_wolo("undo", "--json")
    row = undone.json
    assert (undone.exit_code, row["restored"], row["removed"], row["conflicts"]) == (0, ["a.txt"], ["d", "d/b.txt"], [])
    assert {path.name: path.read_text() for path in Path().iterdir()} == {"a.txt": "one\n"}
    assert run_wolo("redo").exit_code == 0
    assert Path("a.txt").read_text() == "two\n"
    assert run_wolo("redo").exit_code == 2
    run_wolo("undo")
    turn(provider, prompt="what now", flags=("-c",))
    said = [message["content"] for message in provider.requests[-1].messages if message["role"] == "user"]
    assert "change a" not in "".join(said)
    assert "a.txt" in said[0]
    again = run_wolo("undo")
    assert (again.exit_code, "no files change" in again.stdout) == (0, True)


@pytest.mark.parametrize("place", ["git", "plain", "subdirectory", "killed"])
def test_undo_touches_nothing_of_what_a_person_did(provider: ProviderServer, place: str) -> None:
    """The agent edits A and B, the person B and C: A goes back, B is told, C is nobody's business."""
    for name in "ABC":
        Path(name).write_text("one\n")
    if place != "plain":
        git("init", "-q")
        git("add", "A", "B")
        git("commit", "-qm", "first")
        git("add", "C")
    if place == "subdirectory":
        Path("sub").mkdir()
        os.chdir("sub")
    top = Path("..") if place == "subdirectory" else Path()
    steps: list[Step] = [("write", {"path": str(top / "new" / "file"), "content": "x"}), shell(f"echo agent > {top / 'A'}")]
    steps += [("read", {"path": str(top / "B")}), ("edit", {"path": str(top / "B"), "old": "one", "new": "agent"})]
    if place == "killed":
        provider.script(calls(*steps, shell("touch ready; sleep 60")))
        with start_wolo("-p", "--yolo", *provider.flags, "go") as process:
            wait_for(lambda: Path("ready").exists())
            process.kill()
        marks = find_places().data / "checkpoints"
        wait_for(lambda: any(marks.glob("killed-*")))  # no person is as quick as this test
    else:
        turn(provider, *steps)
    (top / "B").write_text("person\n")
    (top / "C").write_text("person\n")
    os.chdir(top)
    before = repository()
    undone = run_wolo("undo", cwd=Path("sub") if place == "subdirectory" else None)
    assert undone.exit_code == 1, undone.stdout + undone.stderr
    assert {name: Path(name).read_text() for name in "ABC"} == {"A": "one\n", "B": "person\n", "C": "person\n"}
    assert not Path("new").exists()
    assert not Path("ready").exists()
    assert "conflict" in next(line for line in undone.stdout.splitlines() if " B" in line or "/B" in line)
    assert repository() == before


def test_reading_command_takes_no_snapshot(provider: ProviderServer, isolated: Path) -> None:
    Path("a").write_text("one\n")
    turn(provider, shell("cat a"))
    assert not (isolated / "wolo" / "data" / "checkpoints").exists()
    turn(provider, shell("cat a > b"))
    assert (isolated / "wolo" / "data" / "checkpoints").exists()


def test_a_dry_run_and_a_refusal_change_nothing(provider: ProviderServer) -> None:
    turn(provider, shell("echo x > a"))
    before = here()
    dry = run_wolo("undo", "--dry-run", "--json")
    assert (dry.exit_code, dry.json["removed"], dry.json["done"]) == (0, ["a"], False)
    for words in (["0"], ["2"], ["--session", "nosuch"]):
        refused = run_wolo("undo", *words)
        assert (refused.exit_code, "Traceback" in refused.stderr) in ((2, False), (3, False))
    assert here() == before
    assert run_wolo("undo").exit_code == 0


@pytest.mark.parametrize("is_changed", [False, True])
def test_a_terminal_is_asked_about_conflicts_only(provider: ProviderServer, is_changed: bool) -> None:
    turn(provider, ("write", {"path": "a", "content": "x"}), ("write", {"path": "b", "content": "x"}))
    if is_changed:
        Path("b").write_text("person")
    with pty_wolo("undo") as terminal:
        if is_changed:
            terminal.wait_for("Continue with the rest?")
            terminal.enter("n")
        assert terminal.wait_for_exit() == int(is_changed)
    assert Path("a").exists() == is_changed


def test_without_a_session_there_is_nothing_to_undo() -> None:
    assert run_wolo("undo").exit_code == 3
    assert run_wolo("redo").exit_code == 3


def test_session_open_elsewhere_is_not_undone(provider: ProviderServer) -> None:
    turn(provider, shell("echo x > a"))
    provider.script(call("shell", {"command": "touch ready; sleep 60"}))
    with start_wolo("-p", "--yolo", "-c", *provider.flags, "go on") as process:
        wait_for(lambda: Path("ready").exists())
        refused = run_wolo("undo")
        assert refused.exit_code == 3
        assert f"(process {process.pid})" in refused.stderr
        assert "Type /undo there" in refused.stderr
        assert Path("a").exists()
        process.kill()


def test_several_turns_and_single_files_go_back(provider: ProviderServer) -> None:
    for number in range(3):
        turn(provider, shell(f"echo {number} > a.txt; echo {number} > b.txt"), flags=("-s", "work"))
    assert run_wolo("undo", "1", "b.txt").exit_code == 0
    assert (Path("a.txt").read_text(), Path("b.txt").read_text()) == ("2\n", "1\n")
    assert run_wolo("undo", "--only", "a.txt").exit_code == 0
    assert (Path("a.txt").read_text(), Path("b.txt").read_text()) == ("1\n", "1\n")
    assert run_wolo("redo").exit_code == 0
    assert (Path("a.txt").read_text(), Path("b.txt").read_text()) == ("2\n", "1\n")
    turn(provider, prompt="still here?", flags=("-c",))
    assert sum(message["role"] == "user" and message["content"] == "go" for message in provider.requests[-1].messages) == 3
    assert run_wolo("undo", "4").exit_code == 0
    assert here() == {}


def test_a_fork_undoes_nothing_a_second_time(provider: ProviderServer) -> None:
    turn(provider, shell("echo one > a"), flags=("-s", "work"))
    turn(provider, shell("echo two > a"), flags=("-s", "work"))
    turn(provider, flags=("-s", "work", "--fork"))
    fork = run_wolo("sessions", "list", "--json").json[0]["id"]
    assert run_wolo("undo", "--session", "work").exit_code == 0
    assert Path("a").read_text() == "one\n"
    assert run_wolo("undo", "2", "--session", fork).exit_code == 0
    assert Path("a").read_text() == "one\n"
    assert run_wolo("undo", "--session", fork).exit_code == 0
    assert here() == {}


def test_an_imported_session_redoes_nothing_of_another(provider: ProviderServer, tmp_path: Path) -> None:
    turn(provider, shell("echo one > a"), flags=("-s", "work"))
    assert run_wolo("undo", "--session", "work").exit_code == 0
    file = tmp_path / "stranger.jsonl"
    assert run_wolo("sessions", "export", "work", "--format", "jsonl", "-o", str(file)).exit_code == 0
    assert run_wolo("sessions", "import", str(file)).exit_code == 0
    imported = run_wolo("sessions", "list", "--json").json[0]["id"]
    refused = run_wolo("redo", "--session", imported)
    assert (refused.exit_code, "was made in another session" in refused.stderr) == (2, True)
    assert here() == {}
    assert run_wolo("redo", "--session", "work").exit_code == 0
    assert Path("a").read_text() == "one\n"


def test_damaged_undo_entry_is_read(provider: ProviderServer, tmp_path: Path) -> None:
    turn(provider, flags=("-s", "work"))
    assert run_wolo("undo", "--session", "work").exit_code == 0
    file = tmp_path / "stranger.jsonl"
    assert run_wolo("sessions", "export", "work", "--format", "jsonl", "-o", str(file)).exit_code == 0
    file.write_text(
        file.read_text().replace('\\"left\\":', '\\"left\\":\\"x\\",\\"was\\":').replace('"left":', '"left":"x","was":')
    )
    assert run_wolo("sessions", "import", str(file)).exit_code == 0
    imported = run_wolo("sessions", "list", "--json").json[0]["id"]
    done = run_wolo("redo", "--session", imported)
    assert "Traceback" not in done.stderr
    assert "wolo doctor" not in done.stderr


def test_prompt_beginning_with_undo_is_a_prompt(provider: ProviderServer) -> None:
    provider.script(text("which one?"))
    assert run_wolo(*provider.flags, "undo", "the", "last", "edit").stdout == "which one?\n"


def test_a_patch_of_several_files_goes_back_whole(provider: ProviderServer) -> None:
    Path("a.txt").write_text("one\n")
    Path("b.txt").write_text("two\n")
    Path("b.txt").chmod(0o750)
    before = here()
    patch = (
        "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+three\n*** Delete File: b.txt\n"
        "*** Add File: c/d.txt\n+new\n*** End Patch\n"
    )
    turn(provider, ("apply_patch", {"patch": patch}), flags=("--tools", "apply_patch"))
    assert here() != before
    assert run_wolo("undo").exit_code == 0
    assert here() == before


@pytest.mark.parametrize("rounds", [6, pytest.param(80, marks=[pytest.mark.soak, pytest.mark.timeout(3600)])])
def test_kills_at_any_moment_leave_everything_undoable(provider: ProviderServer, rounds: int) -> None:
    chance = random.Random(rounds)
    Path("text").write_text("0\n" * 3000)
    Path("text").chmod(0o750)
    Path("sub").mkdir()
    Path("sub/other").write_text("other\n")
    Path("link").symlink_to("text")
    before = here()
    for number in range(rounds):
        edit = ("write", {"path": f"made-{number}", "content": "x" * 50_000})
        change = ("edit", {"path": "link", "old": "0\n" * 3000 if number == 0 else str(number), "new": f"{number + 1}"})
        command = shell("rm -r sub; mkdir sub; for i in 1 2 3 4 5; do echo $i >> sub/other; sleep 0.02; done")
        provider.forget_prefix()
        provider.otherwise = calls(edit, change, command)
        asked = len(provider.requests)
        with start_wolo("-p", "--yolo", *provider.flags, "-s", "storm", f"prompt {number}") as process:
            provider.wait_for_requests(asked + 1)
            time.sleep(chance.uniform(0.0, 0.3))
            process.kill()
    kept = run_wolo("sessions", "list", "--json").json[0]["turns"]
    done = run_wolo("undo", str(kept), "--json")
    # A command that runs on without its wolo is told, and left as it is.
    assert set(done.json["conflicts"]) <= {"sub/other"}
    assert {name: each for name, each in here().items() if name not in done.json["conflicts"]} == {
        name: each for name, each in before.items() if name not in done.json["conflicts"]
    }
    cut_off = "the body is not a JSON object: b''"
    provider.problems[:] = [problem for problem in provider.problems if cut_off not in problem]


def test_killed_undo_is_carried_to_its_end(provider: ProviderServer) -> None:
    for number in range(40):
        Path(f"f{number}").write_text("one\n")
    before = here()
    turn(provider, shell("for f in f*; do echo two > $f; done; mkdir -p x/y/z; touch x/y/z/new"))
    after = here()
    for delay_s in (0.25, 0.35, 0.45, 0.55):
        with start_wolo("undo") as process:
            time.sleep(delay_s)
            process.kill()
        if "no turn" in run_wolo("undo").stderr:
            break
        assert here() == before
        assert run_wolo("redo").exit_code == 0
        assert here() == after


def test_undo_killed_after_recording_can_be_redone(provider: ProviderServer, isolated: Path) -> None:
    Path("f").write_text("one\n")
    turn(provider, shell("echo two > f"))
    assert run_wolo("undo").exit_code == 0
    (checkpoints,) = (isolated / "wolo" / "data" / "checkpoints").rglob("*.db")
    with closing(sqlite3.connect(checkpoints)) as database, database:
        database.execute("UPDATE steps SET done = 0")  # as a kill leaves it that comes before the last write
    assert run_wolo("redo").exit_code == 0
    assert Path("f").read_text() == "two\n"


def test_pruned_entry_is_reported(provider: ProviderServer, isolated: Path) -> None:
    turn(provider, ("write", {"path": "a", "content": "x"}))
    shutil.rmtree(isolated / "wolo" / "data" / "checkpoints")
    done = run_wolo("undo")
    assert (done.exit_code, Path("a").exists()) == (0, True)
    assert "No undo data" in done.stdout


def test_a_command_inside_the_walls_goes_back_too(provider: ProviderServer) -> None:
    Path("a").write_text("one\n")
    before = here()
    provider.script(calls(shell("echo two > a; mkdir -p d/e; touch d/e/f")), text("done"))
    assert run_wolo("-p", "--mode", "auto", *provider.flags, "go").exit_code in (0, 4)  # 4: there are no walls here
    row = run_wolo("undo", "--json").json
    assert (set(row["restored"]), set(row["removed"])) in (({"a"}, {"d", "d/e", "d/e/f"}), (set(), set()))
    assert here() == before


def test_a_name_looks_like_nothing_else(provider: ProviderServer) -> None:
    hostile = "a\nwolo: all is well\x1b[2J\u202e"
    provider.script(
        call("shell", {"command": "printf x > \"$(printf 'a\\nwolo: all is well\\033[2J\\342\\200\\256')\""}), text("ok")
    )
    run_wolo("-p", "--yolo", *provider.flags, "go")
    assert Path(hostile).exists()
    assert run_wolo("undo", "--dry-run", "--json").json["removed"] == [hostile]
    told = run_wolo("undo").stdout.splitlines()
    assert told[1] == r"  removed   a\u{a}wolo: all is well\u{1b}[2J\u{202e}"
    assert not any(line.startswith("wolo:") for line in told)
