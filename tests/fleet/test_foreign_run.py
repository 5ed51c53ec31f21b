"""A run that a stranger has made or changed: opening it runs, writes and removes nothing outside of its folder."""

from __future__ import annotations

import http.server
import json
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tests.fakes.command import run_wolo
from tests.fleet.batches import results, write_tasks
from wolo.errors import WoloError
from wolo.fleet.ledger.outcomes import Patch


@pytest.mark.parametrize("path", ["../key", "/etc/passwd", "attempts/../../key", "link"])
def test_a_patch_outside_of_its_run_is_refused(path: str, tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (tmp_path / "key").write_text("secret")
    (run / "link").symlink_to("../key")
    with pytest.raises(WoloError, match="leads out of its folder"):
        Patch(path, "0", 6, 1).file_in(run)


def test_a_patch_inside_of_its_run_is_found(tmp_path: Path) -> None:
    assert Patch("attempts/a/1-1/patch.diff", "0", 6, 1).file_in(tmp_path) == tmp_path / "attempts/a/1-1/patch.diff"


@pytest.fixture
def run(env: dict[str, str], tmp_path: Path) -> Path:
    """A queue with one task, beside a file that no run has to do with."""
    (tmp_path / "own").mkdir()
    (tmp_path / "own/kept.txt").write_text("kept")
    tasks = write_tasks(tmp_path / "t.jsonl", 1)
    made = run_wolo("batch", "run", str(tasks), "--out", str(tmp_path / "x"), "-j", "0")
    assert made.exit_code == 0, made.stderr
    return tmp_path / "x"


def change_task(run: Path, **fields: Any) -> None:
    """As a stranger with an editor does."""
    with closing(sqlite3.connect(run / "ledger.db")) as database, database:
        ((text,),) = database.execute("SELECT task FROM tasks").fetchall()
        database.execute("UPDATE tasks SET task = ?", (json.dumps(json.loads(text) | fields),))


def files_below(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("id", ["../../own", "/tmp/x", "."])
@pytest.mark.parametrize("command", ["resume", "export"])
def test_an_id_that_is_no_name_is_refused(run: Path, tmp_path: Path, id: str, command: str) -> None:
    change_task(run, id=id)
    before = files_below(tmp_path / "own")
    refused = run_wolo("batch", command, str(run), *(("--format", "html") if command == "export" else ()))
    assert refused.exit_code != 0
    assert "cannot be the name of a folder" in refused.stderr
    assert files_below(tmp_path / "own") == before


def test_a_number_that_is_text_is_refused(run: Path) -> None:
    with closing(sqlite3.connect(run / "ledger.db")) as database, database:
        database.execute("UPDATE tasks SET attempt = '../../own'")
    refused = run_wolo("batch", "resume", str(run))
    assert (refused.exit_code != 0, "where a number belongs" in refused.stderr) == (True, True)


@pytest.mark.parametrize("link", ["work", "work/mirrors", "attempts", "attempts/t0"])
def test_links_in_a_run_lead_nowhere(run: Path, tmp_path: Path, link: str) -> None:
    (tmp_path / "own/t0").mkdir()
    (tmp_path / "own/.t0.part").mkdir()
    (run / link).parent.mkdir(exist_ok=True)
    (run / link).symlink_to(tmp_path / "own")
    before = sorted(tmp_path.joinpath("own").rglob("*"))
    refused = run_wolo("batch", "resume", str(run))
    assert sorted(tmp_path.joinpath("own").rglob("*")) == before
    assert "leads out of its folder" in refused.stderr


def test_results_are_not_written_through_a_link(run: Path, tmp_path: Path) -> None:
    (run / "results.jsonl").unlink(missing_ok=True)
    (run / "results.jsonl").symlink_to(tmp_path / "own/kept.txt")
    for words in (("resume",), ("cancel",), ("retry", "--state", "lost")):
        refused = run_wolo("batch", words[0], str(run), *words[1:])
        assert refused.exit_code != 0
        assert files_below(tmp_path / "own") == {"kept.txt": b"kept"}


def test_a_report_reads_no_steps_through_a_link(run: Path, tmp_path: Path) -> None:
    assert run_wolo("batch", "resume", str(run)).exit_code == 0
    (stream,) = run.glob("attempts/t0/*/stream.jsonl")
    stream.unlink()
    said = {"type": "assistant", "message": {"content": [{"type": "text", "text": "SECRET"}]}}
    (tmp_path / "own/other.jsonl").write_text(json.dumps(said))
    stream.symlink_to(tmp_path / "own/other.jsonl")
    exported = run_wolo("batch", "export", str(run), "--format", "html")
    assert ("SECRET" in exported.stdout, "leads out of its folder" in exported.stderr) == (False, True)


@pytest.mark.parametrize(
    ("field", "value"),
    [("env", ["OPENAI_API_KEY"]), ("repo", "ext::sh -c id"), ("ref", "--upload-pack=id")],
)
def test_task_no_file_may_hold_is_not_run(run: Path, field: str, value: Any) -> None:
    change_task(run, repo="https://127.0.0.1:1/x.git")
    change_task(run, **{field: value})
    assert run_wolo("batch", "resume", str(run)).exit_code == 2
    (ended,) = results(run)
    assert ended["error"]["message"].startswith(f"Task t0 of the run could be in no task file: {field}: ")


class _Asks(http.server.BaseHTTPRequestHandler):
    """A server that wants a password, for which git asks its helpers."""

    def do_GET(self) -> None:
        self.send_response(401)
        self.send_header("WWW-Authenticate", 'Basic realm="x"')
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def asking() -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Asks) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/x.git"
        server.shutdown()


def test_a_mirror_of_a_stranger_is_not_used(run: Path, tmp_path: Path, asking: str) -> None:
    name = sha256(asking.encode()).hexdigest()[:16]
    mirror = run / f"work/mirrors/{name}.git"
    mirror.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", "--bare", str(mirror)], check=True)
    with (mirror / "config").open("a") as config:
        config.write(f'[credential]\n\thelper = "!touch {tmp_path}/own/planted; false"\n')
    change_task(run, repo=asking, ref="missing")
    assert run_wolo("batch", "resume", str(run)).exit_code == 2
    assert files_below(tmp_path / "own") == {"kept.txt": b"kept"}


def test_a_foreign_run_names_no_folder_to_change(tmp_path: Path, env: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    repo = tmp_path / "repo"
    repo.mkdir()
    (repo / "a.txt").write_text("a\n")
    tasks = write_tasks(tmp_path / "t.jsonl", 1, repo=str(repo))
    assert run_wolo("batch", "run", str(tasks), "--out", str(tmp_path / "x")).exit_code == 0
    monkeypatch.setenv("WOLO_HOME", str(tmp_path / "other"))
    refused = run_wolo("batch", "apply", str(tmp_path / "x"), "t0", "--yes")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert f"its maker has chosen the folder to change: {repo}" in refused.stderr
    assert list(files_below(repo)) == ["a.txt"]
    assert run_wolo("batch", "apply", str(tmp_path / "x"), "t0", "--yes", "--to", str(repo)).exit_code == 0
    assert (repo / "made.txt").read_text() == "made\n"


@pytest.mark.sweep(every=2)
@pytest.mark.parametrize("mode", ["plan", "ask", "auto"])
def test_task_file_commands_stay_in_the_sandbox(tmp_path: Path, env: dict[str, str], mode: str) -> None:
    outside = Path.home() / "planted"
    tasks = write_tasks(
        tmp_path / "t.jsonl", 1, mode=mode, setup=f"touch {outside}; touch made", verify=f"touch {outside}; test -f made"
    )
    run_wolo("batch", "run", str(tasks), "--out", str(tmp_path / "x"), "--mode", mode)
    assert results(tmp_path / "x")[0]["state"] in ("passed", "errored")
    assert not outside.exists()
