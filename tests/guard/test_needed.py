"""Folders that are closed as a whole: what commands see of the home directory and of other projects."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests import unprivileged
from tests.guard.sandbox_setup import Ground, land, put_up
from tests.guard.test_sandbox_contract import BACKENDS, USERS, need
from wolo.guard.judge import Judge
from wolo.guard.modes import find_mode
from wolo.guard.rules import parse_rule
from wolo.guard.sandbox.profile import closed_folders, paths_commands_need, profile_for
from wolo.workspace.git_objects import lend_objects

SECRET = "sesame"


def plant(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(SECRET)


HIDDEN = (
    "home/documents/letter",
    "home/projects/one/backend/deep/deeper/deepest/.env",
    "home/.config/unknown/token",
    "home/.local/share/chat/messages",
    "home/.secrets.txt",
    "home/.cargo/credentials.toml",
    "home/.m2/settings.xml",
    "home/.ssh/id_rsa",
    "neighbour/a/b/c/d/e/.env",
    "neighbour/notes",
)
SEEN = ("home/.cargo/bin/tool", "home/.gitconfig", "home/.pyenv/versions/3/bin/x", "work/.env", "work/src/a")


def found(folder: Path, backend: str) -> set[str]:
    with Ground(folder) as ground:
        plant(folder, *HIDDEN, *SEEN)
        for number in range(1500):
            (folder / "neighbour" / f"{number}").mkdir()
        walls = put_up(backend, ground.profile)
        try:
            lines = [f"cat {folder}/{name} > /dev/null 2>&1 && echo {name}" for name in (*HIDDEN, *SEEN)]
            return set(ground.run("\n".join(lines), walls).stdout.split())
        finally:
            walls.close()


@pytest.mark.sweep(every=3)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("user", USERS)
def test_only_tools_are_visible_at_any_number(backend: str, user: str) -> None:
    need(backend)
    with land(user) as folder:
        assert USERS[user](found, folder, backend) == set(SEEN)


def through_rule(folder: Path, backend: str) -> str:
    with Ground(folder) as ground:
        plant(folder, "home/data/set/x", "home/data2/y")
        profile = profile_for((ground.work,), (), folder / "own/state", home=folder / "home")
        judge = Judge(find_mode("auto"), [parse_rule(f"read:{folder}/home/data/**", "allow")], ground.work)
        assert judge.readable_places() == (f"{folder}/home/data",)
        walls = put_up(backend, replace(profile, needed=(*profile.needed, *judge.readable_places())))
        try:
            return ground.run(f"cat {folder}/home/data/set/x; cat {folder}/home/data2/y", walls).stdout
        finally:
            walls.close()


def linked(folder: Path, backend: str) -> str:
    with Ground(folder) as ground:
        plant(folder, "home/dotfiles/gitconfig", "home/dotfiles/private", "home/tools/cargo/bin/x")
        (folder / "home/.gitconfig").symlink_to("dotfiles/gitconfig")
        (folder / "home/.cargo").symlink_to(folder / "home/tools/cargo")
        (folder / "home/.npm").symlink_to("nowhere")
        (folder / "home/go").symlink_to(".")
        walls = put_up(backend, ground.profile)
        try:
            names = ("home/.gitconfig", "home/.cargo/bin/x", "home/dotfiles/private", "home/go/dotfiles/private")
            return ground.run("\n".join(f"cat {folder}/{name}; echo" for name in names), walls).stdout
        finally:
            walls.close()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("user", USERS)
def test_settings_of_tools_may_be_links(backend: str, user: str) -> None:
    need(backend)
    with land(user) as folder:
        assert USERS[user](linked, folder, backend).split() == [SECRET, SECRET]  # type: ignore[attr-defined]


@pytest.mark.parametrize("backend", BACKENDS)
def test_rule_allowing_a_read_shows_the_place(backend: str) -> None:
    need(backend)
    with land() as folder:
        assert unprivileged.call(through_rule, folder, backend) == SECRET


def test_worktree_sees_its_repository_and_forgeries_nothing(tmp_path: Path) -> None:
    work, private = tmp_path / "mine", tmp_path / "home/private/.git"
    plant(private, "HEAD", "config", "worktrees/x/HEAD")
    (private / "worktrees/x/commondir").write_text("../..\n")
    work.mkdir(exist_ok=True)
    (work / ".git").write_text(f"gitdir: {private}/worktrees/x\n")
    assert str(private) not in paths_commands_need([str(work)], str(tmp_path / "home"))
    (private / "worktrees/x/gitdir").write_text(f"{work}/.git\n")
    assert str(private) in paths_commands_need([str(work)], str(tmp_path / "home"))


def test_forged_worktree_names_no_other_repository(tmp_path: Path) -> None:
    work, private = tmp_path / "mine", tmp_path / "home/private/.git"
    plant(private, "HEAD", "config")
    plant(work / "x", "HEAD")
    (work / ".git").write_text("gitdir: ./x\n")
    (work / "x/gitdir").write_text(f"{work}/.git\n")
    (work / "x/commondir").write_text(f"{private}\n")
    assert str(private) not in paths_commands_need([str(work)], str(tmp_path / "home"))


def test_borrowed_objects_are_seen_once_somebody_else_agrees(tmp_path: Path) -> None:
    work, home = tmp_path / "mine", tmp_path / "home"
    objects, further = home / "private/.git/objects", home / "further/.git/objects"
    plant(objects, "info/x")
    plant(further, "x")
    plant(work, ".git/objects/info/x")
    (work / ".git/objects/info/alternates").write_text(f"{objects}\n")
    (objects / "info/alternates").write_text(f"{further}\n")
    assert not {str(objects), str(further)} & set(paths_commands_need([str(work)], str(home)))
    assert str(objects) in paths_commands_need([str(work)], str(home), is_trusted=True)
    lend_objects(objects.parent, work)
    assert str(objects) in (seen := paths_commands_need([str(work)], str(home)))
    assert str(further) not in seen


def test_environment_sees_its_own_python_only(tmp_path: Path) -> None:
    home, work = tmp_path / "home", tmp_path / "work"
    plant(home, "pythons/3.13/bin/python3", "private/bin/x")
    (home / "pythons/3.13/bin/python3").chmod(0o755)
    for place, is_seen in (("pythons/3.13", True), ("private", False), ("", False)):
        (work / ".venv").mkdir(parents=True, exist_ok=True)
        (work / ".venv/pyvenv.cfg").write_text(f"home = {home / place}/bin\n")
        assert (str(home / place) in paths_commands_need([str(work)], str(home))) is is_seen


@pytest.mark.parametrize(
    ("root", "closed"),
    [
        ("/srv/code/app", ["/srv/code"]),
        ("/app", []),
        ("/etc/nixos", []),
        ("/opt/app", ["/opt"]),
    ],
)
def test_surrounding_folder_is_closed_unless_system_lies_there(root: str, closed: list[str], tmp_path: Path) -> None:
    Path("/srv/code").mkdir(exist_ok=True)
    try:
        known = [folder for folder in closed_folders([root], str(tmp_path)) if folder not in (str(tmp_path), "/home")]
        assert known == closed
    finally:
        subprocess.run(["rmdir", "/srv/code"], check=False)


def test_workspace_being_the_home_stays_open(tmp_path: Path) -> None:
    assert str(tmp_path) not in closed_folders([str(tmp_path)], str(tmp_path))


def test_whoever_lets_everything_be_read_has_nothing_closed(tmp_path: Path) -> None:
    judge = Judge(find_mode("auto"), [parse_rule("read:/**", "allow")], tmp_path)
    assert judge.readable_places() == ("/",)
