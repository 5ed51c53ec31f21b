"""Inputs of the sandbox: protected names, secrets, backends and profiles."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import unprivileged
from tests.guard.sandbox_setup import Ground, land, put_up
from tests.guard.test_sandbox_contract import BACKENDS, need
from wolo.errors import ToolError
from wolo.guard.sandbox import bubblewrap, protected_names, selection
from wolo.guard.sandbox.backend import ScratchFolder, remove_abandoned, remove_placeholders
from wolo.guard.sandbox.bubblewrap import find_binary
from wolo.guard.sandbox.mounts import host_sockets
from wolo.guard.sandbox.profile import profile_for
from wolo.guard.sandbox.protected_names import Nested, names_in
from wolo.guard.sandbox.seatbelt import profile_text
from wolo.guard.sandbox_contract import MOST_TRIES


def made(root: Path, *paths: str) -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("")


def names(root: Path) -> tuple[set[str], set[str]]:
    found = names_in(str(root), "/nowhere")
    return {os.path.relpath(path, root) for path in found.present}, {os.path.relpath(path, root) for path in found.missing}


def test_names_are_found_at_the_top_and_below(tmp_path: Path) -> None:
    made(tmp_path, ".git/config", "AGENTS.md", "a/b/.git/config", "a/AGENTS.md", "lib/.vscode/tasks.json", "x.code-workspace")
    made(tmp_path, "node_modules/pkg/.git/config", "node_modules/pkg/.vscode/x", "plain.txt")
    present, missing = names(tmp_path)
    assert present == {
        *(".git", "AGENTS.md", "a/b/.git", "a/AGENTS.md", "lib/.vscode", "x.code-workspace"),
        "node_modules/pkg/.git",  # of packages, repositories only
    }
    assert missing == set()


def test_look_at_a_large_tree_is_complete(tmp_path: Path) -> None:
    for number in range(5000):
        (tmp_path / f"{number % 70:02}" / f"{number:04}").mkdir(parents=True)
    deep = Path(*(f"{number}" for number in range(40)))
    made(tmp_path, f"{deep}/.git/config", "69/4969/.vscode/tasks.json", "00/0000/.github/hooks/x")
    found = {f"{deep}/.git", "69/4969/.vscode", "00/0000/.github/hooks"}
    looks = Nested(str(tmp_path))
    for _ in range(2):
        assert {os.path.relpath(path, tmp_path) for path in looks.look().paths} == found
    (tmp_path / "35/4935/.git").mkdir()
    (tmp_path / "69/4969/.vscode").rename(tmp_path / "69/gone")
    now = found - {"69/4969/.vscode"} | {"35/4935/.git"}
    assert {os.path.relpath(path, tmp_path) for path in looks.look().paths} == now


def test_incomplete_look_lets_nothing_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(20):
        (tmp_path / "work" / str(number)).mkdir(parents=True)
    monkeypatch.setattr(protected_names, "MOST_FOLDERS", 10)
    profile = profile_for((tmp_path / "work",), (), tmp_path / "state", home=tmp_path / "home")
    for backend in BACKENDS:
        need(backend)
        walls = put_up(backend, profile)
        with pytest.raises(ToolError, match=r"sandbox denied: .* too many directories"):
            walls.wrap(["true"], tmp_path / "work")
        walls.wrap(["true"], tmp_path / "work", only_reads=True).cleanup()
        walls.close()


def test_unreadable_folder_is_protected_whole(tmp_path: Path) -> None:
    with land() as folder:
        assert unprivileged.call(unreadable, folder) == (str(folder / "closed"),)


def unreadable(folder: Path) -> tuple[str, ...]:
    made(folder, "closed/.git/config")
    (folder / "closed").chmod(0)
    try:
        return Nested(str(folder)).look().paths
    finally:
        (folder / "closed").chmod(0o700)


def test_absent_submodule_git_cannot_be_created(tmp_path: Path) -> None:
    made(tmp_path, ".git/config", "vendor/lib/.keep", "there/.git")
    (tmp_path / ".gitmodules").write_text(
        '[submodule "a"]\n\tpath = vendor/lib\n[submodule "b"]\n\tpath = there\n[submodule "c"]\n\tpath = ../out\n'
    )
    present, missing = names(tmp_path)
    assert present == {".git", "there/.git"}
    assert missing == {"vendor/lib/.git"}


def test_targets_of_git_files_are_protected(tmp_path: Path) -> None:
    made(tmp_path, "store/worktrees/tree/HEAD", "store/config", "tree/x")
    (tmp_path / "tree" / ".git").write_text("gitdir: ../store/worktrees/tree\n")
    (tmp_path / "store/worktrees/tree/commondir").write_text("../..\n")
    assert names(tmp_path)[0] == {"tree/.git", "store/worktrees/tree", "store"}


def test_configured_git_hooks_and_settings_are_protected(tmp_path: Path) -> None:
    made(tmp_path, "tools/hooks/pre-commit", "team.inc", "plain")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git/config").write_text(
        "[core]\n\thooksPath = tools/hooks\n[include]\n\tpath = ../team.inc\n[core]\n\thooksPath = .\n"
    )
    assert names(tmp_path)[0] == {".git", "tools/hooks", "team.inc"}


def test_configured_missing_hooks_cannot_be_created(tmp_path: Path) -> None:
    made(tmp_path, "tools/x")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git/config").write_text(
        "[core]\n\thooksPath = tools/hooks/git ; ours\n[include]\n\tpath = ../team.inc\n\tpath = hooks/x\n\tpath = %(prefix)/y\n"
        "\tpath = ~/z\n"
    )
    present, missing = names(tmp_path)
    assert present == {".git"}
    assert missing == {"tools/hooks", "team.inc", "home/z"}


def test_folders_around_a_repository_keep_their_place(tmp_path: Path) -> None:
    made(tmp_path, "libs/one/.git/config", "libs/two/AGENTS.md", ".git/config")
    kept = names_in(str(tmp_path), "/nowhere").kept_in_place
    assert sorted(kept) == [f"{tmp_path}/libs", f"{tmp_path}/libs/one"]


@pytest.mark.parametrize("written", [b"", b"gitdir: ", b"gitdir: gone", b"x" * 100_000, b"gitdir: \x00/x", b"\xff"], ids=range(6))
def test_dangling_git_file_is_a_file(tmp_path: Path, written: bytes) -> None:
    (tmp_path / ".git").write_bytes(written)
    assert names(tmp_path)[0] == {".git"}


@pytest.mark.parametrize("name", [".git", ".wolo", "AGENTS.md", ".GIT", ".vscode"])
def test_linked_protected_name_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).symlink_to("elsewhere")
    with pytest.raises(ToolError, match=r"sandbox denied: .* is a link"):
        names(tmp_path)


def test_linked_instructions_let_commands_run(tmp_path: Path) -> None:
    made(tmp_path, "AGENTS.md", "plain.md")
    (tmp_path / "CLAUDE.md").symlink_to("AGENTS.md")
    present, missing = names(tmp_path)
    assert (present, missing) == ({"AGENTS.md"}, set())
    (tmp_path / "GEMINI.md").symlink_to("plain.md")
    with pytest.raises(ToolError, match=r"GEMINI.md is a link"):
        names(tmp_path)


def test_placeholders_of_an_older_version_go_once(tmp_path: Path) -> None:
    records, work = tmp_path / "state" / "placeholders", tmp_path / "work"
    made(records, "spare/0/x")
    for name in (".wolo", ".vscode"):
        (work / name).mkdir(parents=True)
    (work / ".vscode" / "tasks.json").write_text("mine")
    (records / "0123").write_bytes(b"".join(os.fsencode(work / name) + b"\0" for name in (".wolo", ".vscode", "gone")))
    remove_placeholders(records)
    assert [path.name for path in work.iterdir()] == [".vscode"]
    assert not records.exists()


def test_private_folder_belongs_to_owner_and_goes(tmp_path: Path) -> None:
    scratch = ScratchFolder(tmp_path)
    assert not (tmp_path / "sandbox").exists()
    tmp = scratch.tmp
    assert tmp.stat().st_mode & 0o777 == 0o700
    (tmp / "closed").mkdir()
    (tmp / "closed" / "file").touch()
    (tmp / "closed").chmod(0)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o755)
    (tmp / "out").symlink_to(elsewhere)
    scratch.close()
    scratch.close()
    assert list((tmp_path / "sandbox").iterdir()) == []
    assert elsewhere.stat().st_mode & 0o777 == 0o755


def test_abandoned_private_folder_goes_with_the_next(tmp_path: Path) -> None:
    made(tmp_path / "sandbox" / "0123", "tmp/x", "in-use")
    living, other = ScratchFolder(tmp_path), ScratchFolder(tmp_path)
    folders = [living.folder, other.folder]
    assert sorted((tmp_path / "sandbox").iterdir()) == sorted(folders)
    living.close()
    other.close()


def test_killed_probe_leaves_its_folder_to_the_next(tmp_path: Path) -> None:
    code = (
        "import sys, time\nfrom pathlib import Path\nfrom wolo.guard.sandbox.escape_probe import _test_folders\n"
        "with _test_folders(Path(sys.argv[1])):\n    print('made', flush=True)\n    time.sleep(600)\n"
    )
    above = tmp_path / "sandbox"
    with subprocess.Popen([sys.executable, "-c", code, above], stdout=subprocess.PIPE) as probe:
        assert probe.stdout is not None
        assert probe.stdout.readline() == b"made\n"
        remove_abandoned(above)
        assert len(list(above.iterdir())) == 1
        probe.kill()
    remove_abandoned(above)
    assert list(above.iterdir()) == []


def test_secrets_of_the_home_directory_are_hidden(tmp_path: Path) -> None:
    made(
        tmp_path, ".ssh/id_rsa", ".netrc", ".config/gcloud/x", ".mozilla/x", ".bash_history", "notes.txt", ".config/gh/hosts.yml"
    )
    hidden = {os.path.relpath(path, tmp_path) for path in profile_for((tmp_path / "w",), (), tmp_path, home=tmp_path).hidden}
    assert {".ssh", ".netrc", ".config/gcloud", ".mozilla", ".bash_history", ".config/gh"} <= hidden
    assert "notes.txt" not in hidden


@pytest.mark.skipif(sys.platform != "linux", reason="these walls are Linux's")
def test_pass_is_remembered_until_the_program_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need("bubblewrap")
    kept = tmp_path / "cache" / "sandbox-probes"
    selection.find((Path.cwd(),), tmp_path / "state", kept.parent)
    before = kept.read_text()
    selection.find((Path.cwd(),), tmp_path / "state", kept.parent)
    assert kept.read_text() == before
    monkeypatch.setattr(selection, "_identity", lambda binary: "another")
    selection.find((Path.cwd(),), tmp_path / "state", kept.parent)
    assert len(kept.read_text().split()) == 2
    assert kept.stat().st_mode & 0o777 == 0o600


@pytest.mark.skipif(sys.platform != "linux", reason="these walls are Linux's")
def test_failure_of_the_compiled_launcher_is_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    starts, launcher = tmp_path / "starts", tmp_path / "launcher"
    launcher.write_text(f"#!/bin/sh\necho started >> {starts}\nexit 1\n")
    launcher.chmod(0o755)
    monkeypatch.setattr(bubblewrap, "COMPILED_LAUNCHER", str(launcher))
    first, again = (selection.find((Path.cwd(),), tmp_path / "state", tmp_path / "cache") for _ in range(2))
    assert first.tried == again.tried == ("namespaces: no command could run in it",)
    assert again.backend == first.backend
    assert starts.read_text().count("started") == MOST_TRIES


def test_a_bwrap_that_others_may_change_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    binary = tmp_path / "bwrap"
    binary.write_text("#!/bin/sh\n")
    binary.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_binary(()) == str(binary)
    assert find_binary((str(tmp_path),)) == ""
    binary.chmod(0o757)
    assert find_binary(()) == ""
    monkeypatch.setenv("PATH", ".")
    assert find_binary(()) == ""


def test_whole_file_tree_is_no_workspace(tmp_path: Path) -> None:
    assert selection.find((Path("/"),), tmp_path, None).make is None


@pytest.mark.skipif(sys.platform != "linux", reason="the table is Linux's")
def test_host_sockets_are_known_by_place() -> None:
    with land("root") as folder, Ground(folder):
        assert f"{folder}/outside/s" in host_sockets(by_modes=os.getuid() == 0)


def test_macos_profile_names_and_quotes_its_targets(tmp_path: Path) -> None:
    """Text only: whether it holds is for the probe on a Mac to say."""
    root = tmp_path / 'a "quoted" place'
    made(root, ".git/config")
    profile = profile_for((root,), (tmp_path / "own",), tmp_path / "own", shown=(tmp_path / "own/outputs",), home=tmp_path)
    lines = profile_text(profile, [f"{root}/.git"], str(tmp_path / "own/tmp")).splitlines()
    quoted = str(root).replace('"', '\\"')
    assert lines[0] == "(version 1)"
    assert "(deny network*)" in lines
    held_from = lines.index("(deny file-write*)") + 1
    assert f'(allow file-write* (subpath "{quoted}")' in "\n".join(lines[held_from:])
    held = next(line for line in lines[held_from:] if line.startswith("(deny file-write*"))
    for name in (".git", ".wolo", "AGENTS.md"):
        assert f'(subpath "{quoted}/{name}")' in held
    hidden = next(line for line in lines if line.startswith("(deny file-read*"))
    assert f'(subpath "{tmp_path}/own")' in hidden
