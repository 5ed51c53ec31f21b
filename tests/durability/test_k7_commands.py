"""K7: a command that writes is killed at the n-th rename, fsync, unlink, link, mkdir or lock, and then run again.

Afterwards there are the files that are there without a kill, each of them whole, and no others.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec import Struct

from tests.components import miss, require
from tests.durability.tally import Tally
from tests.fakes.repositories import commit, repository, skill_text
from tests.sessions.samples import said
from wolo.places import find_places
from wolo.sessions.store import Store

KEY = "sk-acme-0123456789abcdefWXYZ"
SETTINGS = """
[providers.acme]
base_url = "http://127.0.0.1:9/v1"
key_env = ["ACME_API_KEY"]
default_model = "large"
models = [{id = "large"}]
"""
LOGIN = ("auth", "login", "acme", "--key-stdin", "--no-test")
SKILL = ("skills", "add", "shelf", "--yes", "--force")
PLUGIN = ("plugin", "add", "acme", "--yes")
SERVER = ("mcp", "add", "good", "--", "true")


class Case(Struct, frozen=True):
    argv: Sequence[str]
    before: Sequence[Sequence[str]] = ()
    after: Sequence[Sequence[str]] = ()
    """Run after the command was run again."""


CASES = {
    "config set": Case(("config", "set", "mode", "plan")),
    "auth login": Case(LOGIN, after=[("auth", "logout", "acme")]),
    "auth login over another key": Case(LOGIN, [LOGIN], [("auth", "logout", "acme")]),
    "auth logout": Case(("auth", "logout", "acme"), [LOGIN]),
    "mcp add": Case(SERVER),
    "mcp add to the project": Case((*SERVER, "--scope", "project")),
    "mcp remove": Case(("mcp", "remove", "good"), [SERVER]),
    "plugin add": Case(PLUGIN),
    "plugin update": Case(("plugin", "update", "--yes"), [PLUGIN, ("commit",)]),
    "plugin remove": Case(("plugin", "remove", "acme"), [PLUGIN]),
    "plugin allow": Case(("plugin", "allow", "acme", "--yes"), [PLUGIN]),
    "skills add": Case(SKILL),
    "skills add over another": Case(SKILL, [SKILL]),
    "skills remove": Case(("skills", "remove", "pdf"), [SKILL]),
    "sessions export": Case(("sessions", "export", "session_1", "-o", "out.jsonl")),
    "sessions import": Case(("sessions", "import", "in.jsonl"), [("sessions", "export", "session_1", "-o", "in.jsonl")]),
    "sessions delete": Case(("sessions", "delete", "session_1", "--yes"), after=[("sessions", "delete", "session_2", "--yes")]),
    "completion": Case(("completion", "bash", "--install")),
}
CALLS = ("rename", "renameat2", "fsync", "unlink", "unlinkat", "link", "mkdir", "flock", "ftruncate")
LAST = 25
PYTHONS = r"temporary/[a-z0-9_]{8}"
"""Python tries out a folder for temporary files with a file of this form."""


@pytest.fixture
def strace() -> list[str]:
    program = require("strace")
    if subprocess.run([program, "-qq", "true"], capture_output=True, check=False).returncode:
        miss("the permission to trace a process: kills at single system calls are not tested")
    return [program, "-f", "-qq", "-o", "/dev/null"]


class Machine:
    """A home, a folder of wolo and one to work in, made anew for each kill."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.work, self.wolo = root / "work", root / "wolo"
        self.env = {**os.environ, "HOME": str(root / "home"), "WOLO_HOME": str(self.wolo)}
        self.env |= {"XDG_DATA_HOME": str(root / "home" / "data"), "TMPDIR": str(root / "temporary")}
        for folder in (self.work, root / "home", root / "temporary", self.wolo / "config"):
            folder.mkdir(parents=True)
        (self.wolo / "config" / "config.toml").write_text(SETTINGS)
        repository(self.work / "acme", {"skills/deploy/SKILL.md": skill_text("deploy"), "hooks/hooks.json": {"hooks": {}}})
        skill = self.work / "shelf" / "pdf" / "SKILL.md"
        skill.parent.mkdir(parents=True)
        skill.write_text(skill_text("pdf"))
        with Store.open(find_places(self.env).data) as store:
            for name in ("session_1", "session_2"):
                store.append(store.create(self.work, id=name).id, [said("one"), said(name * 50_000)])

    def run(self, argv: Sequence[str], before: Sequence[str] = ()) -> int:
        if argv == ("commit",):
            commit(self.work / "acme", {"skills/deploy/more.md": "more"})
            return 0
        done = subprocess.run(
            [*before, sys.executable, "-m", "wolo", *argv],
            input=f"{KEY}\n".encode(),
            capture_output=True,
            cwd=self.work,
            env=self.env,
            timeout=60,
            check=False,
        )
        assert b"Traceback" not in done.stderr, done.stderr
        assert b"crashed" not in done.stderr, done.stderr
        return done.returncode

    def prepare(self, case: Case) -> None:
        for argv in case.before:
            assert self.run(argv) == 0

    def finish(self, case: Case) -> None:
        """Runs the command again; one whose work was done before it was killed may say so."""
        assert self.run(case.argv) in (0, 2, 3)
        for argv in case.after:
            assert self.run(argv) == 0
        for path in filter(Path.is_file, self.root.rglob("*")):
            if path.suffix == ".toml":
                tomllib.loads(path.read_text())
            elif path.suffix in (".json", ".jsonl"):
                assert all(map(json.loads, path.read_text().splitlines() if path.suffix == ".jsonl" else [path.read_text()]))
            assert path.name == "keys.toml" or KEY.encode() not in path.read_bytes(), path

    def names(self) -> Counter[str]:
        paths = (str(path.relative_to(self.root)) for path in self.root.rglob("*") if ".git" not in path.parts)
        mine = (path for path in paths if not re.fullmatch(PYTHONS, path))
        return Counter(re.sub(r"[0-9a-f]{6,}|\d+", "#", path) for path in mine)


def kill_and_compare(root: Path, strace: Sequence[str], tally: Tally, case: Case, kills: Sequence[tuple[str, int]]) -> None:
    usual = Machine(root / "usual")
    usual.prepare(case)
    assert usual.run(case.argv) == 0
    usual.finish(case)
    for call, nth in kills:
        machine = Machine(root / f"{call}-{nth}")
        machine.prepare(case)
        inject = ["-e", f"trace={call}", "-e", f"inject={call}:signal=KILL:when={nth}"]
        was_killed = machine.run(case.argv, [*strace, *inject]) == -signal.SIGKILL
        tally.rounds += 1
        tally.kills += was_killed
        if was_killed:
            machine.finish(case)
            assert machine.names() == usual.names(), (call, nth)


@pytest.mark.sweep(every=2)
@pytest.mark.parametrize("name", ["auth login over another key", "plugin update", "skills add over another"])
def test_killed_command_leaves_nothing_behind(isolated: Path, strace: list[str], tally: Tally, name: str) -> None:
    kill_and_compare(isolated / "machines", strace, tally, CASES[name], [("fsync", 1), ("unlink", 1)])
    assert tally.kills


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("call", CALLS)
def test_command_killed_at_any_call_leaves_nothing_behind(
    isolated: Path, strace: list[str], tally: Tally, name: str, call: str
) -> None:
    kill_and_compare(isolated / "machines", strace, tally, CASES[name], [(call, nth) for nth in range(1, LAST)])
