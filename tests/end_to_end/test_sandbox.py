"""Sandboxed commands end to end: effects on disk, and what model and user are told."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import components
from tests.fakes.command import run_wolo
from tests.fakes.provider_server import KEY, ProviderServer
from tests.fakes.replies import call, calls, text
from tests.fakes.screen import pty_wolo
from tests.fleet.batches import serve
from tests.guard.sandbox_setup import CHOSEN, Ground, land
from tests.guard.test_sandbox_contract import need
from wolo import Agent

ASKED = "or type why not ›"


@pytest.fixture
def ground(monkeypatch: pytest.MonkeyPatch) -> Iterator[Ground]:
    """A workspace that is not in `/tmp`, with a home beside it."""
    components.require("bwrap")
    with land("root") as folder, Ground(folder) as ground:
        monkeypatch.setenv("HOME", str(folder / "home"))
        monkeypatch.chdir(ground.work)
        yield ground


def without_bwrap(isolated: Path) -> str:
    """A PATH on which everything is but bubblewrap."""
    programs = isolated / "programs"
    if programs.exists():
        return str(programs)
    programs.mkdir()
    for folder in reversed(os.get_exec_path()):
        for name in (path.name for path in Path(folder).iterdir()) if Path(folder).is_dir() else ():
            if name != "bwrap":
                (programs / name).unlink(missing_ok=True)
                (programs / name).symlink_to(Path(folder, name))
    return str(programs)


def test_command_runs_unasked_inside_without_outside_effect(provider: ProviderServer, ground: Ground) -> None:
    commands = (
        "echo made > made; cat made; echo $WOLO_SANDBOX",
        f"echo x > {ground.folder}/outside/new",
        f"echo x > /dev/tcp/127.0.0.1/{ground.tcp.getsockname()[1]}",
        "getent hosts example.org || curl -sS http://example.org",
        "cat ~/.ssh/id_rsa",
        "sh -c 'echo x > .g''it/hooks/pre-commit'",
        "touch /usr/wolo-test",
    )
    provider.script(calls(*(("shell", {"command": command}) for command in commands)), text("ok"))
    done = run_wolo("--json", *provider.flags, "go")
    results = provider.requests[1].results
    assert results[0] == f"made\n{CHOSEN}\n[exit 0]\n"
    assert "sandbox denied: inside the sandbox the home directory and other projects are not visible" in results[1]
    assert "sandbox denied: inside the sandbox only the workspace can be written" in results[-1]
    assert "sandbox denied: inside the sandbox there is no network" in results[2]
    assert "sandbox denied: inside the sandbox there is no network" in results[3]
    assert not (ground.folder / "outside" / "new").exists()
    assert not (ground.work / ".git/hooks/pre-commit").exists()
    assert not ground.was_called()
    assert not any("sesame" in result for result in results)
    assert sorted(path.name for path in ground.work.iterdir()) == [".git", "AGENTS.md", "deep", "made", "place", "sub", "tree"]
    denied = [each["input"]["command"] for each in done.json["permission_denials"]]
    assert denied == [command for command, result in zip(commands, results, strict=True) if result.startswith("Denied")]


async def run_agent(provider: ProviderServer) -> None:
    """Of the Python API, whose sandbox is made when the first call comes."""
    async with Agent("test-model", base_url=provider.base_url, api_key=KEY, mode="auto") as agent:
        await agent.run("go")


def test_file_of_first_call_opens_no_folder(provider: ProviderServer, ground: Ground) -> None:
    """The home of a virtual environment is visible to commands, if the user has made it before."""
    other = ground.folder / "outside" / "python"
    (other / "bin").mkdir(parents=True)
    (other / "bin" / "python3").touch(mode=0o755)
    (other / "notes").write_text("sesame\n")
    environment = {"path": "env/pyvenv.cfg", "content": f"home = {other}/bin\n"}
    provider.script(call("write", environment), call("shell", {"command": f"cat {other}/notes"}), text("ok"))
    asyncio.run(run_agent(provider))
    assert (ground.work / "env" / "pyvenv.cfg").exists()
    assert "No such file" in provider.requests[2].results[1]


def test_sandbox_denial_is_no_refusal(provider: ProviderServer, ground: Ground) -> None:
    provider.script(call("shell", {"command": f"touch {ground.folder}/outside/new"}), text("Could not."))
    done = run_wolo("--json", *provider.flags, "go")
    assert (done.exit_code, done.json["permission_denials"]) == (0, [])
    assert provider.requests[1].results[0].rstrip().splitlines()[-1].startswith("sandbox denied:")


def test_allowed_command_runs_outside_and_inside_with_required(provider: ProviderServer, ground: Ground) -> None:
    outside = ground.folder / "outside" / "new"
    for options, is_free in (((), True), (("--sandbox", "required"), False), (("--yolo", "--sandbox", "required"), False)):
        outside.unlink(missing_ok=True)
        provider.script(call("shell", {"command": f"touch {outside}"}), text("ok"))
        run_wolo("-p", "--allow", "shell:touch *", *options, *provider.flags, "go")
        assert outside.exists() is is_free, options


def test_yolo_runs_outside(provider: ProviderServer, ground: Ground) -> None:
    provider.script(call("shell", {"command": f"touch {ground.folder}/outside/new"}), text("ok"))
    assert run_wolo("-p", "--yolo", *provider.flags, "go").exit_code == 0
    assert (ground.folder / "outside" / "new").exists()


def test_no_argument_of_a_call_opens_the_walls(provider: ProviderServer, ground: Ground) -> None:
    outside = ground.folder / "outside" / "new"
    tried = ({"sandbox": False}, {"dangerouslyDisableSandbox": True}, {"confined": False}, {"cwd": str(outside.parent)})
    provider.script(calls(*(("shell", {"command": f"touch {outside}", **more}) for more in tried)), text("ok"))
    run_wolo("-p", *provider.flags, "go")
    assert not outside.exists()


def test_a_person_may_let_it_run_outside(provider: ProviderServer, ground: Ground) -> None:
    outside = ground.folder / "outside" / "new"
    provider.script(call("shell", {"command": f"cd sub; touch {outside} && echo made it"}), text("Well."))
    with pty_wolo("--sandbox", "auto", *provider.flags, "go on", rows=40, columns=150) as terminal:
        terminal.wait_for("sandbox denied:")
        terminal.wait_for(ASKED)
        assert not outside.exists()
        assert not terminal.shows("tell the user")
        terminal.enter("y")
        assert terminal.wait_for_exit() == 0
    assert outside.exists()
    (result,) = provider.requests[1].results
    assert result.startswith("[it failed inside the sandbox; the user allowed it to run again outside]\nmade it\n[exit 0]")


def test_a_yes_lets_one_call_run_outside(provider: ProviderServer, ground: Ground) -> None:
    outside = ground.folder / "outside" / "new"
    provider.script(call("shell", {"command": f"touch {outside}"}), call("shell", {"command": f"touch {outside}"}), text("Well."))
    with pty_wolo("--sandbox", "auto", *provider.flags, "go on", rows=40, columns=150) as terminal:
        terminal.wait_for(ASKED)
        terminal.enter("y")
        provider.wait_for_requests(2)
        outside.unlink()
        terminal.wait_until(lambda: terminal.text.count(ASKED) == 2)
        terminal.enter("")
        assert terminal.wait_for_exit() == 0
    assert not outside.exists()
    assert "The user did not allow it to run outside" in provider.requests[2].results[-1]


def test_a_yes_for_the_session_asks_once(provider: ProviderServer, ground: Ground) -> None:
    touch = call("shell", {"command": f"touch {ground.folder / 'outside' / 'new'}"})
    provider.script(touch, touch, text("Well."))
    with pty_wolo("--sandbox", "auto", *provider.flags, "go on", rows=40, columns=150) as terminal:
        terminal.wait_for(ASKED)
        terminal.enter("s")
        assert terminal.wait_for_exit() == 0
    assert "exit 0" in provider.requests[2].results[-1]


def test_required_sandbox_offers_no_way_out(provider: ProviderServer, ground: Ground) -> None:
    outside = ground.folder / "outside" / "new"
    provider.script(call("shell", {"command": f"touch {outside}"}), text("Well."))
    with pty_wolo("--sandbox", "required", *provider.flags, "go on", rows=40, columns=150) as terminal:
        assert terminal.wait_for_exit() == 0
        assert not terminal.shows(ASKED)
    assert not outside.exists()
    assert "sandbox denied:" in provider.requests[1].results[0]


def test_a_no_leaves_it_at_that(provider: ProviderServer, ground: Ground) -> None:
    outside = ground.folder / "outside" / "new"
    provider.script(call("shell", {"command": f"touch {outside}"}), text("Well."))
    with pty_wolo(*provider.flags, "go on", rows=40, columns=150) as terminal:
        terminal.wait_for(ASKED)
        terminal.enter("")
        assert terminal.wait_for_exit() == 0
    assert not outside.exists()
    assert "The user did not allow it to run outside the sandbox." in provider.requests[1].results[0]


def test_protected_link_lets_nothing_run_unasked(provider: ProviderServer, ground: Ground) -> None:
    """The walls cannot hold it, and nobody is there who could say that it may run without them: a refusal."""
    (ground.work / ".wolo").symlink_to(ground.folder / "outside")
    provider.script(call("shell", {"command": "touch made"}), text("Could not."))
    done = run_wolo("--json", *provider.flags, "go")
    assert "sandbox denied: " in provider.requests[1].results[0]
    assert not (ground.work / "made").exists()
    assert (done.exit_code, done.json["result"]) == (4, "Could not.")
    (denied,) = done.json["permission_denials"]
    assert denied["input"] == {"command": "touch made"}
    assert ".wolo is a link" in denied["reason"]


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory outside `/dev`, of which commands have their own; those of pytest may be in it."""
    with tempfile.TemporaryDirectory(dir="/tmp") as path:
        yield Path(path)


