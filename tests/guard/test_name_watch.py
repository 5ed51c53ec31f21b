"""Protected names while something runs in the sandbox: nothing of wolo's own is seen, and nothing that was planted stays."""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.end_to_end.waiting import wait_for
from tests.guard.sandbox_setup import PATIENT_TRIES, Ground, any_python, land, put_up
from tests.guard.test_sandbox_contract import USERS, both, everyone, need, with_mounts
from tests.tools.harness import ToolHarness
from wolo.guard.protected_paths import RUNS_CODE
from wolo.guard.sandbox.calls import new_inotify, watch_folder
from wolo.guard.sandbox.profile import profile_for
from wolo.guard.sandbox_contract import Sandbox

# ruff: noqa: PTH119, PTH208  # names, not paths

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="these walls are Linux's")


@contextmanager
def running(walls: Sandbox, work: Path, command: str, *, in_background: bool = True) -> Iterator[Callable[[], str]]:
    """Gives the question for the reason why it was ended; afterwards everything of it has ended."""
    for _ in range(PATIENT_TRIES):  # a socket that was to be hidden may have been removed in between
        enclosed = walls.wrap(["sh", "-c", f"touch begun; {command}"], work, in_background=in_background)
        process = subprocess.Popen(enclosed.argv, pass_fds=enclosed.pass_fds, cwd=work, start_new_session=True)
        wait_for(lambda process=process: (work / "begun").exists() or process.poll() is not None)  # type: ignore[misc]  # a bool
        if (work / "begun").exists():
            break
        enclosed.cleanup()
    try:
        yield enclosed.why_ended
        process.wait(30)
    finally:
        process.kill()
        process.wait()
        enclosed.cleanup()


PLANTED = (
    ".cargo/config.toml",
    ".github/hooks/x",
    ".bashrc",
    ".wolo/config.toml",
    ".mcp.json",
    "lefthook.yml",
    "x.code-workspace",
    ".kiro/x",
    "vendor/.git/config",
)
PLANTING = "".join(f"mkdir -p $(dirname {path}); echo planted > {path}; " for path in PLANTED)


def planted(folder: Path, backend: str) -> tuple[list[str], str]:
    """A job that makes all of them for as long as it lives."""
    with Ground(folder) as ground:
        (ground.work / "vendor").mkdir()
        (ground.work / ".gitmodules").write_text('[submodule "x"]\n\tpath = vendor\n')
        walls = put_up(backend, ground.profile)
        with running(walls, ground.work, f"while :; do {PLANTING} done 2> /dev/null") as why:
            wait_for(lambda: bool(why()))
        walls.close()
        return [path for path in PLANTED if (ground.work / path).exists()], why()


@with_mounts
@everyone
def test_job_making_a_protected_name_is_ended(backend: str, user: str) -> None:
    need(backend)
    with land(user) as folder:
        stayed, why = USERS[user](planted, folder, backend)  # type: ignore[misc]  # what planted returns
    assert stayed == []
    assert any(f"{path} appeared, which runs code or steers agents; it was set aside as " in why for path in PLANTED), why


HIDDEN = {
    "behind a new link": "mkdir d; echo planted > d/config.toml; ln -s d .cargo",
    "behind a link in a subfolder": "mkdir d; echo planted > d/x; mkdir new; ln -s ../d new/.github",
    "in a closed folder": "mkdir d; echo planted > d/tasks.json; chmod 0 d; mv d .vscode",
    "below a closed folder": "mkdir -p new/.vscode; echo planted > new/.vscode/x; chmod 0 new",
    "in a top that is closed": "while :; do mkdir .fleet; chmod 555 .; chmod 755 .; done 2> /dev/null",
}


def hidden(folder: Path, backend: str, way: str) -> tuple[list[str], list[str], bool]:
    with Ground(folder) as ground:
        before = sorted(os.listdir(ground.work))
        walls = put_up(backend, ground.profile)
        ground.run(HIDDEN[way], walls)
        restored = walls.take_restored()
        walls.close()
        after = {name for name in os.listdir(ground.work) if name != "d"}
        known = set(before)
        return sorted(known - after), sorted(after - known), restored is not None and bool(restored.paths)


@pytest.mark.sweep(every=5)
@pytest.mark.parametrize("way", HIDDEN)
@both
@everyone
def test_a_hidden_protected_name_is_set_aside(backend: str, user: str, way: str) -> None:
    need(backend)
    with land(user) as folder:
        gone, new, is_told = USERS[user](hidden, folder, backend, way)  # type: ignore[misc]  # what hidden returns
    assert (gone, is_told) == ([], True)
    assert new in ([], ["new"])


