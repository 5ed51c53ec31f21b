"""A PostgreSQL server of a test's own, on a socket in a temporary folder."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

from tests.components import miss

USER = "postgres"


class PostgresServer:
    """Programs of the server refuse root, so they run as the user that Debian's package makes."""

    def __init__(self) -> None:
        found = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
        if not found:
            miss("PostgreSQL (install the package `postgresql`)")
        self._programs = found[-1]
        self._folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))
        self.port = _free_port()
        if os.geteuid() == 0:
            shutil.chown(self._folder, USER)
        self._run(
            "initdb",
            "-D",
            self._folder / "data",
            "-U",
            "wolo",
            "--auth=scram-sha-256",
            "-E",
            "UTF8",
            "--no-sync",
            *self._password(),
        )
        with (self._folder / "data" / "postgresql.conf").open("a") as settings:
            settings.write(
                f"port = {self.port}\nlisten_addresses = '127.0.0.1'\nunix_socket_directories = '{self._folder}'\nfsync = off\n"
            )

    def _password(self) -> list[str]:
        path = self._folder / "password"
        path.write_text("se/cret-word\n")
        path.chmod(0o644)
        return [f"--pwfile={path}"]

    @property
    def url(self) -> str:
        return f"postgresql://wolo:{self.password.replace('/', '%2F')}@127.0.0.1:{self.port}/postgres"

    password = "se/cret-word"

    def start(self) -> None:
        self._run("pg_ctl", "-D", self._folder / "data", "-w", "-s", "-l", self._folder / "log", "start")

    def stop(self, how: str = "immediate") -> None:
        self._run("pg_ctl", "-D", self._folder / "data", "-w", "-s", "-m", how, "stop")

    def close(self) -> None:
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _run(self, program: str, *arguments: str | Path) -> None:
        user = USER if os.geteuid() == 0 else None
        command = [self._programs / program, *arguments]
        subprocess.run(command, check=True, user=user, cwd="/", stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
