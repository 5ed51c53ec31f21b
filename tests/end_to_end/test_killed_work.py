"""Work that wolo does by itself, killed at random moments: the next start continues as if nothing had happened."""

from __future__ import annotations

import random
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from tests.end_to_end.waiting import wait_for
from tests.fakes.command import run_wolo, start_wolo
from tests.fakes.provider_server import Asked, ProviderServer
from tests.fakes.replies import Reply, call, text
from tests.fakes.repositories import commit, git, repository

FILES = ("one", "two", "three")
GOAL = "three files exist"
LONGEST_S = 2.5
"""In which a run comes to its end, here."""
few_or_many = pytest.mark.parametrize("seed", [*range(3), *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(3, 40))])


def kill_at_random(chance: random.Random, run: subprocess.Popen[bytes], longest_s: float = LONGEST_S) -> None:
    """SIGKILL, unless it has ended before."""
    with run:
        with suppress(subprocess.TimeoutExpired):
            run.wait(chance.uniform(0.02, longest_s))
        run.kill()


def next_file(asked: Asked) -> Reply:
    """Writes what is missing, one file for each time that the goal sends the model back."""
    missing = [name for name in FILES if not Path(name).exists()]
    if not missing or asked.messages[-1]["role"] == "tool":
        return text("Done.")
    return call("write", {"path": missing[0], "content": f"{missing[0]}\n"})


@few_or_many
def test_goal_killed_anywhere_is_reached_once(provider: ProviderServer, tmp_path: Path, seed: int) -> None:
    chance, provider.otherwise = random.Random(seed), next_file
    checks = tmp_path / "checks"
    options = ("-p", "--yolo", "--sandbox", "off", *provider.flags)
    begin = (*options, "--goal", GOAL, "--until", f"echo checked >> {checks}; test -e three", "go")
    num_kills = 0
    for _ in range(chance.randint(1, 4)):
        kill_at_random(chance, start_wolo(*((*options, "-c", "continue") if provider.requests else begin)))
        num_kills += 1
    done = run_wolo("--json", *(each for each in ((*options, "-c", "continue") if provider.requests else begin) if each != "-p"))
    if provider.requests and done.exit_code == 3:  # killed before the session was saved
        done = run_wolo("--json", *(each for each in begin if each != "-p"))
    assert done.exit_code == 0, done.stderr
    goal = done.json.get("goal")
    if goal is not None:  # else it was reached before the last kill
        assert goal["status"] == "met", goal
        num_checks = checks.read_text().count("checked")
        assert goal["num_rounds"] <= num_checks <= goal["num_rounds"] + num_kills
    assert [Path(name).read_text() for name in FILES] == [f"{name}\n" for name in FILES]
    said = str(provider.requests[-1].messages)
    assert said.count("The goal of this session") == 1
    written = [name for name in FILES if f'"path": "{name}"' in said.replace("\\", "")]
    assert written == list(FILES)


@few_or_many
def test_worktree_killed_anywhere_loses_no_line(tmp_path: Path, seed: int, provider: ProviderServer) -> None:
    chance = random.Random(seed)
    origin = repository(tmp_path / "calc", {f"{name}.txt": "".join(f"{n}\n" for n in range(20)) for name in "ab"})
    shell = "sed -i '3i theirs 1' a.txt; git commit -qam one; sed -i '9i theirs 2' b.txt; echo theirs 3 > c.txt"
    options = ("-p", "--worktree", "one", "--yolo", "--sandbox", "off", *provider.flags, "go")
    for _ in range(chance.randint(0, 2)):  # made
        provider.otherwise = text("Not yet.")
        provider.forget_prefix()
        kill_at_random(chance, start_wolo(*options, cwd=origin))
    provider.otherwise = None
    provider.forget_prefix()
    provider.script(call("shell", {"command": shell}), text("Done."))
    assert run_wolo(*options, cwd=origin).exit_code == 0
    commit(origin, {"a.txt": "".join(f"{n}\n" for n in range(20)) + "ours 1\n", "d.txt": "ours 2\n"})
    (origin / "e.txt").write_text("ours 3\n")
    for _ in range(chance.randint(2, 6)):  # merged
        kill_at_random(chance, start_wolo("worktree", "merge", "one", cwd=origin), 0.6)
    done = run_wolo("worktree", "merge", "one", cwd=origin)
    assert done.exit_code in (0, 1), done.stderr  # 1: all of it is there already
    lines = sorted(line for path in origin.glob("*.txt") for line in path.read_text().splitlines() if not line.isdigit())
    assert lines == [f"{side} {number}" for side in ("ours", "theirs") for number in (1, 2, 3)], done.stderr
    assert git(origin, "status", "--porcelain", "-uno") == ""
    wait_for(lambda: not (origin / ".git" / "index.lock").exists())