def run_in(walls: Sandbox, work: Path, command: str) -> None:
    for _ in range(PATIENT_TRIES):  # a socket that was to be hidden may have been removed in between
        enclosed = walls.wrap(["sh", "-c", command], work)
        subprocess.run(enclosed.argv, pass_fds=enclosed.pass_fds, cwd=work, check=False)
        has_begun = enclosed.has_begun()
        enclosed.cleanup()
        if has_begun:
            break


BARE = {
    "head last": "mkdir objects refs; echo x > config; echo 'ref: refs/heads/m' > HEAD",
    "head first": "echo 'ref: refs/heads/m' > HEAD; mkdir refs; mkdir objects",
    "elsewhere": "git init -q --bare x; echo x > commondir; echo 'ref: refs/heads/m' > HEAD",
}


@pytest.mark.parametrize("way", BARE)
@both
def test_top_becoming_a_bare_repository_loses_its_head(backend: str, way: str) -> None:
    """Git obeys the settings there: `core.fsmonitor` names a program."""
    need(backend)
    with land("root") as folder, Ground(folder) as ground:
        top = ground.folder / "plain"
        top.mkdir()
        walls = put_up(backend, profile_for((top,), (), ground.folder / "state", home=ground.folder / "home"))
        run_in(walls, top, BARE[way])
        restored = walls.take_restored()
        walls.close()
        assert restored is not None
        assert [Path(path).name for path in restored.paths] == ["HEAD"]
        assert not (top / "HEAD").exists()


@both
def test_a_bare_repository_that_was_there_stays_usable(backend: str) -> None:
    need(backend)
    with land("root") as folder, Ground(folder) as ground:
        top = ground.folder / "plain"
        subprocess.run(["git", "init", "-q", "--bare", str(top)], check=True)
        walls = put_up(backend, profile_for((top,), (), ground.folder / "state", home=ground.folder / "home"))
        run_in(walls, top, "git symbolic-ref HEAD refs/heads/other")
        assert walls.take_restored() is None
        walls.close()
        assert (top / "HEAD").read_text() == "ref: refs/heads/other\n"


LIFTS = {
    "replaced": "echo mine > $W/n; mv $W/n $W/AGENTS.md",
    "removed": "rm $W/AGENTS.md",
    # the job goes on planting, so that a folder may stay
    "cleaned": "git init -q $W/../g; git --git-dir=$W/../g/.git --work-tree=$W clean -qfdx -e begun -e .git || :",
    "moved": "mv $W/AGENTS.md $W/old",
    "a nested one": "rm -r $W/sub/.git",
}


def lifted(folder: Path, backend: str, way: str) -> tuple[str, str]:
    with Ground(folder) as ground:
        walls = put_up(backend, ground.profile)
        writing = "while :; do echo planted >> AGENTS.md; mkdir -p sub/.git; echo planted > sub/.git/config; done 2> /dev/null"
        with running(walls, ground.work, writing) as why:
            subprocess.run(["sh", "-c", LIFTS[way]], env={**os.environ, "W": str(ground.work)}, check=True)
            wait_for(lambda: bool(why()))
        walls.close()
        return ground.text("work/AGENTS.md") + ground.text("work/sub/.git/config"), why()


@pytest.mark.sweep(every=3)
@pytest.mark.parametrize("way", LIFTS)
@with_mounts
@everyone
def test_a_job_whose_cover_is_lifted_is_ended(backend: str, user: str, way: str) -> None:
    need(backend)
    with land(user) as folder:
        written, why = USERS[user](lifted, folder, backend, way)  # type: ignore[misc]  # what lifted returns
    assert "planted" not in written
    assert "so the sandbox no longer holds it" in why


def each_name(folder: Path, backend: str) -> list[str]:
    with Ground(folder) as ground:
        walls = put_up(backend, ground.profile)
        names = {*RUNS_CODE, "team.code-workspace", "MISE.toml"}.difference(os.listdir(ground.work))
        while names:
            ground.run(f"for name in {' '.join(names)}; do echo planted > $name; done", walls)
            restored = walls.take_restored()
            told = {os.path.basename(path) for path in restored.paths} if restored else set()
            if not told or not told.isdisjoint(os.listdir(ground.work)):
                break
            names -= told  # it may have been ended before it came to the others
        walls.close()
        return sorted(names)


