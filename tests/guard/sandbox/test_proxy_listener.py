"""The only way out of a sandbox with a proxy is the listener that its launcher hands over."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.guard.sandbox_setup import Ground, land, put_up
from tests.guard.test_sandbox_contract import USERS, everyone, need, with_mounts
from wolo.guard.sandbox import calls
from wolo.guard.sandbox.bubblewrap import PROXY_VARIABLES
from wolo.guard.sandbox_contract import PROXY_PORT

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="these walls are Linux's")
TRY = """
import os, socket
def reach(family, address, kind=socket.SOCK_STREAM):
    with socket.socket(family, kind) as caller:
        caller.settimeout(5)
        try:
            caller.connect(address)
            caller.sendall(b"hello ")
        except OSError as error:
            return type(error).__name__
        return "reached"
port, beside = int(os.environ["PORT"]), int(os.environ["BESIDE"])
print(os.environ.get("HTTPS_PROXY", "none"), os.environ.get("no_proxy", "none"))
print(reach(socket.AF_INET, ("127.0.0.1", port)))
print(*(reach(socket.AF_INET, each) for each in (("127.0.0.1", beside), ("127.0.0.2", port), ("10.0.0.1", 80), ("1.1.1.1", 53))))
print(reach(socket.AF_INET, ("1.1.1.1", 53), socket.SOCK_DGRAM), reach(socket.AF_INET6, ("::1", port)))
for fd in range(3, 64):
    try:
        print("left open:", fd, socket.socket(fileno=os.dup(fd)))
    except OSError:
        pass
"""


def try_out(folder: Path, backend: str, has_proxy: bool) -> tuple[str, bytes]:
    """What a command prints, and what arrives at the listener."""
    with Ground(folder) as ground, socket.create_server(("127.0.0.1", 0)) as beside:
        walls = put_up(backend, ground.profile)
        channel, other = socket.socketpair()
        try:
            environ = {"PATH": os.defpath, "PORT": str(PROXY_PORT), "BESIDE": str(beside.getsockname()[1])}
            enclosed = walls.wrap(["/usr/bin/python3", "-c", TRY], ground.work, proxy_fd=other.fileno() if has_proxy else -1)
            with subprocess.Popen(
                enclosed.argv, stdout=-1, stderr=-2, pass_fds=enclosed.pass_fds, env=environ, text=True
            ) as command:
                other.close()
                heard = b""
                data, fds, _, _ = socket.recv_fds(channel, 8, 4)  # its end, without a proxy
                if fds:
                    with socket.socket(fileno=fds[0]) as listener:
                        assert (data, len(fds)) == (b"l", 1)
                        assert listener.getsockname() == ("127.0.0.1", PROXY_PORT)
                        with listener.accept()[0] as client:
                            heard = client.recv(64)
                printed = command.communicate()[0]
            enclosed.cleanup()
            return printed, heard
        finally:
            channel.close()
            walls.close()


@with_mounts
@everyone
@pytest.mark.parametrize("has_proxy", [True, False])
def test_listener_is_the_only_way_out(backend: str, user: str, has_proxy: bool) -> None:
    need(backend)
    run: Callable[..., tuple[str, bytes]] = USERS[user]  # type: ignore[assignment]  # returns what `try_out` does
    with land(user) as folder:
        printed, heard = run(try_out, folder, backend, has_proxy)
    first, own, others, last, *left = printed.splitlines()
    assert left == []
    assert first == (f"http://127.0.0.1:{PROXY_PORT} localhost,127.0.0.1,::1" if has_proxy else "none none")
    assert (own, heard) == (("reached", b"hello ") if has_proxy else ("ConnectionRefusedError", b""))
    assert others == "ConnectionRefusedError ConnectionRefusedError OSError OSError"
    assert last.startswith("OSError ")
    assert "reached" not in last


def test_all_launchers_have_one_port() -> None:
    assert calls.PROXY_PORT == PROXY_PORT
    assert f"PROXY_PORT = {PROXY_PORT} " in Path(calls.__file__).with_name("namespace_launcher.c").read_text()
    assert {value for name, value in PROXY_VARIABLES.items() if name.lower() != "no_proxy"} == {f"http://127.0.0.1:{PROXY_PORT}"}
