"""A node of a Ray cluster that shares nothing: no wolo, no repository, another HOME; what it lacks comes from the run."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import wolo
from tests.components import miss
from tests.end_to_end.waiting import wait_for
from tests.fakes.command import run_wolo
from tests.fakes.provider_server import Asked, ProviderServer
from tests.fakes.replies import Reply, call, text
from tests.fakes.repositories import commit, files, git, repository
from tests.fleet.batches import results
from tests.fleet.engines.ray_cluster import RayCluster, ray_cluster
from tests.fleet.engines.test_ray_engine import needs_ray
from tests.workspace.test_directory_copy import deep_folder
from wolo.fleet.engines.ray_worker import build_wheel, scratch_folder
from wolo.places import find_places

PACKAGE = Path(wolo.__file__).parent
START = """
set -e
mount --make-rprivate /
for folder in "$@"; do mount -t tmpfs tmpfs "$folder"; done
mkdir -p "$HOME" "$RAY_TMPDIR/ray"
cd /
exec "$PYTHON" -m ray.scripts.scripts start --address="$ADDRESS" --num-cpus=2 --object-store-memory=80000000 --block
"""


@contextmanager
def empty_node(cluster: RayCluster, *hidden: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A node that finds empty folders at these places, and where the wolo of the tests is."""
    folder = f"/tmp/ray-empty-{os.getpid()}"  # a longer path does not fit the sockets
    Path(folder).mkdir()
    environment = {
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin:/usr/sbin:/sbin",
        "HOME": f"{folder}/home",
        "PYTHON": sys.executable,
        "ADDRESS": cluster.address,
        "RAY_TMPDIR": f"{folder}/ray",
        "RAY_USAGE_STATS_ENABLED": "0",
        **dict.fromkeys(("PIP_NO_DEPS", "PIP_NO_INDEX", "PIP_NO_COMPILE"), "1"),  # the packages that wolo needs are there
    }
    places = [folder, str(PACKAGE), *map(str, hidden)]
    with subprocess.Popen(
        ["unshare", "-m", "sh", "-c", START, "sh", *places], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as node:
        try:
            yield node
        finally:
            node.terminate()
            node.wait(30)
            Path(folder).rmdir()


def needs_namespaces() -> None:
    if os.geteuid() or shutil.which("unshare") is None:
        miss("unshare, and the rights of root for a mount namespace (the package `util-linux`)")


@pytest.mark.long
@pytest.mark.timeout(300)
def test_empty_node_gets_what_it_lacks(
    env: dict[str, str], provider: ProviderServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wolo, the sources, and the model of settings that it cannot see."""
    needs_ray()
    needs_namespaces()
    monkeypatch.delenv("WOLO_MODEL")
    files(find_places().config, {"config.toml": f'model = "{env["WOLO_MODEL"]}"\n'})
    above = tmp_path / "sources"
    whole = repository(above / "whole", {"a.txt": "one\n"})
    first = git(whole, "rev-parse", "HEAD")
    commit(whole, {"a.txt": "two\n"})
    git(above, "clone", "-q", "--depth=1", f"file://{whole}", "shallow")
    files(above / "plain", {"a.txt": "two\n"})
    (above / "plain/link").symlink_to("/nowhere")

    def answer(asked: Asked) -> Reply:
        command = f"cat a.txt > seen.txt; ls {above} >> seen.txt; git log --format=%s | wc -l >> seen.txt"
        return text("Done.") if asked.results else call("shell", {"command": command})

    provider.otherwise = answer
    lines: list[dict[str, Any]] = [{"id": name, "repo": str(above / name)} for name in ("whole", "shallow", "plain")]
    lines += [{"id": "old", "repo": str(whole), "ref": first, "verify": "grep one a.txt", "verify_files": {"x": ""}}]
    tasks = tmp_path / "t.jsonl"
    tasks.write_text("".join(json.dumps({"prompt": "go", **line}) + "\n" for line in lines))
    with ray_cluster(0) as cluster, empty_node(cluster, above) as node:
        where = ("--engine", "ray", "--ray-address", cluster.address)
        wait_for(lambda: has_processors(cluster.address) or node.poll() is not None, timeout_s=60)
        done = run_wolo("batch", "run", str(tasks), "--mode", "yolo", "--out", "x", "-j", "2", *where, timeout=200, forked=False)
    assert Path("x/results.jsonl").exists(), done.stderr
    ended = results(Path("x"))
    assert done.exit_code == 0, (done.stderr, ended)
    assert {line["id"]: line["state"] for line in ended} == {"whole": "done", "shallow": "done", "plain": "done", "old": "passed"}
    seen = {line["id"]: (Path("x") / line["patch"]["path"]).read_text() for line in ended}
    assert all("+two\n+" in seen[name] for name in ("whole", "shallow", "plain"))
    assert "+one\n+" in seen["old"]
    assert "plain" not in "".join(line for each in seen.values() for line in each.splitlines() if line.startswith("+"))


def has_processors(address: str) -> bool:
    code = f"import ray; ray.init({address!r}, logging_level='ERROR'); print(ray.cluster_resources().get('CPU', 0))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    return done.stdout.strip() not in ("", "0")


def test_wheel_is_the_wolo_that_runs(tmp_path: Path) -> None:
    first, second = (build_wheel(files(tmp_path / each, {"x": ""})) for each in "ab")
    assert first.name == second.name, "of the same content"
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--target", tmp_path / "site", first],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    said = subprocess.run(
        [sys.executable, "-P", "-c", "import wolo; print(wolo.__file__)"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout.strip() == str(tmp_path / "site/wolo/__init__.py")
    with zipfile.ZipFile(first) as packed:
        names = [name for name in packed.namelist() if not name.startswith("wolo/")]
    assert {name.rpartition("/")[2] for name in names} >= {"METADATA", "RECORD", "WHEEL", "entry_points.txt"}
    launcher = PACKAGE / "guard/sandbox/namespace_launcher"
    assert os.access(tmp_path / "site/wolo/guard/sandbox/namespace_launcher", os.X_OK) == os.access(launcher, os.X_OK)


def test_deep_leftovers_of_killed_workers_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    deep_folder(tmp_path / "wolo-attempt-x")
    with scratch_folder():
        assert not (tmp_path / "wolo-attempt-x").exists()