def test_without_bubblewrap_namespaces_of_our_own_hold(provider: ProviderServer, ground: Ground, place: Path) -> None:
    need("namespaces")
    env = {"PATH": without_bwrap(place)}
    report = run_wolo("doctor", "--json", env=env).json["sandbox"]
    assert (report["backend"], report["whole"]) == ("namespaces", True)
    commands = (
        f"touch {ground.folder}/outside/new",
        "python3 -c \"open('.g' + 'it/config', 'w')\"",
        "touch made; echo $WOLO_SANDBOX",
    )
    provider.script(calls(*(("shell", {"command": command}) for command in commands)), text("ok"))
    run_wolo("-p", *provider.flags, "go", env=env)
    outside, protected, inside = provider.requests[1].results
    assert "sandbox denied:" in outside
    assert "sandbox denied:" in protected
    assert inside == "namespaces\n[exit 0]\n"
    assert ((ground.work / "made").exists(), (ground.folder / "outside/new").exists()) == (True, False)


def test_without_namespaces_landlock_holds(provider: ProviderServer, ground: Ground, isolated: Path) -> None:
    need("landlock")
    report = json.loads(without(isolated, UNSHARE, "doctor", "--json").stdout)["sandbox"]
    assert (report["backend"], report["whole"]) == ("landlock", False)
    outside = ground.folder / "outside" / "new"
    provider.script(calls(("shell", {"command": f"touch {outside}"}), ("shell", {"command": "touch made"})), text("ok"))
    without(isolated, UNSHARE, "-p", *provider.flags, "go")
    assert "sandbox denied:" in provider.requests[1].results[0]
    assert ((ground.work / "made").exists(), outside.exists()) == (True, False)


