"""Policies of the phases of an attempt: what network setup and verify have, and what says so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.components import miss
from tests.end_to_end.test_allowed_domains import internet
from tests.fakes.command import run_wolo
from tests.fleet.batches import results
from wolo.guard.sandbox.selection import find

__all__ = ["internet"]
pytestmark = pytest.mark.usefixtures("env")
GET = "curl -sS --max-time 5 http://packages.example.com/"
REACHED = "http://packages.example.com/"


@pytest.fixture
def backend(tmp_path: Path) -> str:
    selection = find((tmp_path,), tmp_path, tmp_path)
    if selection.backend not in ("bubblewrap", "namespaces"):
        miss("a sandbox with a proxy")
    return selection.backend


def run_task(tmp_path: Path, *args: str, **task: Any) -> dict[str, Any]:
    file = tmp_path / "tasks.jsonl"
    file.write_text(json.dumps({"id": "t", "prompt": "go", **task}) + "\n")
    done = run_wolo("batch", "run", str(file), "--out", "run", *args, timeout=120)
    assert results(Path("run")), done.stderr
    return results(Path("run"))[0]


def test_setup_connects_and_verify_does_not(tmp_path: Path, backend: str, internet: list[str]) -> None:
    line = run_task(tmp_path, setup=f"{GET} > got.txt", verify=f"grep hello got.txt && ! {GET}")
    assert (line["state"], line["sandbox"]) == ("passed", backend), line
    assert internet == [REACHED]


def test_task_chooses_the_network_of_its_phases(tmp_path: Path, backend: str, internet: list[str]) -> None:
    line = run_task(tmp_path, setup=f"! {GET}", setup_network=False, verify=f"{GET} | grep hello", verify_network=True)
    assert line["state"] == "passed", line
    assert internet == [REACHED]


@pytest.mark.parametrize(
    "setting", ['sandbox.allowed_domains=["other.example.com"]', 'sandbox.denied_domains=["packages.example.com"]']
)
def test_settings_bound_the_network_of_setup(tmp_path: Path, backend: str, internet: list[str], setting: str) -> None:
    line = run_task(tmp_path, "--set", setting, setup=f"{GET} -f")
    assert (line["state"], line["error"]["kind"]) == ("errored", "setup")
    assert f"(in the sandbox {backend}, with network)" in line["error"]["message"]
    assert "no connection to packages.example.com:80" in next(Path("run").rglob("log")).read_text()
    assert internet == []


def test_failure_names_phase_and_sandbox(tmp_path: Path, backend: str) -> None:
    line = run_task(tmp_path, verify="exit 3")
    message = f"The verify command ended with status 3 (in the sandbox {backend}, without network)."
    assert (line["state"], line["error"]["message"]) == ("failed", message)


def test_demand_without_a_sandbox_is_not_ignored(tmp_path: Path) -> None:
    line = run_task(tmp_path, "--mode", "yolo", verify="true", verify_network=False)
    assert line["state"] == "errored"
    message = "verify must have no network (verify_network), and runs without a sandbox, with network."
    assert message in line["error"]["message"]


def test_result_says_where_no_sandbox_was(tmp_path: Path) -> None:
    line = run_task(tmp_path, "--mode", "yolo", verify="exit 1")
    assert (line["state"], line["sandbox"]) == ("failed", "none")
    assert "(without a sandbox, with network)" in line["error"]["message"]
    exported = run_wolo("batch", "export", "run", "--format", "csv").stdout
    assert "sandbox" in exported.splitlines()[0]


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"setup_network": "no"}, "setup_network: true or false is expected, not text"),
        ({"workdir": "/srv/app"}, "workdir needs an image"),
        ({"workdir": "/srv/app", "image": "img:1", "repo": "."}, "so repo has no meaning"),
        *(({"workdir": wrong, "image": "img:1"}, "is not the absolute path") for wrong in ("app", "/", "/a/../b", "/a:/b")),
    ],
)
def test_wrong_phase_fields_are_named(tmp_path: Path, fields: dict[str, Any], problem: str) -> None:
    (tmp_path / "tasks.jsonl").write_text(json.dumps({"id": "t", "prompt": "go", **fields}) + "\n")
    refused = run_wolo("batch", "run", str(tmp_path / "tasks.jsonl"), "--out", "run", "--image", "img:1")
    assert (refused.exit_code, problem in refused.stderr) == (2, True), refused.stderr
