"""The GitHub Action does its work with the steps as `action.yml` has them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

from tests.components import require
from tests.fakes.provider_server import ProviderServer
from tests.fakes.replies import Hold, calls, sse, text

ROOT = Path(__file__).parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
STEPS = ACTION["runs"]["steps"]
INPUT = re.compile(r"\$\{\{ inputs\.([\w-]+) \}\}")


class Job:
    """Runs the step of the action that works as the runner does: inputs fill `env`, files take the outputs."""

    def __init__(self, folder: Path, provider: ProviderServer) -> None:
        self.temp = folder / "runner"
        (self.temp / "wolo-venv").mkdir(parents=True)
        (self.temp / "wolo-venv" / "bin").symlink_to(Path(sys.executable).parent)
        self.given = {"base-url": provider.base_url, "model": "test/model", "api-key": "k"}
        self.outputs: dict[str, str] = {}
        self.summary = ""

    def run(self, **inputs: str) -> subprocess.CompletedProcess[str]:
        started = self.start(**inputs)
        stdout, stderr = started.communicate(timeout=60)
        self.collect()
        return subprocess.CompletedProcess(started.args, started.returncode, stdout, stderr)

    def start(self, **inputs: str) -> subprocess.Popen[str]:
        named = {name: values.get("default", "") for name, values in ACTION["inputs"].items()}
        named |= self.given | {name.replace("_", "-"): value for name, value in inputs.items()}
        step: dict[str, Any] = next(step for step in STEPS if step.get("id") == "run")
        env = {name: INPUT.sub(lambda found: named[found[1]], value) for name, value in step["env"].items()}
        files = {f"GITHUB_{name}": str(self.temp / name) for name in ("OUTPUT", "STEP_SUMMARY", "ENV", "PATH")}
        script = self.temp / "step.sh"
        script.write_text(step["run"])
        return subprocess.Popen(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", script],
            env={**os.environ, **files, **env, "RUNNER_TEMP": str(self.temp), "GITHUB_ACTION_PATH": str(ROOT)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def collect(self) -> None:
        told = (self.temp / "OUTPUT").read_text()
        self.outputs = {name: value for name, _, value in re.findall(r"^([\w-]+)<<(end_\w+)\n(.*?)\n\2$", told, re.M | re.S)}
        self.summary = (self.temp / "STEP_SUMMARY").read_text() if (self.temp / "STEP_SUMMARY").exists() else ""


@pytest.fixture
def job(tmp_path: Path, provider: ProviderServer) -> Job:
    require("git")
    subprocess.run(["git", "init", "-q"], check=True)
    Path("notes.txt").write_text("one\n")
    return Job(tmp_path, provider)


def test_answer_patch_and_session_are_handed_on(provider: ProviderServer, job: Job) -> None:
    Path("mine.txt").write_text("there before\n")
    provider.script(calls(("write", {"path": "new.txt", "content": "hello\n"})), text("Wrote ```new.txt```."))
    done = job.run(prompt="write new.txt", mode="edit")
    assert done.returncode == 0, done.stderr
    assert (job.outputs["result"], job.outputs["exit-code"], job.outputs["changed"]) == ("Wrote ```new.txt```.", "0", "true")
    assert job.outputs["session-id"].startswith("session_")
    assert job.outputs["cost"] == ""  # the price is unknown
    patch = Path(job.outputs["patch"]).read_text()
    assert "+hello" in patch
    assert "mine.txt" not in patch
    Path("new.txt").unlink()
    subprocess.run(["git", "apply", job.outputs["patch"]], check=True)
    assert Path("new.txt").read_text() == "hello\n"
    assert "+hello" in job.summary
    assert subprocess.run(["git", "diff", "--cached", "--quiet"], check=False).returncode == 0  # nothing was staged
    assert set(ACTION["outputs"]) <= set(job.outputs)
    suite = ElementTree.parse(job.outputs["junit"]).getroot()
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("1", "0", "0")


def test_hostile_inputs_and_answers_stay_text(provider: ProviderServer, job: Job) -> None:
    prompt = "`touch owned` $(touch owned) \"; touch owned; '\n--yolo\n::error::no"
    answer = "::set-env name=X::1\nresult<<end\nend_\x1b[31m\nexit-code=0 ]]> <x>"
    provider.script(text(answer))
    done = job.run(prompt=prompt, model="test/$(touch owned)")
    assert done.returncode == 0, done.stderr
    assert prompt in provider.requests[0].messages[-1]["content"]
    assert not Path("owned").exists()
    assert job.outputs["result"] == answer
    assert done.stdout.startswith("::stop-commands::")
    ElementTree.parse(job.outputs["junit"])


@pytest.mark.skipif(sys.platform != "linux", reason="reads the environment of a process in /proc")
def test_the_agent_gets_no_way_to_the_runner(provider: ProviderServer, job: Job) -> None:
    hold = Hold()
    provider.script(sse(hold, done=False))
    running = job.start(prompt="wait")
    hold.wait_until_reached()
    wolo = Path(f"/proc/{running.pid}/task/{running.pid}/children").read_text().split()[0]
    names = {entry.partition("=")[0] for entry in Path(f"/proc/{wolo}/environ").read_text().split("\0")}
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=60)
    hold.release()
    assert {"PATH", "WOLO_API_KEY"} <= names
    assert not [name for name in names if name.startswith(("GITHUB_OUTPUT", "GITHUB_ENV", "GITHUB_PATH", "WOLO_ACTION_"))]


def test_failure_shows_in_exit_code_outputs_and_junit(provider: ProviderServer, job: Job) -> None:
    provider.script(calls(("read", {"path": "notes.txt"})))
    done = job.run(prompt="read it all", max_turns="1")
    assert (done.returncode, job.outputs["exit-code"]) == (5, "5")
    suite = ElementTree.parse(job.outputs["junit"]).getroot()
    assert (suite.get("failures"), suite.get("errors")) == ("1", "0")


def test_wrong_input_is_an_error_unless_failure_allowed(job: Job) -> None:
    done = job.run(prompt="hello", mode="nonsense", allow_failure="true")
    assert (done.returncode, job.outputs["exit-code"]) == (0, "2")
    suite = ElementTree.parse(job.outputs["junit"]).getroot()
    assert (suite.get("failures"), suite.get("errors")) == ("0", "1")
    assert "nonsense" in job.summary


def test_a_cancelled_job_keeps_what_was_done(provider: ProviderServer, job: Job) -> None:
    hold = Hold()
    provider.script(calls(("write", {"path": "new.txt", "content": "hello\n"})), sse(hold, done=False))
    running = job.start(prompt="write new.txt", mode="edit")
    hold.wait_until_reached()
    running.send_signal(signal.SIGINT)  # to the step alone, as the runner does
    running.communicate(timeout=60)
    hold.release()
    job.collect()
    assert (running.returncode, job.outputs["exit-code"], job.outputs["changed"]) == (130, "130", "true")
    assert job.outputs["session-id"].startswith("session_")


def test_folder_without_repository_has_no_patch_log_explains(
    provider: ProviderServer, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = job.temp / "outside"
    outside.mkdir()
    monkeypatch.chdir(outside)
    provider.script(text("Hi."))
    done = job.run(prompt="hello")
    assert (done.returncode, job.outputs["changed"]) == (0, "false")
    assert "No patch: fatal: not a git repository" in done.stderr


def test_no_expression_is_part_of_a_shell_line() -> None:
    assert not [step["run"] for step in STEPS if "${{" in step.get("run", "")]
    named = set(INPUT.findall((ROOT / "action.yml").read_text())) | {"artifact"}
    assert named == set(ACTION["inputs"])  # none is accepted and ignored