def test_landlock_refuses_allowed_domains_before_a_request(provider: ProviderServer, ground: Ground, isolated: Path) -> None:
    need("landlock")
    report = json.loads(without(isolated, UNSHARE, "doctor", "--json").stdout)["sandbox"]
    assert "sandbox.allowed_domains, which needs namespaces" in report["not_covered"]
    domains = 'sandbox.allowed_domains=["packages.example.com"]'
    done = without(isolated, UNSHARE, "-p", "--set", domains, *provider.flags, "go")
    assert done.returncode == 2
    assert "sandbox.allowed_domains cannot be used" in done.stderr
    assert provider.requests == []


PLANTING = "python3 -c \"open('.g' + 'it/config', 'a').write('[alias]'); open('.mcp' + '.json', 'w').write('{}')\""


def test_landlock_restores_protected_files_and_informs_model(provider: ProviderServer, ground: Ground, isolated: Path) -> None:
    need("landlock")
    before = (ground.work / ".git/config").read_text()
    provider.script(call("shell", {"command": f"{PLANTING}; touch made"}), text("ok"))
    without(isolated, UNSHARE, "-p", *provider.flags, "go")
    (result,) = provider.requests[1].results
    assert "sandbox denied: inside the sandbox it changed protected files" in result
    assert ".mcp.json" in result
    assert ".git/config" in result
    assert (ground.work / ".git/config").read_text() == before
    assert ((ground.work / ".mcp.json").exists(), (ground.work / "made").exists()) == (False, True)


