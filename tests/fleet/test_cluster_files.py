"""The Slurm script and the Kubernetes manifest of the guide: parsed, and their workers run on a real queue."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.fakes.command import run_wolo
from tests.fleet.batches import results, write_tasks

GUIDE = Path(__file__).parents[2] / "docs/guide/fleet.md"
SHARED = "/shared/runs/x"
OPTIONS = "job-name array cpus-per-task mem time signal requeue output"
"""Of https://slurm.schedmd.com/sbatch.html."""


def block(language: str, begins: str) -> str:
    (text,) = (
        text for text in re.findall(rf"```{language}\n(.*?)```", GUIDE.read_text("utf-8"), re.DOTALL) if text.startswith(begins)
    )
    return str(text)


@pytest.fixture
def queue(env: dict[str, str], tmp_path: Path) -> Path:
    made = run_wolo("batch", "run", str(write_tasks(tmp_path / "t.jsonl", 1)), "--mode", "yolo", "--out", "x", "-j", "0")
    assert made.exit_code == 0, made.stderr
    return Path("x").absolute()


def test_slurm_script_works_on_the_queue(queue: Path, tmp_path: Path) -> None:
    text = block("bash", "#!/bin/bash")
    directives = re.findall(r"^#SBATCH --([a-z-]+)(?:=\S+)?$", text, re.MULTILINE)
    assert directives == OPTIONS.split()
    assert text.count("#SBATCH") == len(directives)
    secrets = tmp_path / "home/.config/wolo/batch.env"
    secrets.parent.mkdir(parents=True)
    secrets.write_text("PGPASSWORD=word\n")
    (tmp_path / "bin").mkdir()
    wolo = tmp_path / "bin/wolo"
    wolo.write_text(f'#!/bin/sh\n[ "$PGPASSWORD" = word ] && exec {sys.executable} -m wolo "$@"\n')
    wolo.chmod(0o755)
    script = tmp_path / "workers.sh"
    script.write_text(text.replace(SHARED, str(queue)))
    environ = {**os.environ, "HOME": str(tmp_path / "home"), "PATH": f"{wolo.parent}:{os.environ['PATH']}"}
    subprocess.run(["bash", "-n", str(script)], check=True)
    subprocess.run(["bash", str(script)], check=True, env=environ, timeout=100)
    assert [line["state"] for line in results(queue)] == ["done"]


def test_kubernetes_workers_have_secrets_and_folder(queue: Path) -> None:
    secret, claim, job = yaml.safe_load_all(block("yaml", "apiVersion: v1"))
    assert [(each["apiVersion"], each["kind"]) for each in (secret, claim, job)] == [
        ("v1", "Secret"),
        ("v1", "PersistentVolumeClaim"),
        ("batch/v1", "Job"),
    ]
    pod: dict[str, Any] = job["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["envFrom"] == [{"secretRef": {"name": secret["metadata"]["name"]}}]
    assert {each["name"] for each in container["volumeMounts"]} == {each["name"] for each in pod["volumes"]}
    assert pod["volumes"][0]["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]
    assert SHARED.startswith(container["volumeMounts"][0]["mountPath"])
    assert all(isinstance(value, str) for value in (*secret["stringData"].values(), *container["args"]))
    done = run_wolo(*(str(queue) if word == SHARED else word for word in container["args"]), timeout=100)
    assert done.exit_code == 0, done.stderr
    assert [line["state"] for line in results(queue)] == ["done"]
