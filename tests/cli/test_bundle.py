"""The bundle, the log and crash reports hold no secret."""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.fakes.command import run_wolo
from wolo.cli import crash_log
from wolo.cli.crash_log import log_to_file
from wolo.messages.message import user
from wolo.places import find_places
from wolo.sessions.entries import MessageEntry
from wolo.sessions.store import Store

IN_ENVIRONMENT = "plain-words-of-mine"
IN_KEYS = "another-plain-word"
IN_SETTINGS = "a-header-nobody-sees"
LOOKS_LIKE_ONE = "sk-proj-Zx81" + "q7Rt" * 8
IN_OPTIONS = ("word-after-an-option", "word-in-an-option")
ALL = (IN_ENVIRONMENT, IN_KEYS, IN_SETTINGS, LOOKS_LIKE_ONE, *IN_OPTIONS)
ARGUMENTS = ["run", "--token", IN_OPTIONS[0], f"--api-key={IN_OPTIONS[1]}", "--token-file", "/etc/x"]
SERVER = f'[mcp_servers.x]\ncommand = "x"\nargs = {json.dumps(ARGUMENTS)}\n'


@pytest.fixture(autouse=True)
def secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEPLOY_TOKEN", IN_ENVIRONMENT)
    config = find_places().config
    config.mkdir(mode=0o700, parents=True)
    for name, text in {
        "keys.toml": f'zai = "{IN_KEYS}"\n',
        "config.toml": f'[headers]\nprofile = "custom"\n[headers.extra]\nx-auth-me = "{IN_SETTINGS}"\n{SERVER}',
    }.items():
        (config / name).write_text(text)
        (config / name).chmod(0o600)


def test_bundle_has_all_that_helps_without_secrets() -> None:
    with Store.open(find_places().data) as store:
        session = store.create(Path.cwd())
        store.append(session.id, [MessageEntry(message=user(" and ".join(ALL)))])
    state = find_places().state
    state.mkdir(parents=True, exist_ok=True)
    (state / "wolo.log").write_text("\n".join(ALL))
    (state / "crash-20260101T000000-1.txt").write_text("\n".join(ALL))

    done = run_wolo("doctor", "--bundle", "b.zip", "--session", session.id)

    assert done.exit_code == 0, done.stderr
    assert Path("b.zip").stat().st_mode & 0o777 == 0o600
    with ZipFile("b.zip") as bundle:
        names = bundle.namelist()
        assert {"doctor.json", "versions.json", "settings.json", "wolo.log", "session.jsonl"} <= set(names)
        for name in names:
            content = bundle.read(name).decode()
            assert not [secret for secret in ALL if secret in content], name
        assert json.loads(bundle.read("doctor.json"))["version"]
        assert "msgspec" in json.loads(bundle.read("versions.json"))


def test_text_report_is_one_readable_file() -> None:
    state = find_places().state
    state.mkdir(parents=True, exist_ok=True)
    (state / "wolo.log").write_text("\n".join(ALL))
    done = run_wolo("doctor", "--report", "report.txt")
    assert done.exit_code == 0, done.stderr
    content = Path("report.txt").read_text()
    headings = [line.strip("= ") for line in content.splitlines() if line.startswith("===== ")]
    assert headings[:4] == ["doctor.txt", "doctor.json", "versions.json", "settings.json"]
    assert "wolo.log" in headings
    assert not [secret for secret in ALL if secret in content]
    assert "/etc/x" in content
    assert Path("report.txt").stat().st_mode & 0o777 == 0o600


def test_unreadable_settings_are_reported_and_logs_stay_here() -> None:
    (find_places().config / "config.toml").write_text("mode = \n")
    done = run_wolo("doctor", "--bundle", "b.zip")
    assert done.exit_code == 0, done.stderr
    with ZipFile("b.zip") as bundle:
        assert "config.toml" in bundle.read("settings.json").decode()
        assert "wolo.log" not in bundle.namelist()
    assert run_wolo("doctor", "--bundle", "b.zip", "--session", "x").exit_code == 2


def test_unwritable_bundle_is_an_error_sentence() -> None:
    done = run_wolo("doctor", "--bundle", "nowhere/b.zip")
    assert done.exit_code == 3
    assert "cannot be written" in done.stderr


def test_the_log_holds_no_secret() -> None:
    log_to_file()
    handler = logging.getLogger().handlers[-1]
    try:
        logging.getLogger("wolo.test").warning("refused: %s", " ".join(ALL))
    finally:
        logging.getLogger().removeHandler(handler)
        handler.close()
    text = (find_places().state / "wolo.log").read_text()
    assert "refused" in text
    assert not [secret for secret in ALL if secret in text]


def test_a_crash_report_holds_no_secret() -> None:
    try:
        raise RuntimeError(" ".join(ALL))
    except RuntimeError as error:
        crash_log.report(error, 0.0)
    (report,) = find_places().state.glob("crash-*.txt")
    assert "RuntimeError" in report.read_text()
    assert not [secret for secret in ALL if secret in report.read_text()]


def test_no_export_holds_a_secret_that_wolo_knows() -> None:
    with Store.open(find_places().data) as store:
        session = store.create(Path.cwd())
        store.append(session.id, [MessageEntry(message=user(" and ".join(ALL)))])
    for format in ("jsonl", "rows", "openai", "markdown", "html", "atif"):
        done = run_wolo("sessions", "export", session.id, "--format", format, env=dict(os.environ))
        assert done.exit_code == 0, done.stderr
        assert not [secret for secret in ALL if secret in done.stdout], format
        refused = run_wolo("sessions", "export", "--format", format, "--no-redact")
        assert refused.exit_code == (0 if format == "jsonl" else 2)
    assert all(secret in run_wolo("sessions", "export", "--no-redact").stdout for secret in ALL)