def test_unrestorable_file_is_named_not_called_restored(provider: ProviderServer, ground: Ground, isolated: Path) -> None:
    need("landlock")
    (ground.work / ".git/HEAD").write_text("ref: refs/heads/main\n")
    (ground.work / ".git/objects").mkdir()
    provider.script(call("shell", {"command": "python3 -c \"import shutil; shutil.rmtree('.g' + 'it')\""}), text("ok"))
    without(isolated, UNSHARE, "-p", *provider.flags, "go")
    (result,) = provider.requests[1].results
    assert "these are not what they were: .git. Check them" in result
    assert "restored" not in result


MAKING = {
    "new/.git/config": (
        "python3 -c \"import os; os.makedirs('new/.g' + 'it'); open('new/.g' + 'it/config', 'w').write('[core]')\""
    ),
    "lefthook.yml": "python3 -c \"open('left' + 'hook.yml', 'w').write('pre-commit: {}')\"",
}


@pytest.mark.sweep(every=3)
@pytest.mark.parametrize(("answer", "is_kept"), [("y", True), ("", False)])
@pytest.mark.parametrize("path", MAKING)
def test_new_protected_name_is_set_aside_until_wanted(
    provider: ProviderServer, ground: Ground, path: str, answer: str, is_kept: bool
) -> None:
    making = MAKING[path]
    provider.script(call("shell", {"command": making}), text("Well."))
    with pty_wolo(*provider.flags, "go on", rows=40, columns=150) as terminal:
        terminal.wait_for("Keep its version of them?")
        terminal.wait_for(ASKED)
        assert not (ground.work / path).exists()
        terminal.enter(answer)
        assert terminal.wait_for_exit() == 0
    assert bool(ground.text(f"work/{path}")) is is_kept
    (result,) = provider.requests[1].results
    assert ("the user kept what it changed" in result) is is_kept


def test_job_planting_a_file_ends_with_a_sentence(provider: ProviderServer, ground: Ground) -> None:
    planting = "python3 -c \"while 1: open('.bash' + 'rc', 'w').write('planted')\""
    provider.script(
        call("shell", {"command": planting, "background": True}), call("jobs", {"action": "output", "wait_s": 30}), text("ok")
    )
    run_wolo("-p", *provider.flags, "go")
    said = "".join(provider.requests[-1].results)
    assert "the sandbox ended it: " in said
    assert ".bashrc appeared, which runs code or steers agents; it was set aside as " in said
    assert not (ground.work / ".bashrc").exists()