@both
def test_protected_names_at_the_top_are_set_aside(backend: str) -> None:
    need(backend)
    with land("root") as folder:
        assert each_name(folder, backend) == []


@both
def test_set_aside_file_can_be_accepted(backend: str) -> None:
    need(backend)
    with land("root") as folder, Ground(folder) as ground:
        walls = put_up(backend, ground.profile)
        ground.run("echo mine > lefthook.yml", walls)
        restored = walls.take_restored()
        walls.close()
        assert restored is not None
        assert not (ground.work / "lefthook.yml").exists()
        restored.accept()
        assert ground.text("work/lefthook.yml") == "mine\n"


CHANGES = 0x2 | 0x4 | 0x8 | 0x40 | 0x80 | 0x100 | 0x200
"""Writes, attributes, and names that come or go."""


def events_of(inotify: int) -> bytes:
    ready, _, _ = select.select([inotify], [], [], 0)
    return os.read(inotify, 1 << 16) if ready else b""


def seen_outside(folder: Path, backend: str) -> list[bytes]:
    with Ground(folder) as ground:
        walls = put_up(backend, ground.profile)
        inotify = new_inotify()
        for path in (ground.work, *filter(Path.is_dir, ground.work.rglob("*"))):
            watch_folder(inotify, str(path))
        seen = []
        for command in ("true", "ls -A; cat AGENTS.md; exit 3", "cd sub && ls .git", "sleep 0.1"):
            ground.run(command, walls)
            seen.append(events_of(inotify))
        if backend != "landlock":
            job = walls.wrap(["sleep", "0.1"], ground.work, in_background=True)
            subprocess.run(job.argv, pass_fds=job.pass_fds, check=False)
            job.cleanup()
        walls.close()
        seen.append(events_of(inotify))
        os.close(inotify)
        return seen


@pytest.mark.sweep(every=5)
@both
@everyone
def test_project_watcher_sees_nothing_of_own_files(backend: str, user: str) -> None:
    need(backend)
    with land(user) as folder:
        assert USERS[user](seen_outside, folder, backend) == [b""] * 5


@with_mounts
def test_foreign_creation_ends_the_job(backend: str) -> None:
    need(backend)
    with land("root") as folder, Ground(folder) as ground:
        walls = put_up(backend, ground.profile)
        with running(walls, ground.work, "sleep 60") as why:
            (ground.work / "CLAUDE.md").write_text("of the user")
            wait_for(lambda: bool(why()))
        walls.close()
        place = Path(why().rpartition(" as ")[2])
        assert (place.name, place.read_text()) == ("CLAUDE.md", "of the user")
        assert not (ground.work / "CLAUDE.md").exists()


@with_mounts
@pytest.mark.parametrize("in_background", [True, False])
def test_own_writing_stays_and_ends_the_job(backend: str, in_background: bool) -> None:
    need(backend)
    with land("root") as folder, Ground(folder) as ground:
        walls = put_up(backend, ground.profile)
        with running(walls, ground.work, "sleep 60", in_background=in_background) as why:
            walls.give_way(str(ground.work / "src" / "main.py"))
            assert why() == ""
            walls.give_way(str(ground.work / ".vscode" / "tasks.json"))
            (ground.work / ".vscode").mkdir()
            (ground.work / ".vscode" / "tasks.json").write_text("{}")
            assert "tasks.json was written outside" in why()
        walls.close()
        assert walls.take_restored() is None
        assert ground.text("work/.vscode/tasks.json") == "{}"


async def test_protected_file_write_ends_job_with_sentence() -> None:
    need("bubblewrap")
    with land("root") as folder, Ground(folder) as ground:
        harness = ToolHarness(ground.folder)
        harness.services.sandbox.made = put_up("bubblewrap", ground.profile)
        harness.confined = True
        try:
            await harness.call("shell", command="sleep 60", background=True)
            await harness.call("write", path="CLAUDE.md", content="kept")
            result = await harness.call("jobs", action="output", wait_s=30)
            assert "the sandbox ended it: " in result.text
            assert "CLAUDE.md was written outside" in result.text
            assert ground.text("work/CLAUDE.md") == "kept"
        finally:
            harness.services.shell.close()
            harness.services.sandbox.made.close()


