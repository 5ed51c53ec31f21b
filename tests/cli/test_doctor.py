"""`wolo doctor` about the sessions: whether they are sound, what was set aside, what is kept as a backup."""

from __future__ import annotations

import stat
from pathlib import Path

from tests.fakes.command import run_wolo
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import call, text
from tests.sessions.samples import said
from wolo.sessions.session_rows import ROW_LIMIT_BYTES
from wolo.sessions.store import Store


def data() -> Path:
    return Path.cwd().parent / "wolo" / "data"


def fill() -> None:
    with Store.open(data()) as store:
        session = store.create("/", id="session_1")
        store.append(session.id, [said("one"), said("x" * ROW_LIMIT_BYTES * 2)])


def test_sound_sessions_are_called_sound() -> None:
    fill()
    report = run_wolo("doctor", "--json").json
    assert report["sqlite"]["integrity"] == "ok"
    assert (report["sqlite"]["quarantine"], report["sqlite"]["backups"]) == ([], [])
    assert not any("session" in problem for problem in report["problems"])


def test_set_aside_files_are_reported_until_removed() -> None:
    fill()
    (data() / "wolo.db").write_bytes(b"\0" * 8192)
    done = run_wolo("sessions", "list", "--all")
    assert done.exit_code == 0
    assert "The session database was damaged" in done.stderr
    assert "Traceback" not in done.stderr
    report = run_wolo("doctor", "--json").json
    assert report["sqlite"]["integrity"] == "ok"
    (set_aside,) = report["sqlite"]["quarantine"]
    assert Path(set_aside["path"]).parent == data() / "quarantine"
    assert "Nothing could be read from it" in set_aside["report"]
    assert f"set aside {set_aside['path']}" in run_wolo("doctor").stdout
    kept = [path for path in (data() / "quarantine").rglob("*") if path.is_file()]
    assert {stat.S_IMODE(path.stat().st_mode) for path in kept} == {0o600}


def test_backups_are_named() -> None:
    fill()
    (data() / "backups").mkdir(0o700)
    backup = data() / "backups" / "wolo-20260101T000000-v1.db"
    backup.touch()
    assert run_wolo("doctor", "--json").json["sqlite"]["backups"] == [str(backup)]
    assert f"backups   {backup}" in run_wolo("doctor").stdout


def test_files_that_are_gone_are_counted() -> None:
    fill()
    (large,) = (data() / "blobs").iterdir()
    large.unlink()
    assert any("1 file of a long output is missing" in problem for problem in run_wolo("doctor", "--json").json["problems"])


def test_newer_database_is_a_problem_and_stays_unchanged() -> None:
    def add_column(connection: object) -> None:
        """A step of a later wolo."""

    fill()
    from wolo.sessions import migrations

    Store.open(data(), steps=(*migrations.STEPS, add_column)).close()
    before = (data() / "wolo.db").read_bytes()
    for command, exit_code in ((("list", "--all"), 0), (("delete", "session_a"), 3)):
        done = run_wolo("sessions", *command)
        assert (done.exit_code, "newer wolo" in done.stderr.lower()) == (exit_code, True)
    report = run_wolo("doctor", "--json").json
    assert report["sqlite"]["integrity"] == "ok"
    (problem,) = (each for each in report["problems"] if "sessions" in each)
    assert problem == f"A newer wolo wrote these sessions: {data() / 'wolo.db'} is opened for reading only."
    assert (data() / "wolo.db").read_bytes() == before


def test_undo_storage_is_reported(provider: ProviderServer) -> None:
    assert run_wolo("doctor", "--json").json["checkpoints"] == {
        "path": str(data() / "checkpoints"),
        "bytes": 0,
        "workspaces": 0,
        "damaged": [],
    }
    provider.script(call("write", {"path": "a.txt", "content": "new"}), text("ok"))
    run_wolo("-p", "--mode", "edit", *provider.flags, "go")
    told = run_wolo("doctor", "--json").json["checkpoints"]
    assert told["bytes"] > 0
    assert told["workspaces"] == 1
    assert "MB for 1 workspace in" in run_wolo("doctor").stdout
