"""`wolo audit`, `wolo purge` and retention: the record of sessions, and of their end."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.command import run_wolo
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import call, text
from tests.fakes.repositories import repository
from wolo.frontends.terminal.composer.prompt_storage import named_after
from wolo.places import Notices, find_places
from wolo.sessions.deletions import FILE, read_deletions
from wolo.sessions.exchange.audit import MOST_INPUT_CHARS
from wolo.sessions.store import Store
from wolo.workspace.session_worktrees import open_worktree

SECRET = "sk-audit0123456789abcdefghijklmn"
COMMAND = f"echo https://user@packages.example.com/simple {SECRET}"


@pytest.fixture
def session(provider: ProviderServer) -> str:
    """Its id, after a turn with a command that was allowed and one that was denied."""
    provider.script(call("shell", {"command": COMMAND}), call("shell", {"command": "touch no"}), text("done"))
    done = run_wolo("-p", *provider.flags, "--yolo", "--deny", "shell:touch *", "say hello")
    assert done.exit_code in (0, 4)
    with Store.open(find_places().data) as store:
        return store.list()[0].id


def exported(*args: str) -> list[dict[str, Any]]:
    return run_wolo("audit", "export", *args).lines


def test_export_of_a_run_has_its_attempts(session: str, provider: ProviderServer, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = Path("tasks.jsonl")
    tasks.write_text('{"id": "t0", "prompt": "go"}\n{"id": "t1", "prompt": "go"}\n')
    for name, value in (("WOLO_BASE_URL", provider.base_url), ("WOLO_API_KEY", "none"), ("WOLO_MODEL", "custom/test-model")):
        monkeypatch.setenv(name, value)
    provider.script(text("one"), text("two"))
    made = run_wolo("batch", "run", str(tasks), "--out", "run", timeout=120)
    assert made.exit_code == 0, made.stderr
    assert len(exported()) == 7
    own, added = (lines := exported("--run", "run"))[:6], lines[6:-1]
    assert not [line for line in own if "run" in line]
    assert [(line["run"], line["type"]) for line in added] == [("run", "prompt"), ("run", "answer")] * 2
    assert {(line["task"], line["attempt"][:2]) for line in added} == {("t0", "1-"), ("t1", "1-")}
    Path("audit.jsonl").write_text(run_wolo("audit", "export", "--run", "run").stdout)
    assert run_wolo("audit", "verify", "audit.jsonl").exit_code == 0
    assert run_wolo("audit", "export", "--run", "elsewhere").exit_code == 2


def test_export_of_a_run_changes_none_of_it(session: str) -> None:
    """Also the log of an attempt that was killed stays as it is, and is read."""
    folder = Path("run", "attempts", "t0", "1-a", "session")
    with Store.open(find_places().data) as store:
        store.rename(session, title="only in the log")
        shutil.copytree(find_places().data, folder)

    def contents() -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.suffix != ".db-shm"}

    before = contents()
    assert before[folder / "wolo.db-wal"]
    lines = exported("--run", "run")
    assert len([line for line in lines if line.get("attempt") == "1-a"]) == 6
    assert contents() == before


def test_attempts_with_bad_names_and_damage_are_told(session: str) -> None:
    attempts = Path(run := os.fsdecode(b"r\xffn"), "attempts", "t0")
    shutil.copytree(find_places().data, attempts / "1-a" / "session")
    (attempts / "2-b" / "session").mkdir(parents=True)
    (attempts / "2-b" / "session" / "wolo.db").write_bytes(b"damaged" * 1000)
    done = run_wolo("audit", "export", "--run", run)
    assert done.exit_code == 0, done.stderr
    assert [line["run"] for line in done.lines if line.get("attempt") == "1-a"] == ["r\\xffn"] * 6
    assert "damaged" in done.stderr
    assert "2-b" in done.stderr


def test_export_names_who_where_what_and_why(session: str) -> None:
    lines = exported()
    assert [line["type"] for line in lines] == ["prompt", "answer", "call", "answer", "call", "answer", "end"]
    assert all(line["user"] and line["host"] and line["chain"] for line in lines)
    prompt, answer, allowed, _, denied, *_ = lines
    assert prompt["origin"] == "command line"
    assert prompt["session"] == session
    assert Path(prompt["cwd"]) == Path.cwd()
    assert "say hello" not in json.dumps(lines)
    assert answer["model"] == "test-model"
    assert allowed["domains"] == ["packages.example.com"]
    assert allowed["exit_code"] == 0
    assert allowed["approval"]["source"] == "safe list"
    assert denied["outcome"] == "denied_by_rule"
    assert denied["approval"]["rule"] == "shell:touch *"


def test_export_hides_secrets_and_starts_at_a_time(session: str) -> None:
    assert SECRET not in run_wolo("audit", "export").stdout
    assert [line["type"] for line in exported("--since", "2099-01-01")] == ["end"]
    assert len(exported("--since", "1d")) == 7
    done = run_wolo("audit", "export", "--since", "yesterday")
    assert done.exit_code == 2
    assert "--since cannot parse the time yesterday" in done.stderr


def test_secret_where_an_argument_is_cut_is_hidden(provider: ProviderServer) -> None:
    begin = "true ".ljust(MOST_INPUT_CHARS - len(SECRET) // 2 - 1, "x")
    provider.script(call("shell", {"command": f"{begin} {SECRET} {'y' * 99}"}), text("done"))
    run_wolo("-p", *provider.flags, "--yolo", "go")
    (shown,) = (line["input"]["command"] for line in exported() if line["type"] == "call")
    assert shown.startswith(begin)
    assert "characters, sha256" in shown
    assert SECRET[:10] not in shown


def test_changed_record_is_not_verified(session: str) -> None:
    good = run_wolo("audit", "export").stdout
    log = Path("audit.jsonl")
    log.write_text(good)
    assert run_wolo("audit", "verify", "audit.jsonl").exit_code == 0
    lines = good.splitlines(keepends=True)
    for bad in (
        good.replace("packages.example.com", "packages.example.org"),
        "".join(lines[:2] + lines[3:]),
        "".join(lines[:-1]),
        "".join([lines[1], lines[0], *lines[2:]]),
        good[:-20],
        "",
        "[1]\n" + good,
    ):
        log.write_text(bad)
        done = run_wolo("audit", "verify", "audit.jsonl")
        assert done.exit_code == 3, bad
        assert "is not as it was exported" in done.stderr
    assert run_wolo("audit", "verify", "nowhere").exit_code == 2


def test_deleted_session_leaves_a_proof(session: str) -> None:
    assert run_wolo("sessions", "delete", session, "--yes").exit_code == 0
    deleted, end = exported()
    assert (deleted["type"], deleted["session"], deleted["reason"], deleted["holds"]) == ("deletion", session, "deleted", True)
    assert deleted["num_entries"] == 6
    assert end["type"] == "end"


def test_forged_deletion_is_noticed() -> None:
    data = find_places().data
    with Store.open(data) as store:
        for _ in range(3):
            store.delete(store.create(Path.cwd()).id, "cleaned")
    lines = (data / FILE).read_text().splitlines(keepends=True)
    assert [holds for _, holds in read_deletions(data)] == [True] * 3
    (data / FILE).write_text(lines[0] + lines[2])
    assert [holds for _, holds in read_deletions(data)] == [True, False]
    (data / FILE).write_text(lines[0] + lines[1].replace("cleaned", "deleted"))
    assert [holds for _, holds in read_deletions(data)] == [True, False]
    (data / FILE).write_text(lines[0] + lines[1][:30])
    with Store.open(data) as store:
        store.delete(store.create(Path.cwd()).id)
    assert [deletion is None for deletion, _ in read_deletions(data)] == [False, True, False]
    assert [line["holds"] for line in exported()[:-1]] == [True, False, False, False]  # the last: it was cut


def test_cut_end_of_deletions_stays_noticed() -> None:
    data = find_places().data
    with Store.open(data) as store:
        for _ in range(3):
            store.delete(store.create(Path.cwd()).id)
    lines = (data / FILE).read_text().splitlines(keepends=True)
    assert [line["holds"] for line in exported()[:-1]] == [True] * 3
    for cut in (lines[:2], lines[:1], []):
        (data / FILE).write_text("".join(cut))
        assert [line["holds"] for line in exported()[:-1]] == [*(True for _ in cut), False]
    (data / FILE).unlink()
    with Store.open(data) as store:
        for _ in range(4):
            store.delete(store.create(Path.cwd()).id)
    assert [line["holds"] for line in exported("--since", "1d")[:-1]] == [*[True] * 4, False]


def test_purge_deletes_all_of_a_project(provider: ProviderServer, session: str, tmp_path: Path) -> None:
    places, root = find_places(), Path.cwd()
    other = tmp_path / "other"
    other.mkdir()
    with Store.open(places.data) as store:
        other_id = store.create(other).id
    places.config.mkdir(parents=True, exist_ok=True)
    (places.config / "permissions.toml").write_text(f'["{root}"]\nallow = ["shell:ls"]\n["{other}"]\nallow = ["shell:ls"]\n')
    provider.script(call("write", {"path": "made", "content": "x"}), text("done"))
    assert run_wolo("-p", *provider.flags, "--mode", "edit", "write").exit_code == 0
    undo = places.data / "checkpoints"
    assert [*undo.glob("*.db")]
    assert run_wolo("purge").exit_code == 2
    done = run_wolo("purge", "--yes")
    assert done.exit_code == 0, done.stderr
    assert "2 sessions" in done.stdout
    with Store.open(places.data) as store:
        assert [info.id for info in store.list()] == [other_id]
    assert not [*undo.glob("*.db*")]
    assert str(root) not in (places.config / "permissions.toml").read_text().replace(str(other), "")
    assert Path("made").exists()
    assert {line["reason"] for line in exported() if line["type"] == "deletion"} == {"purged"}


def test_purge_stops_at_an_open_session(session: str) -> None:
    with Store.open(find_places().data) as store, store.lock(session):
        done = run_wolo("purge", "--yes")
        assert done.exit_code == 3
        assert f"Session {session} of" in done.stderr
        assert len(store.list()) == 1


def test_retention_deletes_what_is_old(provider: ProviderServer, session: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with Store.open(find_places().data) as store:
        store._clock = lambda: time.time() - 40 * 86400
        old = store.create(Path.cwd(), name="named").id
        store.rename(old, title="old")
    provider.script(text("hi"))
    assert run_wolo("-p", *provider.flags, "--set", "sessions.retention_days=30", "hello").exit_code == 0
    with Store.open(find_places().data) as store:
        assert old not in [info.id for info in store.list()]
        assert session in [info.id for info in store.list()]
    assert [line["reason"] for line in exported() if line["type"] == "deletion"] == ["expired"]


def test_doctor_tells_the_size_of_the_database(session: str) -> None:
    assert run_wolo("doctor", "--json").json["sqlite"]["bytes"] > 4096


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("DELETE FROM entries WHERE seq = 3", ("answer", 4)),
        ("DELETE FROM entries WHERE seq = 1", ("answer", 2)),
        ("DELETE FROM entries WHERE seq = (SELECT max(seq) FROM entries)", ("damaged", 6)),
        ("UPDATE entries SET body = replace(body, 'touch', 'rm') WHERE seq = 5", ("damaged", 5)),
        ("UPDATE entries SET time_utc = 1.0 WHERE seq = 3", ("damaged", 3)),
    ],
)
def test_changed_store_shows_in_the_export(session: str, change: str, told: tuple[str, int]) -> None:
    assert not [line for line in exported() if not line.get("holds", True)]
    with closing(sqlite3.connect(find_places().data / "wolo.db")) as database, database:
        database.execute(change)
    for since in ((), ("--since", "1h")):
        broken = [line for line in exported(*since) if not line.get("holds", True)]
        assert [(line["type"], line["seq"]) for line in broken][:1] == [told]


def test_purge_removes_prompts_and_sessions_of_worktrees(provider: ProviderServer, tmp_path: Path) -> None:
    source = repository(tmp_path / "source", {"a.txt": "one\n"})
    places = find_places()
    worktree = open_worktree(places.worktrees, source, "own", "", Notices())
    with Store.open(places.data) as store:
        kept = store.create(tmp_path).id
        store.create(worktree.folder)
        store.create(source / "sub")
    for folder in ("history", "drafts"):
        (places.state / folder).mkdir(parents=True)
        for directory in (source, source / "sub", tmp_path):
            (places.state / folder / f"{named_after(directory)}.{'0.json' if folder == 'drafts' else 'jsonl'}").write_text("x")
    done = run_wolo("purge", str(source), "--yes")
    assert "(2 sessions)" in done.stdout
    with Store.open(places.data) as store:
        assert [info.id for info in store.list()] == [kept]
    left = [path.name for folder in ("history", "drafts") for path in (places.state / folder).iterdir()]
    assert [name.partition(".")[0] for name in left] == [named_after(tmp_path)] * 2
    assert (worktree.folder / "a.txt").exists()


@pytest.mark.parametrize("make", [os.mkfifo, Path.mkdir])
def test_nothing_is_deleted_without_a_record(session: str, make: Callable[[Path], None]) -> None:
    make(find_places().data / FILE)
    assert run_wolo("sessions", "delete", session, "--yes", timeout=30).exit_code == 3
    assert run_wolo("audit", "export", timeout=30).exit_code == 3
    with Store.open(find_places().data) as store:
        assert [info.id for info in store.list()] == [session]
