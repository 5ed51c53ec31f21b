"""Tasks in images: one container an attempt, by a stand-in that records, and by a real engine where there is one."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.test_dist import build
from tests.end_to_end.waiting import wait_for
from tests.fakes.command import run_wolo, start_wolo
from tests.fakes.container_engine import DEAD, NETWORK, STATE, StandInEngine, mount_of
from tests.fakes.provider_server import KEY, Asked, ProviderServer
from tests.fakes.replies import Reply, call, text
from tests.fakes.repositories import commit, files, repository
from tests.fleet.batches import results

IMAGE = ("--image", "img:1")


@pytest.fixture
def engine(env: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StandInEngine:
    made = StandInEngine(tmp_path / "engine")
    for name in ("docker", "podman"):  # a real one on this machine is none of these tests'
        made.install(tmp_path / "bin", name)
    monkeypatch.setenv(STATE, str(made.folder))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}")
    (made.folder / "images/img:1").mkdir()
    return made


def run_tasks(tmp_path: Path, *tasks: dict[str, Any], args: tuple[str, ...] = (), out: str = "run") -> Any:
    file = tmp_path / f"{out}.jsonl"
    file.write_text("".join(json.dumps({"id": "t", "prompt": "go", "image": "img:1", **task}) + "\n" for task in tasks))
    return run_wolo("batch", "run", str(file), "--mode", "yolo", "--out", out, *IMAGE, *args, timeout=120)


def does(provider: ProviderServer, command: str) -> None:
    def answer(asked: Asked) -> Reply:
        return text("Done.") if asked.results else call("shell", {"command": command})

    provider.otherwise = answer


def log_of(run: str = "run") -> str:
    return next(Path(run).rglob("log")).read_text()


def test_attempt_has_one_container(engine: StandInEngine, provider: ProviderServer, tmp_path: Path) -> None:
    source = repository(tmp_path / "source", {"a.txt": "one\n", ".gitignore": "*.tmp\n"})
    does(provider, f"printf %s ${NETWORK} > b.txt")
    setup, verify = f"test ${NETWORK} = host && touch x.tmp", f"test ${NETWORK} = none -a -f b.txt -a -f x.tmp && cat b.txt"
    done = run_tasks(tmp_path, {"repo": str(source), "setup": setup, "verify": verify, "resources": {"memory_mb": 512}})
    assert done.exit_code == 0, (done.stderr, log_of())
    (line,) = results(Path("run"))
    assert (line["image_digest"], line["sandbox"], line["verify"]["tail"]) == ("sha256:4711", "docker", "host")
    verbs = [words[0] for words in engine.calls]
    assert verbs[:6] == ["version", "ps", "images", "create", "start", "exec"]
    assert verbs.count("create") == 2, "without network it is made again from its own files"
    assert [verbs.count(each) for each in ("exec", "commit", "stop")] == [4, 1, 3]
    assert engine.leftovers == []
    create = next(words for words in engine.calls if words[0] == "create")
    assert "--memory=512m" in create
    mounted = [mount_of(word.removeprefix("--mount=")) for word in create if word.startswith("--mount=")]
    assert {Path(each["source"]).name for each in mounted if each["readonly"] == "false"} == {"source", "session"}
    executed = [" ".join(words) for words in engine.calls if words[0] == "exec"]
    assert not any(KEY in each for each in executed)
    assert ["WOLO_API_KEY" in each for each in executed] == [False, False, True, False]


def test_repository_of_the_image_is_the_worktree(engine: StandInEngine, provider: ProviderServer, tmp_path: Path) -> None:
    image = files(engine.folder / "images/img:1/srv", {"app/.keep": ""}) / "app"
    repository(image, {"a.txt": "one\n", "built.so": "old\n"})
    commit(image, {".gitignore": "*.so\n*.o\n"})
    files(image, {"cache.o": "kept\n"})
    does(provider, "git log --format=%s > seen.txt; cat cache.o >> a.txt; echo new > built.so")
    task = {"workdir": "/srv/app", "setup": "echo prepared > setup.txt", "verify": "grep new built.so && test -f hidden.sh"}
    done = run_tasks(tmp_path, {**task, "verify_files": {"hidden.sh": ""}})
    assert done.exit_code == 0, (done.stderr, log_of())
    (line,) = results(Path("run"))
    patch = (Path("run") / line["patch"]["path"]).read_text()
    assert "+The repository of the image" in patch
    assert patch.count("\n+") == 6, "the log that the agent saw has one commit"
    assert {each for each in ("a.txt", "built.so", "seen.txt") if f"b/{each}\n" in patch} == {"a.txt", "built.so", "seen.txt"}
    assert "setup.txt" not in patch
    assert (image / "a.txt").read_text() == "one\n"
    assert any(words[0] == "exec" and "/srv/app" in words for words in engine.calls)
    assert engine.leftovers == []


def test_runs_in_images_are_graded_again(engine: StandInEngine, provider: ProviderServer, tmp_path: Path) -> None:
    does(provider, "echo x > b.txt")
    run_tasks(tmp_path, {"verify": "test -f b.txt"}, {"id": "u", "verify": "test -f b.txt"})
    again = run_wolo("batch", "verify", "run", "--json", timeout=120)
    assert [(line["state"], line["sandbox"]) for line in again.json] == [("passed", "docker")] * 2
    engine.die()
    refused = run_wolo("batch", "verify", "run")
    assert (refused.exit_code, DEAD in refused.stderr) == (2, True)


def test_colons_and_commas_in_paths_are_mounted(engine: StandInEngine, provider: ProviderServer, tmp_path: Path) -> None:
    does(provider, "echo x > b.txt")
    done = run_tasks(tmp_path, {"verify": "test -f b.txt"}, out="a:ro, b")
    assert done.exit_code == 0, done.stderr


SWE_BENCH_IMAGE = f"swebench/sweb.eval.{'arm64' if os.uname().machine == 'aarch64' else 'x86_64'}.acme_1776_lib-1:latest"


def evaluate(tmp_path: Path, *args: str, timeout: float = 120) -> Any:
    row = {"instance_id": "Acme__lib-1", "repo": "acme/lib", "base_commit": "1" * 40, "problem_statement": "Fix it."}
    (tmp_path / "verified.jsonl").write_text(json.dumps(row) + "\n")
    words = ("eval", "swe-bench-verified", "--data", str(tmp_path / "verified.jsonl"), "--mode", "yolo", "--out", "r")
    return run_wolo(*words, *args, timeout=timeout)


def test_evaluation_runs_in_instance_images(engine: StandInEngine, provider: ProviderServer, tmp_path: Path) -> None:
    repository(files(engine.folder / "images" / SWE_BENCH_IMAGE, {"testbed/a.txt": "one\n"}) / "testbed", {})
    does(provider, "echo fixed >> a.txt")
    done = evaluate(tmp_path, "--images")
    assert done.exit_code == 0, (done.stderr, log_of("r"))
    (line,) = results(Path("r/default"))
    assert (line["state"], line["image_digest"]) == ("done", "sha256:4711")
    assert "+fixed" in (Path("r/default") / line["patch"]["path"]).read_text()
    assert any("/testbed" in words for words in engine.calls if words[0] == "exec")
    assert "/envs/testbed/bin" in str(provider.requests[0].messages), "the agent is told where the Python of the image is"
    exported = run_wolo("batch", "export", "r/default", "--format", "swebench")
    assert json.loads(exported.stdout)["instance_id"] == "Acme__lib-1"


def test_evaluation_in_images_needs_an_engine(engine: StandInEngine, tmp_path: Path) -> None:
    without = evaluate(tmp_path, "--images", "--set", "batch.container=nerdctl")
    assert without.exit_code == 2
    assert "No task was started. A task needs an image, and there is no nerdctl" in without.stderr
    assert "--repos has no effect with --images" in evaluate(tmp_path, "--images", "--repos", ".").stderr
    line = json.dumps({"id": "t", "prompt": "go"})
    files(tmp_path / "mine", {"tasks.jsonl": f"{line}\n"})
    assert "The tasks of mine name no image." in run_wolo("eval", str(tmp_path / "mine"), "--images").stderr


def test_dead_daemon_starts_no_task(engine: StandInEngine, provider: ProviderServer, tmp_path: Path) -> None:
    engine.die()
    refused = run_tasks(tmp_path, {}, {"id": "u", "image": None})
    assert refused.exit_code == 2
    assert f"No task was started. docker version: {DEAD}" in refused.stderr
    assert run_wolo("batch", "status", "run", "--json").json["states"] == {"queued": 2}
    assert provider.requests == []
    (engine.folder / "dead").unlink()
    assert run_wolo("batch", "resume", "run", timeout=120).exit_code == 0


@pytest.mark.parametrize("fields", [{}, {"verify_files": {"x": ""}}])
def test_daemon_that_dies_in_a_phase_errs(
    engine: StandInEngine, provider: ProviderServer, tmp_path: Path, fields: dict[str, Any]
) -> None:
    done = run_tasks(tmp_path, {"verify": f"touch {engine.folder}/dead; exit 1", **fields})
    assert done.exit_code == 2
    (line,) = results(Path("run"))
    assert (line["state"], line["error"]["kind"]) == ("errored", "container")
    assert DEAD in line["error"]["message"]


def test_container_without_memory_errs(engine: StandInEngine, tmp_path: Path) -> None:
    run_tasks(tmp_path, {"verify": f"touch {engine.folder}/out-of-memory; kill -9 $$"})
    (line,) = results(Path("run"))
    assert (line["state"], line["error"]["kind"]) == ("errored", "memory")


def test_second_engine_answers_for_a_dead_first(engine: StandInEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin/docker").write_text(f"#!/bin/sh\necho '{DEAD}' >&2; exit 1\n")
    assert run_tasks(tmp_path, {"verify": "true"}).exit_code == 0
    assert results(Path("run"))[0]["sandbox"] == "podman"
    told = run_tasks(tmp_path, {}, args=("--set", "batch.container=docker"), out="told")
    assert (told.exit_code, DEAD in told.stderr) == (2, True)
    missing = run_tasks(tmp_path, {}, args=("--set", "batch.container=nerdctl"), out="missing")
    assert "there is no nerdctl, which batch.container names," in missing.stderr


def test_wolo_comes_from_its_folder(engine: StandInEngine, tmp_path: Path) -> None:
    files(tmp_path / "folder", {"bin/wolo": ""})
    run_tasks(tmp_path, {}, args=("--set", f"batch.wolo_folder={tmp_path}/folder"))
    (line,) = results(Path("run"))
    assert (line["state"], line["error"]["kind"]) == ("errored", "container"), "nothing is mounted here"
    create = next(words for words in engine.calls if words[0] == "create")
    assert f"--mount=type=bind,source={tmp_path}/folder,target=/opt/wolo,readonly=true" in create
    assert any("/opt/wolo/bin/wolo" in words for words in engine.calls if words[0] == "exec")
    wrong = run_tasks(tmp_path, {}, args=("--set", "batch.wolo_folder=/nowhere"), out="wrong")
    assert (wrong.exit_code, "is no self-contained folder of wolo" in wrong.stderr) == (2, True)


def test_other_version_in_the_image_errs(engine: StandInEngine, tmp_path: Path) -> None:
    (tmp_path / "bin/wolo").write_text("#!/bin/sh\necho wolo 0.0.1\n")
    (tmp_path / "bin/wolo").chmod(0o755)
    run_tasks(tmp_path, {})
    (line,) = results(Path("run"))
    assert line["state"] == "errored"
    assert "img:1 has wolo 0.0.1, and this is wolo" in line["error"]["message"]


def test_killed_wolo_leaves_no_container(engine: StandInEngine, provider: ProviderServer, tmp_path: Path) -> None:
    marker = tmp_path / "begun"
    file = tmp_path / "tasks.jsonl"
    file.write_text(
        json.dumps({"id": "t", "prompt": "go", "image": "img:1", "setup": "true", "verify": f"touch {marker}; sleep 4711"})
    )
    with start_wolo("batch", "run", str(file), "--mode", "yolo", "--out", "run", *IMAGE, forked=False) as running:
        wait_for(marker.exists)
        running.kill()
        running.wait(30)
    assert len(engine.leftovers) == 2, "the container and its snapshot"
    assert run_tasks(tmp_path, {"verify": "true"}, out="other").exit_code == 0
    assert engine.leftovers == []


def test_container_of_a_running_wolo_stays(engine: StandInEngine, tmp_path: Path) -> None:
    from wolo.fleet.ledger.hosts import Host

    me = Host().owner()
    label = f"wolo.owner={me.host} {me.pid} {me.started}"
    for name, text_ in (("alive", label), ("foreign", "wolo.owner=who knows")):
        container = {"image": "img:1", "options": {"--label": [text_]}, "running": False, "pids": []}
        (engine.folder / "containers" / name).write_text(json.dumps(container))
    assert run_tasks(tmp_path, {"verify": "true"}).exit_code == 0
    assert engine.leftovers == ["alive", "foreign"]


def test_changed_ledger_names_no_place_of_the_image(engine: StandInEngine, tmp_path: Path) -> None:
    run_tasks(tmp_path, {}, args=("-j", "0"))
    with closing(sqlite3.connect("run/ledger.db")) as database, database:
        database.execute("UPDATE tasks SET task = json_set(task, '$.workdir', 'relative')")
    run_wolo("batch", "resume", "run", timeout=120)
    assert "could be in no task file: workdir" in results(Path("run"))[0]["error"]["message"]


RUNC = """
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1000:1000"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
"""


@pytest.fixture
def busybox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """An image of podman with busybox and a repository at `/srv/app`; in a machine that is a container itself, runc may do."""
    busybox, podman = shutil.which("busybox"), shutil.which("podman")
    if podman is None or busybox is None:
        pytest.skip("needs podman and busybox: the packages `podman`, `runc` and `busybox-static`")
    root = tmp_path / "root"
    (root / "bin").mkdir(parents=True)
    shutil.copy(busybox, root / "bin/busybox")
    for applet in ("sh", "true", "tail", "cat", "test", "grep", "touch", "echo", "ps", "sleep", "ip", "wc"):
        (root / "bin" / applet).symlink_to("busybox")
    (root / "tmp").mkdir()
    for folder in ("srv/app", "testbed"):
        repository(root / folder, {"a.txt": "one\n"})
    with tarfile.open(tmp_path / "root.tar", "w") as archive:
        archive.add(root, arcname=".")
    name = f"localhost/wolo-test-{os.getpid()}:1"

    def can_run() -> bool:
        return not subprocess.run([podman, "run", "--rm", name, "true"], capture_output=True, check=False).returncode

    subprocess.run([podman, "import", str(tmp_path / "root.tar"), name], capture_output=True, check=True)
    (tmp_path / "containers.conf").write_text(RUNC)
    if not can_run():
        monkeypatch.setenv("CONTAINERS_CONF", str(tmp_path / "containers.conf"))
        if not can_run():
            subprocess.run([podman, "rmi", "-f", name], capture_output=True, check=False)
            pytest.skip("needs a podman that can start a container here")
    yield name
    subprocess.run([podman, "rmi", "-f", name], capture_output=True, check=False)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("workdir", ["/srv/app", ""])
def test_real_engine_runs_all_phases(
    env: dict[str, str], provider: ProviderServer, tmp_path: Path, busybox: str, dist_folder: Path, workdir: str
) -> None:
    does(provider, "ps | grep -c tail; cat /srv/app/a.txt > b.txt; touch /tmp/installed; sleep 4711 &")
    source = {"workdir": workdir} if workdir else {"repo": str(repository(tmp_path / "source", {"a.txt": "two\n"}))}
    check = 'test -f /tmp/prepared -a -f b.txt && test "$(ip link | grep -c UP)" = 1 && ! ps | grep [4]711'
    tasks = [
        {**source, "setup": "touch /tmp/prepared", "verify": f"{check} && test -f /tmp/installed"},
        {**source, "id": "hidden", "setup": "touch /tmp/prepared", "verify": f"{check} && ! test -f /tmp/installed"},
    ]
    file = tmp_path / "tasks.jsonl"
    tasks[1]["verify_files"] = {"hidden.txt": ""}
    file.write_text("".join(json.dumps({"id": "t", "prompt": "go", "image": busybox, **task}) + "\n" for task in tasks))
    told = ("--set", "batch.container=podman", "--set", f"batch.wolo_folder={dist_folder}", "--image", busybox)
    done = run_wolo("batch", "run", str(file), "--mode", "yolo", "--out", "run", *told, timeout=600)
    logs = [path.read_text() for path in Path("run").rglob("*log")]
    assert done.exit_code == 0, (done.stderr, logs)
    assert [(line["state"], line["sandbox"], line["patch"]["files"]) for line in results(Path("run"))] == [
        ("passed", "podman", 1)
    ] * 2
    left = subprocess.run(["podman", "ps", "-aq", "--filter", f"ancestor={busybox}"], capture_output=True, text=True, check=True)
    assert left.stdout == ""


@pytest.mark.timeout(900)
def test_real_engine_evaluates_in_instance_images(
    env: dict[str, str], provider: ProviderServer, tmp_path: Path, busybox: str, dist_folder: Path
) -> None:
    subprocess.run(["podman", "tag", busybox, SWE_BENCH_IMAGE], check=True)
    does(provider, "pwd > b.txt; cat a.txt >> b.txt")
    own = ("--set", "batch.container=podman", "--set", f"batch.wolo_folder={dist_folder}")
    try:
        done = evaluate(tmp_path, "--images", *own, timeout=600)
    finally:
        subprocess.run(["podman", "untag", busybox, SWE_BENCH_IMAGE], check=True)
    assert done.exit_code == 0, done.stderr
    (line,) = results(Path("r/default"))
    assert line["state"] == "done", line["error"]
    assert "+/testbed\n+one\n" in (Path("r/default") / line["patch"]["path"]).read_text()


@pytest.fixture(scope="module")
def dist_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    [folder] = [path for path in build(tmp_path_factory.mktemp("dist"), "folder").iterdir() if path.is_dir()]
    return folder
