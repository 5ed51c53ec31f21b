"""Errors that edits make, as a real language server sees them: they reach the model with the result of the edit."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.command import run_wolo
from tests.fakes.constants import set_constants
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import call, text

SERVER = Path(sys.executable).parent / "basedpyright-langserver"
FAKE = Path(__file__).parents[1] / "fakes" / "language_server.py"
BEFORE = "import nowhere\n\n\ndef double(n: int) -> int:\n    return n * 2\n\n\nprint(double(1))\n"
BREAKS = {"path": "calc.py", "old": "double(1)", "new": "double('one')"}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    if not SERVER.exists():
        if os.environ.get("CI"):
            pytest.fail("basedpyright is missing")
        pytest.skip("basedpyright is not installed")
    monkeypatch.setenv("PATH", f"{SERVER.parent}:{os.environ['PATH']}")
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "calc.py").write_text(BEFORE)
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An edit waits for a server as long as it takes."""
    constants = {f"wolo.lsp.language_servers.{name}": 60.0 for name in ("COLD_S", "WARM_S")}
    set_constants(monkeypatch, tmp_path / "constants", constants)


def results(provider: ProviderServer) -> list[str]:
    return provider.requests[-1].results


def test_type_error_from_an_edit_reaches_the_model(provider: ProviderServer, project: Path) -> None:
    look = {"path": "calc.py"}
    provider.script(call("edit", BREAKS), call("read", look), call("edit", {**BREAKS, "old": "'one'", "new": "2"}), text("Done."))
    done = run_wolo("--json", *provider.flags, "go")
    assert done.exit_code == 0
    told = "\n".join(results(provider)[:2])
    assert "[basedpyright: 1 new error after this edit]\ncalc.py:8:14: " in told
    assert "reportArgumentType" in told
    assert "nowhere" not in told.partition("1→")[0]
    assert "new error" not in results(provider)[2]


def fake(how: str) -> tuple[str, ...]:
    """Options for a server that behaves so; in the sandbox it sees the workspace."""
    Path("server.py").write_bytes(FAKE.read_bytes())
    command = f"lsp.servers.fake.command=[{sys.executable!r}, {str(Path('server.py').absolute())!r}, {how!r}]"
    return ("--set", command, "--set", "lsp.servers.fake.extensions=['.x']")


def test_a_server_of_ones_own(provider: ProviderServer) -> None:
    provider.script(call("write", {"path": "a.x", "content": "BAD idea\n"}), text("Done."))
    done = run_wolo("-p", *fake("well"), *provider.flags, "go")
    assert "[fake: 1 new error after this edit]\n" in done.stderr
    assert "a.x:1:1: BAD idea (E1)" in done.stderr
    assert results(provider)[0].endswith("[fake: 1 new error after this edit]\na.x:1:1: BAD idea (E1)")


@pytest.mark.parametrize("how", ["dies", "garbage"])
def test_misbehaving_server_is_reported_without_costing_the_edit(provider: ProviderServer, how: str) -> None:
    edits: list[Any] = [call("write", {"path": name, "content": "BAD\n"}) for name in ("a.x", "b.x")]
    provider.script(*edits, text("Done."))
    done = run_wolo("-p", *fake(how), *provider.flags, "go")
    assert (done.exit_code, done.stdout) == (0, "Done.\n")
    assert done.stderr.count("The language server fake is not used any more: it ") == 1
    assert results(provider) == ["Created a.x (1 line).", "Created b.x (1 line)."]


def test_a_server_changes_nothing_in_the_workspace(provider: ProviderServer) -> None:
    provider.script(call("write", {"path": "a.x", "content": "BAD\n"}), text("Done."))
    run_wolo("-p", "--mode", "yolo", *fake("writes"), *provider.flags, "go")
    assert "1 new error" in results(provider)[0]
    assert not Path("made-by-the-server").exists()


def test_an_untrusted_project_brings_no_server_along(provider: ProviderServer, tmp_path: Path) -> None:
    script = f"#!/bin/sh\ntouch {tmp_path}/ran\n"
    for folder in (".venv/bin", "node_modules/.bin"):
        program = Path(folder, "pylsp")
        program.parent.mkdir(parents=True)
        program.write_text(script)
        program.chmod(0o755)
    provider.script(call("write", {"path": "a.py", "content": "x\n"}), text("Done."))
    path = f"{Path('.venv/bin').absolute()}:{Path('node_modules/.bin').absolute()}:/usr/bin:/bin"
    run_wolo("-p", "--mode", "yolo", *provider.flags, "go", env={"PATH": path})
    assert results(provider) == ["Created a.py (1 line)."]
    assert not (tmp_path / "ran").exists()


def test_a_replay_repeats_what_was_told(provider: ProviderServer) -> None:
    provider.script(call("write", {"path": "a.x", "content": "BAD idea\n"}), text("Done."))
    run_wolo("-p", *fake("well"), *provider.flags, "-s", "checked", "go")
    assert "1 new error" in results(provider)[0]
    done = run_wolo("replay", "checked")
    assert (done.exit_code, done.stderr) == (0, "")


def test_one_setting_turns_it_off(provider: ProviderServer, project: Path) -> None:
    provider.script(call("edit", BREAKS), text("Done."))
    run_wolo("--json", "--set", "lsp.enabled=false", *provider.flags, "go")
    assert "new error" not in results(provider)[0]


def test_missing_own_server_is_reported(provider: ProviderServer) -> None:
    settings = ("--set", "lsp.servers.fake.command=['/no/such/server']", "--set", "lsp.servers.fake.extensions=['.x']")
    provider.script(call("write", {"path": "a.x", "content": "one\n"}), text("Done."))
    ran = run_wolo("-p", *provider.flags, "--mode", "edit", *settings, "write it")
    assert (ran.exit_code, ran.stdout) == (0, "Done.\n")
    assert "lsp.servers.fake is not used: there is no program /no/such/server." in ran.stderr


@pytest.mark.parametrize(("version", "num_servers"), [("7.0.2", 1), ("5.9.3", 0), ("x", 0)])
def test_typescript_is_a_server_from_version_seven(isolated: Path, version: str, num_servers: int) -> None:
    package = isolated / "node_modules/typescript"
    (package / "bin").mkdir(parents=True)
    (package / "package.json").write_text(json.dumps({"version": version}))
    (package / "bin/tsc").write_text("#!/bin/sh\n")
    (package / "bin/tsc").chmod(0o755)
    (isolated / "node_modules/.bin").mkdir()
    (isolated / "node_modules/.bin/tsc").symlink_to("../typescript/bin/tsc")
    path = f"{isolated}/node_modules/.bin:/usr/bin:/bin"
    found = run_wolo("doctor", "--json", env={"PATH": path}).json["language_servers"]
    assert found.count("tsc") == num_servers
