"""Protected files that no mount holds: whatever a command does to them, they are afterwards what they were."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests import unprivileged
from tests.guard.sandbox_setup import Ground, any_python, land, put_up
from tests.guard.test_sandbox_contract import BACKENDS, need
from tests.tools.harness import ToolHarness
from tests.workspace.test_directory_copy import deep_folder
from wolo.errors import ToolError
from wolo.guard.sandbox import saved_files
from wolo.guard.sandbox.file_restore import FileSaver, ProtectedChange, RestoredFiles, Snapshot
from wolo.guard.sandbox.profile import profile_for


def tree(root: Path) -> dict[str, tuple[int, str]]:
    """Every file with its mode and content, every link with its goal."""
    found = {}
    for path in sorted(root.rglob("*")):
        content = str(path.readlink()) if path.is_symlink() else path.read_text() if path.is_file() else ""
        found[str(path.relative_to(root))] = (0 if path.is_symlink() else path.stat().st_mode, content)
    return found


def scene(root: Path) -> None:
    for name, content in {
        ".git/HEAD": "ref",
        ".git/config": "[core]",
        ".git/hooks/pre-commit": "#!",
        ".git/objects/aa/bb": "data",
        ".git/modules/sub/config": "[core]",
        ".vscode/tasks.json": "{}",
        "AGENTS.md": "text",
        "tools/hook.sh": "#!/bin/sh",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)
    (root / ".git/hooks/pre-commit").chmod(0o755)
    (root / ".cursor").symlink_to(".vscode")


PRESENT = (".git", ".vscode", ".cursor", "AGENTS.md", "tools/hook.sh")
MISSING = (".mcp.json", ".wolo", "CLAUDE.md")
WAYS = {
    "written in place": "echo bad > .git/config",
    "replaced": "echo bad > x; mv x .git/config",
    "a hook": "echo bad >> .git/hooks/pre-commit",
    "a new hook": "echo bad > .git/hooks/post-checkout; chmod +x .git/hooks/post-checkout",
    "of a module": "echo bad > .git/modules/sub/config",
    "attributes": "mkdir -p .git/info; echo bad > .git/info/attributes",
    "removed": "rm AGENTS.md",
    "a folder removed": "rm -r .vscode",
    "hooks removed": "rm -r .git/hooks",
    "a link in the place of a file": "rm AGENTS.md; ln -s /etc/passwd AGENTS.md",
    "a link in the place of a folder": "rm -r .vscode; mkdir other; echo bad > other/tasks.json; ln -s other .vscode",
    "a link led elsewhere": "ln -sfn /etc .cursor",
    "a folder in the place of a file": "rm AGENTS.md; mkdir AGENTS.md; echo bad > AGENTS.md/x",
    "a file in the place of a folder": "rm -r .vscode; echo bad > .vscode",
    "moved away": "mv .git gone",
    "moved away, another in its place": "mv .git gone; mkdir -p .git/hooks; echo bad > .git/config; echo bad > .git/HEAD",
    "moved to another folder": "mkdir x; mv .git x/.git",
    "changed, and moved": "echo bad > .vscode/tasks.json; echo bad > .git/hooks/pre-commit; mv .vscode v; mv .git gone",
    "changed, and swapped": "echo bad > .vscode/tasks.json; mv .vscode v; mkdir .vscode; echo bad > .vscode/tasks.json",
    "changed through a second name": "ln .git/config x; echo bad > x",
    "made to look like a repository": "cd .vscode; mkdir objects; touch HEAD; echo bad > bad.lock",
    "a FIFO in the place of a file": "rm AGENTS.md; mkfifo AGENTS.md",
    "closed folders in the place of a file": "rm AGENTS.md; mkdir -p AGENTS.md/x/y; chmod 0 AGENTS.md/x/y AGENTS.md/x AGENTS.md",
    "the closed folder of a program": "echo bad > tools/hook.sh; chmod 0 tools",
    "too much": "truncate -s 65M .vscode/large; truncate -s 65M .git/hooks/large; echo bad > .git/hooks/pre-commit",
    "a mode": "chmod 777 .git/hooks/pre-commit; chmod 0 .git/hooks .git/config",
    "closed": "chmod 0 .vscode",
    "the program of a hook": "echo bad > tools/hook.sh",
    "the folder of that program": "mv tools gone; mkdir tools; echo bad > tools/hook.sh; rm -r gone",
    "a missing name": "echo bad > .mcp.json; mkdir .wolo; echo bad > .wolo/config.toml; ln -s /etc/passwd CLAUDE.md",
    "the same size and time": "cp -p .git/config x; echo '[cor3]' > .git/config; touch -r x .git/config; rm x",
}


def save(work: Path, state: Path) -> Snapshot:
    present, missing = ([f"{work}/{name}" for name in names] for names in (PRESENT, MISSING))
    return FileSaver(state).save(present, missing, roots=[str(work)])


def restore(snapshot: Snapshot) -> RestoredFiles | None:
    snapshot.open_folders()
    snapshot.move_back(())
    return snapshot.restore()


def restored(folder: Path, command: str) -> tuple[bool, bool, str]:
    work = folder / "work"
    scene(work)
    before = tree(work)
    snapshot = save(work, folder / "state")
    subprocess.run(["sh", "-c", command], cwd=work, check=True)
    found = restore(snapshot)
    after = tree(work)
    for name in ("other", "other/tasks.json", "x"):  # no protected names
        after.pop(name, None)
    return found is not None, after == before, "" if after == before else str({*after.items()} ^ {*before.items()})


@pytest.mark.sweep(every=3)
@pytest.mark.parametrize("way", WAYS)
def test_command_changes_to_protected_files_are_restored(way: str) -> None:
    with land() as folder:
        found, is_as_before, why = unprivileged.call(restored, folder, WAYS[way])
    assert is_as_before, why
    assert found is (way not in ("a mode", "closed"))  # a mode is restored without a word


@pytest.mark.parametrize(
    "command",
    [
        "echo x > .git/objects/aa/cc; echo ref2 > .git/HEAD; echo x > .git/index; mkdir -p .git/refs; echo x > .git/refs/main",
        "echo x > new; mkdir -p src; echo y > src/a",
        "touch .git/config AGENTS.md; cat .git/config; cp AGENTS.md x; cat x > AGENTS.md",
        "mkdir .wolo",
        "rm .git/HEAD; mkdir .git/objects/cc",
    ],
)
def test_harmless_file_stays_as_the_command_left(command: str, tmp_path: Path) -> None:
    work = tmp_path / "work"
    scene(work)
    snapshot = save(work, tmp_path / "state")
    subprocess.run(["sh", "-c", command], cwd=work, check=True)
    changed = tree(work)
    assert restore(snapshot) is None
    assert tree(work) == changed


@pytest.mark.parametrize("way", ["replaced", "a new hook", "removed", "a missing name", "a file in the place of a folder"])
def test_user_wanting_the_command_version_gets_it(way: str, tmp_path: Path) -> None:
    work = tmp_path / "work"
    scene(work)
    snapshot = save(work, tmp_path / "state")
    subprocess.run(["sh", "-c", WAYS[way]], cwd=work, check=True)
    changed = tree(work)
    found = restore(snapshot)
    assert found is not None
    assert tree(work) != changed
    found.accept()
    assert tree(work) == changed


def test_unsavable_size_lets_nothing_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scene(tmp_path)
    monkeypatch.setattr(saved_files, "_MOST_BYTES", 10)
    with pytest.raises(ToolError, match="too large"):
        FileSaver(tmp_path / "state").save([f"{tmp_path}/.git"])


def test_folder_turned_link_is_not_written_through(tmp_path: Path) -> None:
    work, elsewhere = tmp_path / "work", tmp_path / "elsewhere"
    (work / "sub/.git").mkdir(parents=True)
    (work / "sub/.git/config").write_text("kept")
    elsewhere.mkdir()
    snapshot = FileSaver(tmp_path / "state").save([f"{work}/sub/.git"], roots=[str(work)])
    shutil.rmtree(work / "sub")
    (work / "sub").symlink_to(elsewhere)
    restore(snapshot)
    assert list(elsewhere.iterdir()) == []


def test_loss_of_a_killed_repository_is_reported(tmp_path: Path) -> None:
    repository = tmp_path / "work"
    scene(repository)
    snapshot = FileSaver(tmp_path / "state").save([f"{repository}/.git"])
    shutil.rmtree(repository / ".git")
    found = restore(snapshot)
    assert found is not None
    assert (found.lost, found.paths) == ((f"{repository}/.git",), ())


def test_moved_folder_version_moves_it_again(tmp_path: Path) -> None:
    work = tmp_path / "work"
    scene(work)
    snapshot = save(work, tmp_path / "state")
    subprocess.run(
        ["sh", "-c", "echo bad > .vscode/tasks.json; mv .vscode v; mkdir .vscode; touch .vscode/x"], cwd=work, check=True
    )
    changed = tree(work)
    found = restore(snapshot)
    assert found is not None
    assert not (work / "v").exists()
    found.accept()
    assert tree(work) == changed


def test_deep_folder_gives_way_to_the_command_version(tmp_path: Path) -> None:
    place, aside = tmp_path / "hooks", tmp_path / "aside"
    deep_folder(place)
    aside.write_text("of the command")
    RestoredFiles([ProtectedChange(str(place), str(aside))], ()).accept()
    assert place.read_text() == "of the command"


LATER = {
    "left running": "(sleep 0.3; echo planted > .git/config) &",
    "in a session of its own": "setsid sh -c 'sleep 0.3; echo planted > .git/config' > /dev/null 2>&1 &",
    "detached twice, without its environment": (
        "env -i setsid sh -c 'ulimit -x unlimited; (setsid sh -c \"sleep 0.3; echo planted > .git/config\" &) &' > /dev/null 2>&1"
    ),
}


@pytest.mark.parametrize("way", LATER)
async def test_background_leftovers_change_nothing_later(way: str) -> None:
    need("landlock")
    with land("root") as folder, Ground(folder) as ground:
        harness = ToolHarness(ground.folder)
        harness.services.sandbox.made = put_up("landlock", ground.profile)
        harness.confined = True
        try:
            result = await harness.call("shell", command=f"{LATER[way]}\ntrue")
            assert not result.is_error, result.text
            assert harness.services.shell.processes.is_anything_alive() is False
            subprocess.run(["sleep", "0.4"], check=True)  # when it would have come
            assert ground.text("work/.git/config") != "planted\n"
        finally:
            harness.services.sandbox.made.close()
            harness.services.shell.close()


async def test_sandbox_without_mounts_starts_no_job() -> None:
    need("landlock")
    with land("root") as folder, Ground(folder) as ground:
        harness = ToolHarness(ground.folder)
        harness.services.sandbox.made = put_up("landlock", ground.profile)
        harness.confined = True
        try:
            with pytest.raises(ToolError, match="a job may run on"):
                await harness.call("shell", command="sleep 5", background=True)
        finally:
            harness.services.sandbox.made.close()
            harness.services.shell.close()


def test_own_workspace_files_need_mounts_to_run(tmp_path: Path) -> None:
    need("landlock")
    walls = put_up("landlock", profile_for((tmp_path,), (tmp_path / "own",), tmp_path / "own", home=tmp_path / "home"))
    with pytest.raises(ToolError, match="belongs to wolo"):
        walls.wrap([any_python()], tmp_path)
    walls.close()


def test_a_link_further_down_keeps_its_goal() -> None:
    for backend in BACKENDS:
        need(backend)
        with land("root") as folder, Ground(folder) as ground:
            (ground.work / "lib").mkdir()
            (ground.work / "lib" / ".vscode").symlink_to("../place")
            walls = put_up(backend, ground.profile)
            ground.run("rm lib/.vscode; ln -s ../other lib/.vscode", walls)
            given = walls.take_restored()
            walls.close()
            assert (str((ground.work / "lib/.vscode").readlink()), given is not None) == ("../place", True), backend
