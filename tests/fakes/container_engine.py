"""A program that is started like docker: it records what it is asked, and runs commands in a folder without any isolation."""

from __future__ import annotations

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

STATE = "STAND_IN_ENGINE"
NETWORK = "STAND_IN_NETWORK"
"""Tells a command of a container its network."""
DEAD = "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?"
WITH_VALUE = ("-e", "-w", "--label", "--tmpfs", "--filter", "--format", "-t")


class StandInEngine:
    """Its state is in a folder: `images/NAME` are file systems, `containers` has a file for each container."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("images", "containers", "snapshots"):
            (folder / name).mkdir(parents=True, exist_ok=True)

    def install(self, programs: Path, name: str = "docker") -> None:
        """Makes it a program of this name, which needs `STATE` in its environment."""
        programs.mkdir(exist_ok=True)
        program = programs / name
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -S -E {__file__} "$@"\n')
        program.chmod(0o755)

    @property
    def calls(self) -> list[list[str]]:
        log = self.folder / "log"
        return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []

    def die(self) -> None:
        (self.folder / "dead").touch()

    @property
    def leftovers(self) -> list[str]:
        return sorted(path.name for kind in ("containers", "snapshots") for path in (self.folder / kind).iterdir())

    def run(self, argv: list[str]) -> int:
        with (self.folder / "log").open("a") as log:
            log.write(json.dumps(argv) + "\n")
        if (self.folder / "dead").exists():
            print(DEAD, file=sys.stderr)
            return 1
        command, *rest = argv
        if command in ("container", "image"):
            command = f"{command}_{rest.pop(0)}"
        options: dict[str, list[str]] = {}
        while rest and rest[0].startswith("-"):
            word = rest.pop(0)
            name, is_joined, value = word.partition("=")
            options.setdefault(name, []).append(value if is_joined else rest.pop(0) if word in WITH_VALUE else "")
        try:
            return int(getattr(self, f"on_{command}")(options, *rest) or 0)
        except FileNotFoundError as error:
            print(f"Error: no such thing: {error.filename}", file=sys.stderr)
            return 1

    def on_version(self, options: dict[str, list[str]]) -> None:
        print("stand-in 1")

    def on_create(self, options: dict[str, list[str]], image: str, *command: str) -> None:
        assert image.startswith("wolo-attempt:") or (self.folder / "images" / image).is_dir(), image
        name = options["--name"][0]
        at = self.folder / "containers" / name
        at.touch(exist_ok=False)
        container = {"image": image, "options": options, "running": False, "pids": []}
        at.write_text(json.dumps(container))

    def _read(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / "containers" / name).read_text())
        return found

    def _write(self, name: str, **changes: Any) -> None:
        (self.folder / "containers" / name).write_text(json.dumps({**self._read(name), **changes}))

    def on_start(self, options: dict[str, list[str]], name: str) -> None:
        self._write(name, running=True)

    def on_stop(self, options: dict[str, list[str]], name: str) -> None:
        for pid in self._read(name)["pids"]:
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
        self._write(name, running=False, pids=[])

    def on_rm(self, options: dict[str, list[str]], name: str) -> None:
        if (self.folder / "containers" / name).exists():
            self.on_stop({}, name)
            (self.folder / "containers" / name).unlink()

    def on_exec(self, options: dict[str, list[str]], name: str, *command: str) -> int:
        container = self._read(name)
        assert container["running"], name
        cwd = options.get("-w", ["/"])[0]
        mounts = [mount_of(text) for text in container["options"].get("--mount", [])]
        folder = next((mount["source"] for mount in mounts if mount["target"] == cwd), str(self.folder))
        passed = {each: os.environ[each] for each in options.get("-e", []) if each in os.environ}
        passed |= dict(each.split("=", 1) for each in options.get("-e", []) if "=" in each)
        passed["WOLO_HOME"] = os.environ.get("WOLO_HOME", "")  # nothing is mounted here
        passed |= {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], NETWORK: container["options"]["--network"][0]}
        program = subprocess.Popen(command, cwd=folder, env=passed, start_new_session=True)
        self._write(name, pids=[*container["pids"], program.pid])
        code = program.wait()
        return code if code >= 0 else 128 - code

    def on_cp(self, options: dict[str, list[str]], source: str, target: str) -> None:
        name, _, path = source.partition(":")
        image = self.folder / "images" / self._read(name)["image"]
        shutil.copytree(image / path.lstrip("/"), target, dirs_exist_ok=True, symlinks=True)

    def on_commit(self, options: dict[str, list[str]], name: str, image: str) -> None:
        (self.folder / "snapshots" / image).write_text(json.dumps(self._read(name)))

    def on_rmi(self, options: dict[str, list[str]], image: str) -> None:
        (self.folder / "snapshots" / image).unlink()

    def on_ps(self, options: dict[str, list[str]]) -> None:
        self._list("containers")

    def on_images(self, options: dict[str, list[str]]) -> None:
        self._list("snapshots")

    def _list(self, kind: str) -> None:
        print("\n".join(path.name for path in (self.folder / kind).iterdir()))

    def on_container_inspect(self, options: dict[str, list[str]], name: str) -> None:
        container = self._read(name)
        label = container["options"]["--label"][0].partition("=")[2]
        is_out = (self.folder / "out-of-memory").exists()
        state = f"{str(container['running']).lower()} {str(is_out).lower()}"
        print(state if "State" in options["--format"][0] else label)

    def on_image_inspect(self, options: dict[str, list[str]], image: str) -> None:
        if "Labels" in options["--format"][0]:
            committed = json.loads((self.folder / "snapshots" / image).read_text())
            print(committed["options"]["--label"][0].partition("=")[2])
        else:
            print("sha256:4711")


def mount_of(text: str) -> dict[str, str]:
    """The fields of `--mount`."""
    [row] = csv.reader([text])
    return dict(field.split("=", 1) for field in row)


if __name__ == "__main__":
    sys.exit(StandInEngine(Path(os.environ[STATE])).run(sys.argv[1:]))
