"""Worktrees of sessions, as a user meets them: on the command line, in the session, and at its end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.end_to_end.test_repl import repl
from tests.fakes.command import run_wolo
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import Reply, call, text
from tests.fakes.repositories import commit, git, repository
from tests.fakes.screen import pty_wolo
from wolo.config.consents import save_trust
from wolo.places import find_places


@pytest.fixture
def origin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = repository(tmp_path / "calc", {"a.txt": "one\n"})
    monkeypatch.chdir(folder)
    return folder


def write(path: str) -> Reply:
    return call("write", {"path": path, "content": "made\n"})


def test_worktree_takes_the_work_and_gives_it_back(provider: ProviderServer, origin: Path) -> None:
    git(origin, "tag", "start")
    commit(origin, {"later.txt": "2\n"})
    shell = call("shell", {"command": "git rev-parse --abbrev-ref HEAD; ls"})
    provider.script(write("new.txt"), shell, text("Done."))
    done = run_wolo("-p", "--worktree", "calc-1", "--from", "start", "--mode", "auto", *provider.flags, "go", cwd=origin)
    assert done.exit_code == 0, done.stderr
    assert "1 file changed, saved on wolo/calc-1" in done.stderr
    printed = str(provider.requests[-1].messages[-1]["content"])
    assert "wolo/calc-1" in printed
    assert "later.txt" not in printed
    assert not (origin / "new.txt").exists()
    [row] = json.loads(run_wolo("worktree", "list", "--json", cwd=origin).stdout)
    assert (row["name"], row["branch"], row["state"], row["files_changed"]) == ("calc-1", "wolo/calc-1", "unmerged", 1)
    assert "+made" in run_wolo("worktree", "patch", "calc-1", cwd=origin).stdout
    refused = run_wolo("worktree", "remove", "calc-1", cwd=origin)
    assert (refused.exit_code, "not merged" in refused.stderr) == (1, True)
    assert run_wolo("worktree", "merge", "calc-1", cwd=origin).exit_code == 0
    assert (origin / "new.txt").read_text() == "made\n"
    assert run_wolo("worktree", "remove", "calc-1", cwd=origin).exit_code == 0
    assert not Path(row["folder"]).exists()


@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        (("--worktree", "x", "--from", "nowhere"), "no branch, tag or commit nowhere"),
        (("--worktree", "../x"), "cannot be named"),
        (("--from", "main"), "--from needs --worktree"),
    ],
)
def test_bad_worktree_exits_2(provider: ProviderServer, origin: Path, args: tuple[str, ...], complaint: str) -> None:
    done = run_wolo("-p", *provider.flags, *args, "--", "go", cwd=origin)
    assert (done.exit_code, provider.requests) == (2, [])
    assert complaint in done.stderr


def test_session_moves_with_its_changes(provider: ProviderServer, origin: Path) -> None:
    (origin / "a.txt").write_text("not committed\n")
    provider.script(text("One."), write("new.txt"), text("Two."))
    with repl(provider, "--mode", "edit") as terminal:
        terminal.enter("hello")
        terminal.wait_for("One.")
        terminal.enter("/move away")
        terminal.wait_for("uncommitted changes came along")
        provider.forget_prefix()  # it names the directory
        terminal.enter("go")
        terminal.wait_for("Two.")
        terminal.enter("/worktree")
        terminal.wait_for("on wolo/away: 2 files changed, not merged")
        terminal.press("ctrl-d")
        terminal.wait_for("[k/m/p/r]")
        terminal.enter("k")
        assert terminal.wait_for_exit() == 0
    assert (origin / "a.txt").read_text() == "not committed\n"
    assert not (origin / "new.txt").exists()
    assert run_wolo("worktree", "merge", "away", cwd=origin).exit_code == 0
    assert git(origin, "status", "--porcelain") == ""
    assert (origin / "new.txt").exists()


def test_end_of_the_session_offers_to_merge(provider: ProviderServer, origin: Path) -> None:
    provider.script(write("new.txt"), text("Done."))
    with pty_wolo("--worktree", "one", "-i", "--mode", "edit", *provider.flags, "go", cwd=origin) as terminal:
        terminal.wait_for("Done.")
        terminal.press("ctrl-d")
        terminal.wait_for("[k/m/p/r]")
        terminal.enter("m")
        terminal.wait_for("Removed worktree one.")
        assert terminal.wait_for_exit() == 0
    assert (origin / "new.txt").exists()


def test_end_of_a_moved_session_offers_to_merge(provider: ProviderServer, origin: Path) -> None:
    provider.script(write("new.txt"), text("Done."))
    with pty_wolo("--mode", "edit", *provider.flags, cwd=origin) as terminal:
        terminal.wait_for_prompt()
        terminal.enter("/move away")
        terminal.wait_for("uncommitted changes came along")
        terminal.say("go", "Done.")
        terminal.press("ctrl-d")
        terminal.wait_for("[k/m/p/r]")
        terminal.enter("m")
        terminal.wait_for("Removed worktree away.")
        assert terminal.wait_for_exit() == 0
    assert (origin / "new.txt").exists()


def test_worktree_is_trusted_as_its_origin(provider: ProviderServer, origin: Path) -> None:
    commit(origin, {".wolo/config.toml": 'permissions.deny = ["write:new.txt"]\n'})
    for name in ("one", "two"):
        provider.script(write("new.txt"), text("Done."))
        done = run_wolo("-p", "--worktree", name, "--mode", "auto", *provider.flags, "go", cwd=origin)
        assert ("is not trusted" in done.stderr) == (name == "one")
        assert ("denied" in str(provider.requests[-1].messages[-1]["content"])) == (name == "two")
        provider.forget_prefix()
        save_trust(find_places(), origin, "trusted")


def test_agent_cannot_change_the_record(provider: ProviderServer, origin: Path, tmp_path: Path) -> None:
    provider.script(text("Made."))
    run_wolo("-p", "--worktree", "one", *provider.flags, "go", cwd=origin)
    [link] = find_places().worktrees.glob("*/one/origin")
    provider.script(call("shell", {"command": f"ln -sfn {tmp_path} {link}"}), text("No."))
    provider.forget_prefix()
    done = run_wolo("--json", "--worktree", "one", "--yolo", *provider.flags, "go", cwd=origin)
    assert len(done.json["permission_denials"]) == 1
    assert link.readlink() == origin
