"""`wolo race`: one task, several tries, and the best applied."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from tests.fakes.command import run_wolo
from tests.fakes.hostile_repositories import hostile_repository, left
from tests.fakes.provider_server import Asked, ProviderServer
from tests.fakes.replies import Reply, call, text
from tests.fakes.repositories import files, git, repository
from tests.fakes.screen import pty_wolo

RACE = ("race", "go", "--mode", "yolo")


pytestmark = pytest.mark.usefixtures("env")


def _by_model(asked: Asked) -> Reply:
    model = json.loads(asked.body)["model"]
    lines = {"long": 50, "wrong": 1, "short": 2}[model]
    command = f"seq {lines} > made.txt" if model != "wrong" else "echo no > other.txt"
    return text("Done.") if asked.results else call("shell", {"command": command})


def test_smallest_passing_patch_is_applied_on_yes(tmp_path: Path, provider: ProviderServer) -> None:
    provider.otherwise = _by_model
    source = repository(tmp_path / "source", {"sub/a.txt": "one\n"})
    files(source, {"sub/a.txt": "uncommitted\n"})
    models = ("--models", "custom/long,custom/wrong,custom/short", "--verify", "test -f made.txt")
    shown = run_wolo(*RACE, *models, cwd=source / "sub")
    assert shown.exit_code == 0, shown.stderr
    assert "Winner: short; smallest patch of 2 that passed with a change." in shown.stdout
    assert "+++ b/made.txt" in shown.stdout
    assert "the last commit" in shown.stderr
    assert "Nothing was applied" in shown.stderr
    assert not (source / "made.txt").exists(), "without a yes"
    done = run_wolo(*RACE, *models, "--json", "--yes", cwd=source / "sub")
    assert (done.exit_code, done.json["winner"], done.json["applied"]) == (0, "short", True)
    assert {each["model"]: each["state"] for each in done.json["tries"]} == {
        "custom/long": "passed",
        "custom/wrong": "failed",
        "custom/short": "passed",
    }
    assert all((Path(done.json["run"]) / each["patch"]["path"]).is_file() for each in done.json["tries"])
    assert (source / "made.txt").read_text() == "1\n2\n"
    assert git(source, "status", "--short").split() == ["M", "sub/a.txt", "??", "made.txt"]


def test_without_a_repository_tries_work_on_copies(tmp_path: Path) -> None:
    folder = tmp_path / "plain"
    files(folder, {"a.txt": "one\n"})
    done = run_wolo(*RACE, "-n", "2", "--yes", cwd=folder)
    assert done.exit_code == 0, done.stderr
    assert (folder / "made.txt").read_text() == "made\n"
    none = run_wolo(*RACE, "-n", "2", "--yes", "--verify", "false", cwd=folder)
    assert (none.exit_code, "No winner: no try passed." in none.stdout) == (1, True)
    assert (folder / "made.txt").read_text() == "made\n"


def test_a_race_runs_nothing_that_the_repository_configures(tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    source = hostile_repository(tmp_path / "source", ran)
    done = run_wolo(*RACE, "-n", "2", "--yes", cwd=source)
    assert done.exit_code == 0, done.stderr
    assert (source / "made.txt").read_text() == "made\n"
    assert left(ran) == []


def test_race_in_borrowing_repository_copies_nothing_of_others(tmp_path: Path) -> None:
    other = repository(tmp_path / "private", {"secret.txt": "sesame\n"})
    git(tmp_path, "clone", "-q", "--shared", str(other), str(tmp_path / "source"))
    refused = run_wolo(*RACE, "-n", "2", "--yes", "--json", cwd=tmp_path / "source")
    assert refused.exit_code == 2
    assert all(f"borrows objects from {other}" in each["error"]["message"] for each in refused.json["tries"])
    assert not list(Path(refused.json["run"]).rglob("pack-*"))


def test_interrupted_race_ends_runs_and_still_asks(tmp_path: Path, provider: ProviderServer) -> None:
    source, go_on = repository(tmp_path / "source", {"a.txt": "one\n"}), threading.Event()

    def answer(asked: Asked) -> Reply:
        go_on.wait(60)
        return text("Done.") if asked.results else call("shell", {"command": "echo made > made.txt"})

    provider.otherwise = answer
    with pty_wolo(*RACE, "-n", "2", "-j", "1", "--yes", cwd=source) as screen:
        screen.wait_for("1 queued · 1 running")
        screen.press("ctrl-c")
        screen.wait_for("Finishing 1 running task;")
        go_on.set()
        screen.wait_for("[y/N]")
        screen.wait_for("Winner: try;")
        screen.press("enter")
        assert screen.wait_for_exit() == 0
        screen.wait_for("Nothing was applied.")
    assert git(source, "status", "--short") == ""


def test_several_models_have_several_tries(tmp_path: Path) -> None:
    source = repository(tmp_path / "source", {"a.txt": "one\n"})
    done = run_wolo(*RACE, "--models", "custom/a,custom/b", "-n", "2", "--json", cwd=source)
    assert sorted(each["model"] for each in done.json["tries"]) == ["custom/a", "custom/a", "custom/b", "custom/b"]


@pytest.mark.parametrize(
    "wrong",
    [
        (),
        ("-n", "1"),
        ("-n", "0", "--models", "a,b"),
        ("-n", "99", "--models", "a,b"),
        ("-n", "1", "--models", "a"),
        ("--models", "a"),
        ("--models", "a,,b"),
        ("-n", "2", "-j", "0"),
    ],
)
def test_options_that_make_no_race_are_refused(wrong: tuple[str, ...]) -> None:
    refused = run_wolo("race", "go", *wrong)
    assert (refused.exit_code, refused.stdout) == (2, "")
