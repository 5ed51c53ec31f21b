"""A session leaves wolo, comes in somewhere else, and goes on there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.command import Completed, run_wolo, start_wolo
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import calls, text
from tests.fakes.screen import pty_wolo

SHAPES = ("jsonl", "rows", "openai", "atif")


@pytest.fixture
def kept(provider: ProviderServer) -> str:
    """A session with calls, one of which failed."""
    Path("a.txt").write_text("hello\n")
    provider.script(
        calls(("read", {"path": "a.txt"}), ("read", {"path": "missing.txt"}), reasoning="Look."), text("It says hello.")
    )
    said = run_wolo("--json", *provider.flags, "what does a.txt say?")
    assert said.exit_code == 0, said.stderr
    return str(said.json["session_id"])


def sessions(*args: str, home: Path | None = None, cwd: Path | None = None) -> Completed:
    return run_wolo("sessions", *args, env={"WOLO_HOME": str(home)} if home else None, cwd=cwd)


def exported(format: str) -> Path:
    path = Path(f"work.{format}")
    done = sessions("export", "--format", format, "-o", str(path))
    assert done.exit_code == 0, done.stderr
    return path


@pytest.mark.sweep(every=2)
@pytest.mark.parametrize("format", SHAPES)
def test_work_goes_on_on_another_machine(provider: ProviderServer, kept: str, tmp_path: Path, format: str) -> None:
    home = tmp_path / "elsewhere"
    done = sessions("import", str(exported(format)), "--json", home=home)
    assert done.exit_code == 0, done.stderr
    assert (done.json["format"], done.json["skipped"], done.json["cwd"]) == (format, 0, str(Path.cwd()))
    if format != "openai":
        assert done.json["id"] == kept

    linted = sessions("lint", "--as", "all", "-m", "zai/glm-5.2", home=home)
    assert linted.exit_code == 0, linted.stdout + linted.stderr
    assert sessions("verify", home=home).exit_code == 0

    provider.forget_prefix()  # most formats carry no notices, so the local context comes anew
    provider.script(text("Gladly."))
    assert run_wolo("-p", *provider.flags, "-c", "go on", env={"WOLO_HOME": str(home)}).stdout == "Gladly.\n"
    request = provider.requests[-1]
    told = json.dumps(request.messages)
    assert "what does a.txt say?" in told
    assert "It says hello." in told
    assert len(request.results) == 2
    assert "hello" in request.results[0]


@pytest.mark.parametrize("format", SHAPES)
def test_same_file_imported_concurrently_is_one_session(kept: str, tmp_path: Path, format: str) -> None:
    path, home = exported(format), tmp_path / "elsewhere"
    running = [start_wolo("sessions", "import", str(path), env={"WOLO_HOME": str(home)}) for _ in range(4)]
    said = [(process.communicate(timeout=60), process.returncode) for process in running]
    assert [exit_code for _, exit_code in said] == [0] * 4, said
    assert len(sessions("list", "--json", home=home).json) == 1


@pytest.mark.parametrize("format", SHAPES)
def test_the_same_file_twice_adds_nothing(kept: str, tmp_path: Path, format: str) -> None:
    path, home = str(exported(format)), tmp_path / "elsewhere"
    first = sessions("import", path, "--json", home=home).json
    again = sessions("import", path, "--json", home=home)
    assert again.exit_code == 0
    assert (again.json["already_imported"], again.json["id"]) == (True, first["id"])
    assert "Already imported" in sessions("import", path, home=home).stdout
    assert len(sessions("list", "--json", home=home).json) == 1


def test_imported_session_exports_the_same_bytes_elsewhere(kept: str, tmp_path: Path) -> None:
    path, home, there = exported("jsonl").absolute(), tmp_path / "elsewhere", tmp_path / "there"
    there.mkdir()
    sessions("import", str(path), home=home, cwd=there)
    assert sessions("export", kept, home=home, cwd=there).stdout.encode() == path.read_bytes()


def test_session_at_home_gets_new_id_both_named(kept: str) -> None:
    done = sessions("import", str(exported("jsonl")))
    new = sessions("list", "--json").json[0]["id"]
    assert new != kept
    assert kept in done.stdout
    assert new in done.stdout


def test_it_comes_in_through_a_pipe(kept: str, tmp_path: Path) -> None:
    content = exported("jsonl").read_bytes()
    done = run_wolo("sessions", "import", "-", "--json", stdin=content, env={"WOLO_HOME": str(tmp_path / "elsewhere")})
    assert done.json["id"] == kept


def test_damage_is_counted_and_told(kept: str, tmp_path: Path) -> None:
    path = exported("jsonl")
    lines = path.read_bytes().splitlines()
    path.write_bytes(b"\n".join([lines[0], lines[1][:50], b"\0\0", *lines[2:]]))
    done = sessions("import", str(path), home=tmp_path / "elsewhere")
    assert done.exit_code == 0
    assert "2 lines or records were skipped" in done.stdout
    verdict = sessions("verify", str(path), "--json")
    assert verdict.exit_code == 1
    assert verdict.json["broken"]["entry"] == 1


def test_foreign_directory_is_asked_about_where_possible(kept: str, tmp_path: Path) -> None:
    path, there = exported("jsonl").absolute(), tmp_path / "there"
    there.mkdir()
    for answer, home, kept_for in (("n", "one", Path.cwd()), ("y", "two", there)):
        with pty_wolo("sessions", "import", str(path), env={"WOLO_HOME": str(tmp_path / home)}, cwd=there) as terminal:
            terminal.wait_for("instead?")
            terminal.enter(answer)
            assert terminal.wait_for_exit() == 0
        (row,) = sessions("list", "--all", "--json", home=tmp_path / home).json
        assert row["cwd"] == str(kept_for.resolve())


def test_export_goes_whole_to_an_own_file(kept: str) -> None:
    path = exported("html")
    assert path.stat().st_mode & 0o777 == 0o600
    refused = sessions("export", "--format", "docx", "-o", "x.docx")
    assert refused.exit_code == 2
    assert sessions("export", "-o", "nowhere/x").exit_code == 3
    assert sessions("export", "no such session").exit_code == 3
    assert not [each for each in Path.cwd().iterdir() if each.name.startswith((".", "x."))]


@pytest.mark.parametrize("content", [b"", b"hello", b'{"a": 1}', b"\0" * 9])
def test_file_without_session_is_one_error_sentence(content: bytes) -> None:
    Path("x").write_bytes(content)
    done = sessions("import", "x")
    assert done.exit_code == 3
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith("wolo: x ")


def row(type: str, content: Any, **metadata: Any) -> dict[str, Any]:
    return {"message_id": type, "thread_id": "t", "type": type, "content": content, "is_llm_message": True, "metadata": metadata}


def test_a_thread_of_agentpress_goes_on(provider: ProviderServer) -> None:
    rows = [
        {**row("status", {"status_type": "thread_run_start"}), "is_llm_message": False},
        row("user", json.dumps({"role": "user", "content": "research"})),
        row("tool", {"role": "tool", "tool_call_id": "nobody", "content": "lost"}, tool_call_id="nobody"),
    ]
    Path("x").write_text("\n".join(map(json.dumps, rows)))
    assert sessions("import", "x", "--json").json["skipped"] == 1
    provider.script(text("Done."))
    assert run_wolo("-p", *provider.flags, "-r", "t", "go on").stdout == "Done.\n"
    assert "thread_run_start" not in json.dumps(provider.requests[-1].messages)