WITHOUT = """
import ctypes, os, struct, sys
line = lambda *words: struct.pack("=HBBI", *words)
text, refused = line(0x20, 0, 0, 0), sys.argv[1].split()
for number, error in zip(refused[::2], refused[1::2]):
    text += line(0x15, 0, 1, int(number)) + line(0x06, 0, 0, 0x50000 | int(error))
text += line(0x06, 0, 0, 0x7FFF0000)
class Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("lines", ctypes.c_char_p))
system = ctypes.CDLL(None)
assert not system.prctl(38, *map(ctypes.c_ulong, (1, 0, 0, 0)))
program = Program(len(text) // 8, text)
assert not system.prctl(22, ctypes.c_ulong(2), ctypes.byref(program), ctypes.c_ulong(0), ctypes.c_ulong(0))
os.execv(sys.executable, [sys.executable, "-m", "wolo", *sys.argv[2:]])
"""
"""Runs wolo on a kernel that answers some system calls (x86-64) with an error, as that of a container does."""
UNSHARE, LANDLOCK = "272 1 ", "444 38 "


def without(isolated: Path, refused: str, *args: str) -> subprocess.CompletedProcess[str]:
    """With no bubblewrap either."""
    env = {**os.environ, "PATH": without_bwrap(isolated)}
    line = [sys.executable, "-c", WITHOUT, refused, *args]
    return subprocess.run(line, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)


def without_walls(isolated: Path, *args: str) -> subprocess.CompletedProcess[str]:
    return without(isolated, UNSHARE + LANDLOCK, *args)


def test_required_without_sandbox_ends_before_anything(provider: ProviderServer, ground: Ground, isolated: Path) -> None:
    done = without_walls(isolated, "-p", "--sandbox", "required", "--yolo", *provider.flags, "go")
    assert done.returncode == 2
    assert "--sandbox required: no sandbox is available on this machine." in done.stderr
    assert provider.requests == []