@with_mounts
def test_dead_watch_ends_its_job(backend: str) -> None:
    need(backend)
    with land("root") as folder, Ground(folder) as ground:
        walls = put_up(backend, ground.profile)
        enclosed = walls.wrap(["sleep", "60"], ground.work, in_background=True)
        walls._watcher._process.kill()  # type: ignore[attr-defined]  # as if another program did
        wait_for(lambda: "has ended" in enclosed.why_ended())
        enclosed.cleanup()
        again = walls.wrap(["true"], ground.work)
        assert again.why_ended() == ""  # a new one
        again.cleanup()
        walls.close()


FLOOD = """
import os, time
for number in range(int(open("/proc/sys/fs/inotify/max_queued_events").read()) // 2 + 1):
    open(f"new-{number % 9}", "w").close(), os.unlink(f"new-{number % 9}")
open("full", "w").close()
while not os.path.exists("go"):
    time.sleep(0.01)
open("AGENTS.md", "w").write("planted")
open("written", "w").close()
time.sleep(60)
"""


@with_mounts
def test_cover_lost_with_events_ends_the_job(backend: str) -> None:
    need(backend)
    with land("root") as folder, Ground(folder) as ground:
        walls, work = put_up(backend, ground.profile), ground.work
        (work / "flood.py").write_text(FLOOD)
        with running(walls, work, f"{any_python()} -I -S flood.py") as why:
            watcher = walls._watcher._process  # type: ignore[attr-defined]  # as if it got no time
            watcher.send_signal(signal.SIGSTOP)
            wait_for((work / "full").exists)
            number = (work / "AGENTS.md").stat().st_ino
            (work / "AGENTS.md").unlink()
            for other in (work / f"other-{count}" for count in range(5000)):  # ext4 gives a number again
                other.touch()
                if other.stat().st_ino == number:
                    other.rename(work / "AGENTS.md")
                    break
            (work / "go").touch()
            wait_for((work / "written").exists)
            watcher.send_signal(signal.SIGCONT)
            wait_for(lambda: bool(why()))
        walls.close()
        assert "so the sandbox no longer holds it" in why()
        assert not (work / "AGENTS.md").exists()


def test_a_set_aside_name_leaves_its_file_system() -> None:
    need("bubblewrap")
    with land("root") as folder, Ground(folder) as ground, tempfile.TemporaryDirectory(dir="/dev/shm") as state:
        if ground.work.stat().st_dev == Path(state).stat().st_dev:
            pytest.skip("one file system")
        walls = put_up("bubblewrap", profile_for((ground.work,), (), Path(state), home=ground.folder / "home"))
        before = sorted(os.listdir(ground.work))
        ground.run("mkdir .vscode; echo planted > .vscode/tasks.json; sleep 5", walls)
        assert sorted(os.listdir(ground.work)) == before
        restored = walls.take_restored()
        walls.close()
        assert restored is not None
        restored.accept()
        assert (ground.work / ".vscode").is_dir()


WOLO = """
import subprocess, sys
from pathlib import Path
from tests.guard.sandbox_setup import PATIENT_TRIES, put_up
from wolo.guard.sandbox.profile import profile_for
work, state = Path(sys.argv[1]), Path(sys.argv[2])
walls = put_up(sys.argv[3], profile_for((work,), (state,), state))
for _ in range(PATIENT_TRIES):
    job = walls.wrap(["sh", "-c", "touch begun; while ! [ -e go ]; do sleep 0.01; done; echo x > .bashrc; sleep 60"],
        work, in_background=True)
    subprocess.run(job.argv, pass_fds=job.pass_fds)
    if (work / "begun").exists():
        break
    job.cleanup()
"""


@with_mounts
@pytest.mark.parametrize("number", [signal.SIGSTOP, signal.SIGKILL], ids=["stopped", "killed"])
def test_the_watch_goes_on_without_wolo(backend: str, number: int, tmp_path: Path) -> None:
    need(backend)
    with land("root") as folder:
        work = folder / "work"
        work.mkdir()
        env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
        with subprocess.Popen([sys.executable, "-c", WOLO, str(work), str(tmp_path), backend], env=env) as wolo:
            wait_for((work / "begun").exists)
            wolo.send_signal(number)
            (work / "go").touch()
            if number == signal.SIGSTOP:
                wait_for(lambda: bool(list((tmp_path / "put-aside").glob("*"))))
            wolo.kill()
        wait_for(lambda: not (work / ".bashrc").exists())
        shutil.rmtree(work, ignore_errors=True)  # the watch may still be removing what it set aside