def test_task_commands_need_a_sandbox(
    provider: ProviderServer, ground: Ground, isolated: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in serve(provider).items():
        monkeypatch.setenv(name, value)
    task = isolated / "t.jsonl"
    task.write_text('{"id": "a", "prompt": "go", "setup": "touch here"}')
    for out, more in (("x", ()), ("y", ("--set", "sandbox.backend=off"))):
        run = isolated / out
        without_walls(isolated, "batch", "run", str(task), "--out", str(run), *more)
        said = (run / "results.jsonl").read_text()
        assert ("setup and verify run in the sandbox only" in said, '"kind":"setup"' in said) == (not more, False), said


def test_replay_without_sandbox_is_refused_unless_told(provider: ProviderServer, ground: Ground, isolated: Path) -> None:
    provider.script(call("shell", {"command": "echo hi"}), text("ok"))
    run_wolo("-p", "--yolo", *provider.flags, "go")
    refused = without_walls(isolated, "replay")
    assert refused.returncode == 2
    assert "There is no sandbox on this machine, so the commands of the recording were not run." in refused.stderr
    assert "--sandbox off" in refused.stderr
    told = without_walls(isolated, "replay", "--sandbox", "off")
    assert "all as recorded" in told.stdout, told


def test_auto_without_sandbox_becomes_edit_with_notice(provider: ProviderServer, ground: Ground, isolated: Path) -> None:
    provider.script(calls(("shell", {"command": "touch made"}), ("write", {"path": "new", "content": ""})), text("ok"))
    done = without_walls(isolated, "-p", *provider.flags, "go")
    assert done.returncode == 4
    assert "No sandbox is available here, so mode auto works like edit" in done.stderr
    assert ((ground.work / "made").exists(), (ground.work / "new").exists()) == (False, True)


def test_doctor_says_what_holds_and_what_does_not(ground: Ground) -> None:
    report = run_wolo("doctor", "--json").json["sandbox"]
    assert report["backend"] == CHOSEN
    assert {"network", "secrets", "protected names"} <= set(report["covers"])
    assert report["not_covered"]
    assert f"sandbox   {CHOSEN}; not covered: " in run_wolo("doctor").stdout


@pytest.mark.parametrize(("refused", "said"), [(UNSHARE, "landlock, partial: "), (UNSHARE + LANDLOCK, "none; not covered: ")])
def test_doctor_says_when_the_sandbox_is_not_whole(ground: Ground, isolated: Path, refused: str, said: str) -> None:
    assert f"sandbox   {said}" in without(isolated, refused, "doctor").stdout


TIDIES_UP = "sh -c 'trap \"sleep 0.3; echo tidied > tidied; exit\" TERM; echo begun; while :; do sleep 0.05; done'"


@pytest.mark.parametrize("command", [f"{TIDIES_UP}; echo went on > went-on", f"({TIDIES_UP}; true) & wait"])
def test_overlong_command_inside_can_clean_up(provider: ProviderServer, ground: Ground, command: str) -> None:
    provider.script(call("shell", {"command": command, "timeout_s": 1}), text("ok"))
    run_wolo("-p", *provider.flags, "go")
    (result,) = provider.requests[1].results
    assert "begun" in result
    assert "timed out after 1 s" in result
    assert (ground.work / "tidied").exists()
    assert not (ground.work / "went-on").exists()


def test_reading_command_sees_the_workspace_unchanged(provider: ProviderServer, isolated: Path) -> None:
    components.require("bwrap")
    with land("root") as folder:
        (folder / "seen").write_text("")
        provider.script(calls(("shell", {"command": "ls -A"}), ("shell", {"command": "ls AGENTS.md"})), text("ok"))
        run_wolo("-p", *provider.flags, "go", cwd=folder)
        results = provider.requests[1].results
        assert results[0] == "seen\n[exit 0]\n"
        assert "No such file" in results[1]


def test_a_listing_shows_nothing_that_is_not_there(provider: ProviderServer, isolated: Path) -> None:
    components.require("bwrap")
    with land("root") as folder:
        provider.script(call("shell", {"command": "touch made; ls -A"}), text("ok"))
        run_wolo("-p", *provider.flags, "go", cwd=folder)
        assert provider.requests[1].results == ["made\n[exit 0]\n"]


def test_sandbox_denial_is_reported_despite_continued_command(provider: ProviderServer, ground: Ground) -> None:
    log = ground.work / "log"
    log.write_text(f"{ground.folder}/outside/x: Permission denied\nconnection refused\n")
    commands = (
        f"touch {ground.folder}/outside/new || true",
        f"touch {ground.folder}/outside/new; cat log",
        "cat log | sort",
        "grep -h . log; :",
    )
    provider.script(calls(*(("shell", {"command": command}) for command in commands)), text("ok"))
    done = run_wolo("--json", *provider.flags, "go")
    told = ["sandbox denied: inside the sandbox" in result for result in provider.requests[1].results]
    assert told == [True, True, False, False]
    assert (done.exit_code, done.json["permission_denials"]) == (0, [])


def test_tool_rules_hold_inside_the_sandbox_too(provider: ProviderServer, ground: Ground) -> None:
    for name in ("notes", "docs"):
        (ground.work / name).mkdir()
        (ground.work / name / "kept").write_text("sesame\n")
    commands = (
        "cp -r $(printf '\\056') $TMPDIR/all; cat $TMPDIR/all/no*s/kept",
        "d=$(printf 'd\\157cs'); echo planted > $d/kept; mv $d gone; cat $d/kept",
    )
    provider.script(calls(*(("shell", {"command": command}) for command in commands)), text("ok"))
    run_wolo("-p", "--deny", "read:notes/**", "--deny", "write:docs/**", *provider.flags, "go")
    read, written = provider.requests[1].results
    assert "sesame" not in read
    assert "sesame" in written
    assert (ground.work / "docs" / "kept").read_text() == "sesame\n"
    provider.script(calls(*(("shell", {"command": command}) for command in commands)), text("ok"))
    run_wolo("-p", *provider.flags, "go")
    assert "sesame" in provider.requests[3].results[0]
    assert (ground.work / "gone" / "kept").read_text() == "planted\n"


def test_write_behind_a_safe_command_is_undoable(provider: ProviderServer, ground: Ground) -> None:
    (ground.work / "old").write_text("old\n")
    provider.script(call("shell", {"command": "pwd; mv old older; touch new"}), text("ok"))
    done = run_wolo("--json", *provider.flags, "go")
    assert done.json["files_changed"] == ["new", "old", "older"]
    assert run_wolo("undo").exit_code == 0
    assert (ground.work / "old").read_text() == "old\n"
    assert not (ground.work / "new").exists()
